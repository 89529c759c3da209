/** Addresses that are not of the public internet. */
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import { once } from "../effect/once.ts"

/** Networks of IANA's special registries: private, loopback, link-local, documentation, multicast, reserved. */
const special = [
  ..."0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24".split(" "),
  ..."192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24".split(" "),
  ..."224.0.0.0/4 240.0.0.0/4".split(" "),
  // The wire server of Azure has a public address, which only machines of Azure reach.
  "168.63.129.16/32",
  // 6to4 and Teredo addresses lead to the IPv4 address inside them.
  ..."2001::/23 2001:db8::/32 2002::/16 3fff::/20".split(" ")
]

/**
 * The public part of IPv6 (RFC 4291, 2.4). Outside of it are this machine, private networks, wrapped IPv4 addresses
 * (compatible, mapped, translated, NAT64) and unassigned addresses.
 */
const global6 = "2000::/3"

const networks = once(() => special.map(IpNetwork.fromStringUnsafe))
const unicast = once(() => IpNetwork.fromStringUnsafe(global6))

/** Parses an address, with or without the brackets of a URL and the zone of an interface. A name is `undefined`. */
export const parse = (host: string): NetAddress.IpAddress | undefined =>
  Result.getOrUndefined(NetAddress.ipFromString(host.replace(/^\[|\]$/g, "").replace(/%.*$/, "")))

/** Reports whether an address lies outside of the public internet. */
export const isPrivate = (address: NetAddress.IpAddress): boolean =>
  networks().some((network) => IpNetwork.contains(network, address)) ||
  (NetAddress.isIpv6Address(address) && !IpNetwork.contains(unicast(), address))

/** Names of this machine and of local networks, independent of DNS. */
const privateName = /(^|\.)(localhost|localdomain|local|internal|intranet|lan|home|corp|private|home\.arpa)\.?$/

/** Reports whether a name belongs to this machine or a local network, as every single word does. */
export const isPrivateName = (host: string): boolean => privateName.test(host) || !host.replace(/\.$/, "").includes(".")
