/**
 * Connections on Node that are made to addresses which the rules allow, and to no others: the address that a name is
 * resolved to is judged, and then connected to, without being asked for again.
 */
import { lookup } from "node:dns"
import type { LookupFunction } from "node:net"
import type { Judge } from "./rules.ts"

/** Resolves names: `dns.lookup`, or another one in tests. */
export type Resolve = typeof lookup

/** A resolver that fails for a name with an address that may not be reached, for connections to one port. */
export const guardedLookup =
  (judge: Judge, port: number, resolve: Resolve = lookup): LookupFunction =>
  (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, [])
      for (const { address } of addresses) {
        const why = judge.address(address, host, port)
        if (why !== undefined) return callback(why, [])
      }
      const [first] = addresses
      if (options.all === true || first === undefined) return callback(null, addresses)
      callback(null, first.address, first.family)
    })
  }
