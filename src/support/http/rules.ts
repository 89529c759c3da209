/** Rules of the network: their schema, and their judgement of URLs and addresses. */
import * as IpNetwork from "effect/net/IpNetwork"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { TaggedError } from "../effect/taggedError.ts"
import { defined } from "../json/defined.ts"
import { at, brief, problems } from "../text/issues.ts"
import { escaped } from "../text/untrusted.ts"
import * as addresses from "./addresses.ts"

/** The rule that refused a request, or ended its response. */
export class Refused extends TaggedError<Refused>("effect-deepagents/Network/Refused")("NetworkRefused", {
  rule: Schema.Literals([
    "rules",
    "scheme",
    "host",
    "port",
    "address",
    "credentials",
    "redirect",
    "upgrade",
    "bytes",
    "encoding",
    "time",
    "rate",
    "breaker"
  ]),
  message: Schema.String
}) {}

export const makeRefused = (rule: Refused["rule"], message: string): Refused => new Refused({ rule, message })

/** Removes the brackets of an address and the dot after a full name. */
const bare = (host: string): string => host.replace(/^\[|\]$|\.$/g, "")

/** Normalises a host as URLs do: lower case, punycode, addresses in their normal form. */
const hostOf = (text: string): { readonly host: string; readonly port: number | undefined } | undefined => {
  // A bare IPv6 address has no port. The port is read here, because URLs drop the default port of their scheme.
  const isPlain6 = /^[^[]*:.*:/.test(text)
  const port = isPlain6 ? undefined : /:(\d{1,5})$/.exec(text)?.[1]
  const name = isPlain6 ? `[${text}]` : port === undefined ? text : text.slice(0, -port.length - 1)
  const url = Result.getOrUndefined(Result.try(() => new URL(`http://${name}/`)))
  return url === undefined || url.pathname !== "/" || url.username !== "" || url.port !== "" || url.search !== ""
    ? undefined
    : { host: bare(url.hostname), port: port === undefined ? undefined : Number(port) }
}

interface Pattern {
  readonly host: string
  readonly port: number | undefined
  /** True for a pattern of all names below the host. */
  readonly below: boolean
}

const patternOf = (text: string): Pattern | undefined => {
  const below = text.startsWith("*.")
  const parsed = hostOf(below ? text.slice(2) : text)
  return parsed === undefined || parsed.host.includes("*") ? undefined : { ...parsed, below }
}

const networkOf = (text: string): IpNetwork.IpNetwork | undefined =>
  text.includes("/") ? Result.getOrUndefined(IpNetwork.fromString(text)) : undefined

const Host = Schema.String.check(
  Schema.makeFilter((text) =>
    text === "*" || patternOf(text) !== undefined
      ? undefined
      : 'a host, as in "example.com", "*.example.com" or "example.com:8443"'
  )
)

const Private = Schema.String.check(
  Schema.makeFilter((text) =>
    networkOf(text) !== undefined || patternOf(text) !== undefined
      ? undefined
      : 'a host, an address or a network, as in "localhost:3000", "127.0.0.1" or "10.0.0.0/8"'
  )
)

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
const Port = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65_535 }))

export const Rules = Schema.Struct({
  schemes: Schema.optionalKey(Schema.Array(Schema.Literals(["https", "http"]))),
  allow: Schema.optionalKey(Schema.Array(Host)),
  deny: Schema.optionalKey(Schema.Array(Host)),
  ports: Schema.optionalKey(Schema.Array(Port)),
  allowPrivate: Schema.optionalKey(Schema.Array(Private)),
  keepHeaders: Schema.optionalKey(Schema.Array(Schema.String)),
  maxRedirects: Schema.optionalKey(Count),
  maxBytes: Schema.optionalKey(Positive),
  maxRawBytes: Schema.optionalKey(Positive),
  timeout: Schema.optionalKey(Positive),
  streams: Schema.optionalKey(Schema.Boolean),
  rate: Schema.optionalKey(Schema.Struct({ requests: Positive, window: Positive })),
  breaker: Schema.optionalKey(Schema.Struct({ failures: Positive, openFor: Positive }))
})

export type Rules = typeof Rules.Type

/** Compiled rules. */
export interface Judge {
  /** Judges a URL before anything is sent. */
  readonly url: (url: URL) => Refused | undefined
  /** Judges the address of a host before the connection is made. */
  readonly address: (address: string, host: string, port: number) => Refused | undefined
}

