/**
 * The decision of policies on a call: which rule speaks, and which policy has the last word.
 */
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"
import { names } from "../../core/Middleware.ts"
import type { Annotations } from "../../core/Tool.ts"
import { didYouMean } from "../../support/names.ts"
import { annotated, isStrict, type Mode, type Policy, type Rule, type Rules } from "./model.ts"
import { isWild, matchesArguments, matchesName } from "./patterns.ts"

/** A call, as it is asked about. */
export interface Call {
  readonly name: string
  readonly arguments: JsonObject
  readonly annotations: Annotations
}

/** A rule that speaks on a call, and where it is. */
export interface Word {
  readonly policy: string
  readonly rule: string
  readonly mode: Mode
  /** Set for a rule that is for the tool itself. */
  readonly isNamed: boolean
  readonly terms: Omit<Rule, "mode" | "arguments">
}

const strictness: { readonly [M in Mode]: number } = { allow: 0, ask: 1, deny: 2 }

const isStricter = (left: Mode, right: Mode): boolean => strictness[left] > strictness[right]

/** The names of the parameters of a tool, where its schema has any. */
const parametersOf = (schema: JsonObject | undefined): ReadonlyArray<string> | undefined => {
  const properties: Json | undefined = schema?.["properties"]
  return isObject(properties) ? Object.keys(properties) : undefined
}

