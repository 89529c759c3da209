/** The parts of policies that are put together before a run: files, the network, the reach on the machine, budgets. */
import type * as Permissions from "../../backends/Permissions.ts"
import type * as Network from "../../net/Network.ts"
import { defined } from "../../support/json/defined.ts"
import { isStrict, type Limits, type Policy, Sandbox } from "./model.ts"

const readOnly: Permissions.Options = {
  rules: [
    { operations: ["write"], paths: ["/**"], mode: "deny" },
    { operations: ["execute"], mode: "deny" }
  ]
}

const ofSandbox: { readonly [S in Sandbox]: Permissions.Options | undefined } = {
  readOnly,
  noCommands: { rules: [{ operations: ["execute"], mode: "deny" }] },
  askForCommands: { rules: [{ operations: ["execute"], mode: "ask" }] },
  open: undefined
}

/** The reach that policies leave: the last one's, unless an earlier one is strict and narrower. */
export const sandboxOf = (policies: ReadonlyArray<Policy>): Sandbox | undefined => {
  let found: Sandbox | undefined
  let isFixed = false
  const rank = (one: Sandbox): number => Sandbox.literals.indexOf(one)
  for (const policy of policies) {
    const { sandbox } = policy
    if (sandbox === undefined) continue
    if (found === undefined || !isFixed || rank(sandbox) < rank(found)) found = sandbox
    isFixed ||= isStrict(policy, "sandbox")
  }
  return found
}

/**
 * The permissions of policies, each to be put before the backend: the reach first, as rules for files hold only where no
 * command goes around them; a strict one stands alone, so that what comes after it can only take away; others go before
 * what they override.
 */
export const permissionsOf = (policies: ReadonlyArray<Policy>): ReadonlyArray<Permissions.Options> => {
  const all: Array<Permissions.Options> = []
  let open: Permissions.Options | undefined
  for (const policy of policies) {
    const { files } = policy
    if (files === undefined) continue
    const otherwise = files.default ?? open?.default
    open = {
      rules: [...files.rules, ...(open?.rules ?? [])],
      ...defined({ default: otherwise })
    }
    if (!isStrict(policy, "files")) continue
    all.push(open)
    open = undefined
  }
  const sandbox = sandboxOf(policies)
  const reach = sandbox === undefined ? undefined : ofSandbox[sandbox]
  return [...(reach === undefined ? [] : [reach]), ...all, ...(open === undefined ? [] : [open])]
}

const amounts = ["tokens", "cost", "toolCalls", "rounds", "time"] as const

/** The limits of policies: the last one's, unless an earlier one is strict and lower. */
export const budgetOf = (policies: ReadonlyArray<Policy>): Limits | undefined => {
  let found: { -readonly [Key in keyof Limits]: Limits[Key] } | undefined
  const fixed = new Set<string>()
  for (const policy of policies) {
    const { budget } = policy
    if (budget === undefined) continue
    found ??= {}
    for (const kind of amounts) {
      const amount = budget[kind]
      if (amount === undefined) continue
      const before = found[kind]
      found[kind] = before !== undefined && fixed.has(kind) ? Math.min(before, amount) : amount
      if (isStrict(policy, "budget")) fixed.add(kind)
    }
    if (budget.onExhausted === undefined || fixed.has("onExhausted")) continue
    found.onExhausted = budget.onExhausted
    if (isStrict(policy, "budget")) fixed.add("onExhausted")
  }
  return found
}

/** Tells whether all hosts that one pattern is for are among those of another. */
const covers = (wide: string, host: string): boolean => {
  if (wide === "*" || wide === host) return true
  // A pattern without a port is for all ports.
  const [name = host, port] = host.split(/:(?=\d+$)/)
  if (port !== undefined && !/:\d+$/.test(wide) && covers(wide, name)) return true
  return wide.startsWith("*.") && name.replace(/^\*\./, "").endsWith(wide.slice(1)) && !/:\d+$/.test(host)
}

type Names = ReadonlyArray<string> | undefined

/** The hosts that both lists allow; no list allows all. */
const both = (first: Names, second: Names): Names => {
  if (first === undefined || second === undefined) return first ?? second
  const inFirst = second.filter((host) => first.some((wide) => covers(wide, host)))
  const inSecond = first.filter((host) => second.some((wide) => covers(wide, host)))
  return [...new Set([...inFirst, ...inSecond])]
}

const shared = <A>(first: ReadonlyArray<A> | undefined, second: ReadonlyArray<A> | undefined) =>
  first === undefined || second === undefined ? (first ?? second) : first.filter((one) => second.includes(one))

const least = (first: number | undefined, second: number | undefined): number | undefined =>
  first === undefined || second === undefined ? (first ?? second) : Math.min(first, second)

type Rate = NonNullable<Network.Rules["rate"]>

/** The rate of which fewer requests go out in the long run. */
const slower = (first: Rate | undefined, second: Rate | undefined): Rate | undefined => {
  if (first === undefined || second === undefined) return first ?? second
  return second.requests / second.window < first.requests / first.window ? second : first
}

type Breaker = NonNullable<Network.Rules["breaker"]>

/** A breaker that opens as soon, and stays open as long, as either of two. */
const quicker = (first: Breaker | undefined, second: Breaker | undefined): Breaker | undefined =>
  first === undefined || second === undefined
    ? (first ?? second)
    : { failures: Math.min(first.failures, second.failures), openFor: Math.max(first.openFor, second.openFor) }

/** Rules that allow what both allow. What is closed unless it is named (`allowPrivate`, headers, streams) both must name. */
const narrower = (first: Network.Rules, second: Network.Rules): Network.Rules => ({
  ...defined({
    schemes: shared(first.schemes, second.schemes),
    allow: both(first.allow, second.allow),
    deny: first.deny || second.deny ? [...new Set([...(first.deny ?? []), ...(second.deny ?? [])])] : undefined,
    ports: shared(first.ports, second.ports),
    allowPrivate: shared(first.allowPrivate ?? [], second.allowPrivate ?? []),
    keepHeaders: shared(first.keepHeaders ?? [], second.keepHeaders ?? []),
    maxRedirects: least(first.maxRedirects, second.maxRedirects),
    maxBytes: least(first.maxBytes, second.maxBytes),
    maxRawBytes: least(first.maxRawBytes, second.maxRawBytes),
    timeout: least(first.timeout, second.timeout),
    rate: slower(first.rate, second.rate),
    breaker: quicker(first.breaker, second.breaker)
  }),
  streams: first.streams === true && second.streams === true
})

/** The rules of the network: fields of a later one override, unless an earlier one is strict: then both must allow. */
export const networkOf = (policies: ReadonlyArray<Policy>): Network.Rules | undefined => {
  let fixed: Network.Rules | undefined
  let open: Network.Rules | undefined
  for (const policy of policies) {
    if (policy.network === undefined) continue
    open = { ...open, ...policy.network }
    if (!isStrict(policy, "network")) continue
    fixed = fixed === undefined ? open : narrower(fixed, open)
    open = undefined
  }
  return fixed === undefined || open === undefined ? (fixed ?? open) : narrower(fixed, open)
}
