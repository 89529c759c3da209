/** Addresses that are not of the public internet. */
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import { once } from "../effect/once.ts"

/** IANA's special registries: private, loopback, link-local, shared, documentation, benchmarks, multicast, reserved. */
const special = [
  ..."0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24".split(" "),
  ..."192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24".split(" "),
  ..."224.0.0.0/4 240.0.0.0/4".split(" "),
  // The wire server of Azure: a public address by its number, reached by machines of Azure alone.
  "168.63.129.16/32",
  // Those that hold an IPv4 address (6to4, Teredo) lead where that leads.
  ..."2001::/23 2001:db8::/32 2002::/16 3fff::/20".split(" ")
]

/**
 * All of IPv6 that is of the public internet (RFC 4291, 2.4): outside of it are this machine, private networks, IPv4 addresses
 * in other clothes (compatible, mapped, translated, NAT64), networks laid over others, and what nobody has assigned.
 */
const global6 = "2000::/3"

const networks = once(() => special.map(IpNetwork.fromStringUnsafe))
const unicast = once(() => IpNetwork.fromStringUnsafe(global6))

/** An address as text, without the brackets of a URL and the zone of an interface; `undefined` for a name. */
export const parse = (host: string): NetAddress.IpAddress | undefined =>
  Result.getOrUndefined(NetAddress.ipFromString(host.replace(/^\[|\]$/g, "").replace(/%.*$/, "")))

/** Reports whether an address leads anywhere but to the public internet. */
export const isPrivate = (address: NetAddress.IpAddress): boolean =>
  networks().some((network) => IpNetwork.contains(network, address)) ||
  (NetAddress.isIpv6Address(address) && !IpNetwork.contains(unicast(), address))

/** Names that mean this machine, or one of the network around it, whatever they resolve to. */
const privateName = /(^|\.)(localhost|localdomain|local|internal|intranet|lan|home|corp|private|home\.arpa)\.?$/

/** Reports whether a name is of this machine or the network around it: one of these, or a single word. */
export const isPrivateName = (host: string): boolean => privateName.test(host) || !host.replace(/\.$/, "").includes(".")
