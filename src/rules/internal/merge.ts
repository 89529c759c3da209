/** Combines the parts of policies that hold for a whole run: files, the network, the reach on the machine, budgets. */
import type * as Permissions from "../../backends/Permissions.ts"
import type * as Network from "../../net/Network.ts"
import { defined } from "../../support/json/defined.ts"
import { isStrict, type Limits, nameOf, type Policy, Sandbox } from "./model.ts"

const nameFor = (sandbox: Sandbox) => ({ name: `sandbox: ${sandbox}` })

const ofSandbox: { readonly [S in Sandbox]: Permissions.Options | undefined } = {
  readOnly: {
    rules: [
      { ...nameFor("readOnly"), operations: ["write"], paths: ["/**"], ruling: "refuse" },
      { ...nameFor("readOnly"), operations: ["execute"], ruling: "refuse" }
    ]
  },
  noCommands: { rules: [{ ...nameFor("noCommands"), operations: ["execute"], ruling: "refuse" }] },
  askForCommands: { rules: [{ ...nameFor("askForCommands"), operations: ["execute"], ruling: "ask" }] },
  open: undefined
}

/** The combined reach: the last policy's, unless an earlier one is strict and narrower. */
export const sandboxOf = (policies: ReadonlyArray<Policy>): Sandbox | undefined => {
  let result: Sandbox | undefined
  let isFixed = false
  const rank = (one: Sandbox): number => Sandbox.literals.indexOf(one)
  for (const policy of policies) {
    const { sandbox } = policy
    if (sandbox === undefined) continue
    if (result === undefined || !isFixed || rank(sandbox) < rank(result)) result = sandbox
    isFixed ||= isStrict(policy, "sandbox")
  }
  return result
}

/**
 * The permissions of policies, in the order in which they stand before the backend. The reach is first, as commands would
 * go around rules for files. A strict policy stands alone, so that later ones only restrict. The rules of other policies
 * go before the rules that they override.
 */
export const permissionsOf = (policies: ReadonlyArray<Policy>): ReadonlyArray<Permissions.Options> => {
  const all: Array<Permissions.Options> = []
  let open: Permissions.Options | undefined
  for (const [index, policy] of policies.entries()) {
    const { files } = policy
    if (files === undefined) continue
    const otherwise = files.default ?? open?.default
    const rules = files.rules.map((rule, place) => ({
      ...rule,
      name: `${nameOf(policy, index)}: ${rule.name ?? `files.rules[${place}]`}`
    }))
    open = {
      rules: [...rules, ...(open?.rules ?? [])],
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

/** The combined limits: the last policy's, unless an earlier one is strict and lower. */
export const budgetOf = (policies: ReadonlyArray<Policy>): Limits | undefined => {
  let result: { -readonly [Key in keyof Limits]: Limits[Key] } | undefined
  const fixed = new Set<string>()
  for (const policy of policies) {
    const { budget } = policy
    if (budget === undefined) continue
    result ??= {}
    for (const kind of amounts) {
      const amount = budget[kind]
      if (amount === undefined) continue
      const before = result[kind]
      result[kind] = before !== undefined && fixed.has(kind) ? Math.min(before, amount) : amount
      if (isStrict(policy, "budget")) fixed.add(kind)
    }
    if (budget.onExhausted === undefined || fixed.has("onExhausted")) continue
    result.onExhausted = budget.onExhausted
    if (isStrict(policy, "budget")) fixed.add("onExhausted")
  }
  return amounts.some((kind) => result?.[kind] !== undefined) ? result : undefined
}

/** Checks whether one pattern covers all hosts of another. */
const covers = (wide: string, host: string): boolean => {
  if (wide === "*" || wide === host) return true
  // A pattern without a port is for all ports.
  const [name = host, port] = host.split(/:(?=\d+$)/)
  if (port !== undefined && !/:\d+$/.test(wide) && covers(wide, name)) return true
  return wide.startsWith("*.") && name.replace(/^\*\./, "").endsWith(wide.slice(1)) && !/:\d+$/.test(host)
}

type Names = ReadonlyArray<string> | undefined

/** The hosts that both lists allow; without a list, all hosts are allowed. */
const intersectHosts = (first: Names, second: Names): Names => {
  if (first === undefined || second === undefined) return first ?? second
  const inFirst = second.filter((host) => first.some((wide) => covers(wide, host)))
  const inSecond = first.filter((host) => second.some((wide) => covers(wide, host)))
  return [...new Set([...inFirst, ...inSecond])]
}

const intersect = <A>(first: ReadonlyArray<A> | undefined, second: ReadonlyArray<A> | undefined) =>
  first === undefined || second === undefined ? (first ?? second) : first.filter((one) => second.includes(one))

const least = (first: number | undefined, second: number | undefined): number | undefined =>
  first === undefined || second === undefined ? (first ?? second) : Math.min(first, second)

type Rate = NonNullable<Network.Rules["rate"]>

/** The rate that lets fewer requests out in the long run. */
const slower = (first: Rate | undefined, second: Rate | undefined): Rate | undefined => {
  if (first === undefined || second === undefined) return first ?? second
  return second.requests / second.window < first.requests / first.window ? second : first
}

type Breaker = NonNullable<Network.Rules["breaker"]>

/** A breaker that opens as soon, and stays open as long, as either of two breakers. */
const quicker = (first: Breaker | undefined, second: Breaker | undefined): Breaker | undefined =>
  first === undefined || second === undefined
    ? (first ?? second)
    : { failures: Math.min(first.failures, second.failures), openFor: Math.max(first.openFor, second.openFor) }

/** Rules that allow only requests that both allow. Opt-ins (`allowPrivate`, headers, streams) must be in both. */
const narrower = (first: Network.Rules, second: Network.Rules): Network.Rules => ({
  ...defined({
    schemes: intersect(first.schemes, second.schemes),
    allow: intersectHosts(first.allow, second.allow),
    deny: first.deny || second.deny ? [...new Set([...(first.deny ?? []), ...(second.deny ?? [])])] : undefined,
    ports: intersect(first.ports, second.ports),
    allowPrivate: intersect(first.allowPrivate ?? [], second.allowPrivate ?? []),
    keepHeaders: intersect(first.keepHeaders ?? [], second.keepHeaders ?? []),
    maxRedirects: least(first.maxRedirects, second.maxRedirects),
    maxBytes: least(first.maxBytes, second.maxBytes),
    maxRawBytes: least(first.maxRawBytes, second.maxRawBytes),
    timeout: least(first.timeout, second.timeout),
    rate: slower(first.rate, second.rate),
    breaker: quicker(first.breaker, second.breaker)
  }),
  streams: first.streams === true && second.streams === true
})

/** The combined rules of the network: later fields override. After a strict policy, both must allow. */
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