/** The names of arguments in a rule that the tool has no parameters for. */
const misspelt = (rule: Rule, known: ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  known === undefined
    ? []
    : Object.keys(rule.arguments ?? {}).filter(
        (path) => !known.includes(path) && !known.includes(path.split(".")[0] ?? "")
      )

/** A name of an argument in a rule that the tool does not have: the rule holds for all of its calls then. */
export interface Misspelt {
  readonly rule: string
  readonly argument: string
  readonly hint: string
}

interface Context {
  readonly call: Call
  readonly parameters: ReadonlyArray<string> | undefined
  readonly onMisspelt: (found: Misspelt) => void
}

const listOf = (rules: Rules): ReadonlyArray<Mode | Rule> =>
  typeof rules === "string" || "mode" in rules ? [rules] : rules

/** The first of these rules that fits a call. */
const firstOf = (
  { call, onMisspelt, parameters }: Context,
  policy: string,
  place: string,
  rules: Rules | undefined,
  isNamed: boolean
): Word | undefined => {
  if (rules === undefined) return undefined
  const list = listOf(rules)
  for (const [index, one] of list.entries()) {
    const where = list.length > 1 ? `${place}[${index}]` : place
    if (typeof one === "string") return { policy, rule: where, mode: one, isNamed, terms: {} }
    const { arguments: patterns, mode, ...terms } = one
    const wrong = misspelt(one, parameters)
    for (const argument of wrong)
      onMisspelt({ rule: `${policy}: ${where}`, argument, hint: didYouMean(argument, parameters ?? []) })
    // A restriction that can't be read restricts everything; a permission that can't be read allows nothing.
    const fits =
      wrong.length > 0 ? mode !== "allow" : matchesArguments(patterns ?? {}, call.arguments, mode === "allow")
    if (fits) return { policy, rule: where, mode, isNamed, terms }
  }
  return undefined
}

/** The rules by a name: its own, else those of the first pattern that it fits. */
const byName = (
  context: Context,
  policy: string,
  place: string,
  rules: { readonly [name: string]: Rules } | undefined,
  name: string,
  isNamed: boolean
): Word | undefined => {
  if (rules === undefined) return undefined
  const all = Object.keys(rules)
  const own = Object.hasOwn(rules, name) ? name : all.find((one) => !isWild(one) && names([one], name))
  const found = own ?? all.find((one) => isWild(one) && matchesName(one, name))
  return found === undefined
    ? undefined
    : firstOf(context, policy, `${place}.${found}`, rules[found], isNamed && own !== undefined)
}

const byAnnotation = (context: Context, policy: string, rules: Policy["annotations"]): Word | undefined => {
  if (rules === undefined) return undefined
  let strictest: Word | undefined
  for (const annotation of annotated) {
    if (context.call.annotations[annotation] !== true) continue
    const word = firstOf(context, policy, `annotations.${annotation}`, rules[annotation], false)
    if (word !== undefined && (strictest === undefined || isStricter(word.mode, strictest.mode))) strictest = word
  }
  return strictest
}

/** The name that the server gave a tool: where nobody says it, what comes behind the server's own. */
const ownName = ({ annotations, name }: Pick<Call, "name" | "annotations">, server: string): string => {
  if (annotations.serverTool !== undefined) return annotations.serverTool
  const prefix = name.startsWith(`${server}__`) ? server.length : name.indexOf("__")
  return prefix < 0 ? name : name.slice(prefix + 2)
}

export const nameOf = ({ name }: Policy, index: number): string => name ?? `policy ${index + 1}`

const wordOf = (context: Context, policy: Policy, named: string): Word | undefined => {
  const { annotations, name } = context.call
  const off = policy.off?.tools?.find((one) => (isWild(one) ? matchesName(one, name) : names([one], name)))
  if (off !== undefined) return { policy: named, rule: `off.tools (${off})`, mode: "deny", isNamed: true, terms: {} }
  const { server: from } = annotations
  const server = from !== undefined && Object.hasOwn(policy.servers ?? {}, from) ? policy.servers?.[from] : undefined
  return (
    byName(context, named, "tools", policy.tools, name, true) ??
    byName(context, named, `servers.${from}.tools`, server?.tools, ownName(context.call, from ?? ""), true) ??
    firstOf(context, named, `servers.${from}.default`, server?.default, false) ??
    byAnnotation(context, named, policy.annotations) ??
    firstOf(context, named, "default", policy.default, false)
  )
}

/** A name of a server, or of one of its tools, that no tool has that is offered, but one has a name that is near. */
export interface Stranger {
  readonly place: string
  readonly hint: string
}

const strangersIn = (
  place: string,
  named: ReadonlyArray<string>,
  there: ReadonlySet<string>
): ReadonlyArray<Stranger> =>
  named.flatMap((one) => {
    if (there.has(one)) return []
    const hint = didYouMean(one, there)
    return hint === "" ? [] : [{ place: `${place}.${one}`, hint }]
  })

/** The names of servers and their tools that seem misspelt: servers come and go, so one that is not here may be right. */
export const strangers = (
  policies: ReadonlyArray<Policy>,
  offered: ReadonlyArray<Pick<Call, "name" | "annotations">>
): ReadonlyArray<Stranger> => {
  const found = new Map<string, Set<string>>()
  for (const tool of offered) {
    const { server } = tool.annotations
    if (server === undefined) continue
    found.set(server, (found.get(server) ?? new Set()).add(ownName(tool, server)))
  }
  return policies.flatMap((policy, index) => {
    const servers = Object.entries(policy.servers ?? {})
    const who = `${nameOf(policy, index)}: servers`
    return [
      ...strangersIn(
        who,
        servers.map(([name]) => name),
        new Set(found.keys())
      ),
      ...servers.flatMap(([name, { tools = {} }]) =>
        strangersIn(
          `${who}.${name}.tools`,
          Object.keys(tools).filter((one) => !isWild(one) && !names([...(found.get(name) ?? [])], one)),
          found.get(name) ?? new Set()
        )
      )
    ]
  })
}

/** The word of a strict policy, or of whoever came after it: the stricter one, and of two that ask, who may decide. */
const stricterOf = (fixed: Word, later: Word): Word => {
  if (later.mode !== "ask" || fixed.mode !== "ask") return isStricter(later.mode, fixed.mode) ? later : fixed
  if (fixed.terms.deciders !== undefined || later.terms.deciders === undefined) return fixed
  const expiresIn = Math.min(fixed.terms.expiresIn ?? Infinity, later.terms.expiresIn ?? Infinity)
  return expiresIn === Infinity ? later : { ...later, terms: { ...later.terms, expiresIn } }
}

/** All words on a call, the one that decides first. */
export const decide = (
  policies: ReadonlyArray<Policy>,
  call: Call,
  parameters: JsonObject | undefined,
  onMisspelt: (found: Misspelt) => void
): ReadonlyArray<Word> => {
  const context: Context = { call, parameters: parametersOf(parameters), onMisspelt }
  let last: Word | undefined
  let isFixed = false
  const others: Array<Word> = []
  for (const [index, policy] of policies.entries()) {
    const word = wordOf(context, policy, nameOf(policy, index))
    if (word === undefined) continue
    const before = last
    last = before === undefined || !isFixed ? word : stricterOf(before, word)
    if (before !== undefined) others.unshift(last === before ? word : before)
    // A tool that is off stays off, whoever set it.
    isFixed ||= isStrict(policy, "tools") || word.rule.startsWith("off.")
  }
  return last === undefined ? [] : [last, ...others]
}
