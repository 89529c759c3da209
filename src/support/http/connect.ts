/** Connections on Node to allowed addresses: the judged address of a name is the one that is connected to. */
import { lookup } from "node:dns"
import type { LookupFunction } from "node:net"
import type { Judge } from "./rules.ts"

/** Resolves names: `dns.lookup`, or another one in tests. */
export type Resolve = typeof lookup

/** Makes a resolver for connections to one port. It fails for a name with a forbidden address. */
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