const matches = (pattern: Pattern, host: string, port: number): boolean =>
  (pattern.port === undefined || pattern.port === port) &&
  (pattern.below ? host.endsWith(`.${pattern.host}`) : host === pattern.host)

const patternsOf = (hosts: ReadonlyArray<string> | undefined): ReadonlyArray<Pattern> | undefined =>
  hosts?.flatMap((text) => (text === "*" ? [] : Option.toArray(Option.fromUndefinedOr(patternOf(text)))))

const decodeRules = Schema.decodeUnknownResult(Rules, { onExcessProperty: "error" })

/** Finds the fault of rules that were never decoded by their schema. */
const faultOf = (rules: Rules): Refused | undefined => {
  const result = decodeRules(defined(rules))
  if (Result.isSuccess(result)) return undefined
  const [first] = problems(result.failure.issue)
  const detail =
    first === undefined ? "" : `: ${first.path} is ${brief(at(rules, first.keys))}, but should be ${first.expected}`
  return makeRefused("rules", `the rules of the network can't be kept${detail}`)
}

const schemePort = (url: URL): number => (url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port))

/** Reports whether the host of a URL matches a pattern. */
export const matchesHost = (hosts: ReadonlyArray<string>, url: URL): boolean =>
  (patternsOf(hosts) ?? []).some((pattern) => matches(pattern, bare(url.hostname), schemePort(url)))

/** Compiles rules. Invalid rules refuse everything. */
export const judge = (rules: Rules): Judge => {
  const fault = faultOf(rules)
  if (fault !== undefined) return { url: () => fault, address: () => fault }
  const schemes = rules.schemes ?? ["https", "http"]
  const allow = rules.allow?.includes("*") === true ? undefined : patternsOf(rules.allow)
  const deniesAll = rules.deny?.includes("*") === true
  const deny = patternsOf(rules.deny) ?? []
  const privateNetworks = (rules.allowPrivate ?? []).flatMap((text) => networkOf(text) ?? [])
  const privateHosts = patternsOf((rules.allowPrivate ?? []).filter((text) => networkOf(text) === undefined)) ?? []

  const address: Judge["address"] = (text, name, port) => {
    const host = bare(name)
    const parsed = addresses.parse(text)
    if (parsed !== undefined && !addresses.isPrivate(parsed)) return undefined
    const isAllowed =
      privateHosts.some((pattern) => matches(pattern, host, port)) ||
      (parsed !== undefined && privateNetworks.some((network) => IpNetwork.contains(network, parsed)))
    return isAllowed
      ? undefined
      : makeRefused(
          "address",
          parsed === undefined
            ? `${escaped(host)} is a name of this machine or of the network around it`
            : host === text
              ? `${text} is an address of this machine, of the network around it, or reserved`
              : `${escaped(host)} leads to ${text}, an address of this machine, of the network around it, or reserved`
        )
  }

  return {
    address,
    url: (url) => {
      const scheme = url.protocol.slice(0, -1)
      if (!schemes.some((one) => one === scheme)) {
        return makeRefused("scheme", `the scheme "${escaped(scheme)}" is not allowed, only ${schemes.join(" and ")}`)
      }
      if (url.username !== "" || url.password !== "") {
        return makeRefused("credentials", "a URL may not have a user and a password in it")
      }
      const host = bare(url.hostname)
      const port = schemePort(url)
      const isAny = (patterns: ReadonlyArray<Pattern>) => patterns.some((pattern) => matches(pattern, host, port))
      // A resolver might ignore the empty labels of an invalid name.
      if (host.startsWith(".") || host.endsWith(".") || host.includes("..")) {
        return makeRefused("host", `"${escaped(url.hostname)}" is no name of a host`)
      }
      if (host === "" || deniesAll || isAny(deny)) return makeRefused("host", `the host "${escaped(host)}" is denied`)
      if (allow !== undefined && !isAny(allow)) {
        return makeRefused("host", `the host "${escaped(host)}" is not among those that are allowed`)
      }
      if (rules.ports !== undefined && !rules.ports.includes(port)) {
        return makeRefused("port", `the port ${port} is not allowed, only ${rules.ports.join(", ")}`)
      }
      const literal = addresses.parse(host)
      if (literal === undefined && !addresses.isPrivateName(host)) return undefined
      return address(literal === undefined ? "" : host, host, port)
    }
  }
}
