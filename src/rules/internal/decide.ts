/** The decision of policies on a call: which rule speaks, and which policy has the last word. */
import { fromUnknown, isObject, type Json, type JsonObject } from "../../core/Json.ts"
import { names } from "../../core/Middleware.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import type { Annotations } from "../../core/Tool.ts"
import { once } from "../../support/effect/once.ts"
import { withDefaults } from "../../support/json/defaults.ts"
import { didYouMean } from "../../support/text/names.ts"
import { foldName } from "./fold.ts"
import { annotated, isStrict, type Mode, type Policy, type Rule, type Rules } from "./model.ts"
import { type FormsBy, isWild, matchesArguments, matchesName } from "./patterns.ts"

/** A call, as it is asked about. `given` gives the arguments that the tool runs with. */
export interface Call {
  readonly name: string
  readonly arguments: JsonObject
  readonly given?: (() => JsonObject) | undefined
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
  /** The patterns that the call fits, where they could be read. */
  readonly patterns: Rule["arguments"]
}

const strictness: { readonly [M in Mode]: number } = { allow: 0, ask: 1, deny: 2 }

const isStricter = (left: Mode, right: Mode): boolean => strictness[left] > strictness[right]

/** The word of a strict policy, or of whoever came after it: the stricter one, and of two that ask, who may decide. */
const stricterOf = (fixed: Word, later: Word): Word => {
  if (later.mode !== "ask" || fixed.mode !== "ask") return isStricter(later.mode, fixed.mode) ? later : fixed
  if (fixed.terms.deciders !== undefined || later.terms.deciders === undefined) return fixed
  const expiresIn = Math.min(fixed.terms.expiresIn ?? Infinity, later.terms.expiresIn ?? Infinity)
  return expiresIn === Infinity ? later : { ...later, terms: { ...later.terms, expiresIn } }
}

/** The names of the parameters of a tool, where its schema has any. */
const parametersOf = (schema: JsonObject | undefined): ReadonlyArray<string> | undefined => {
  const properties: Json | undefined = schema?.["properties"]
  return isObject(properties) ? Object.keys(properties) : undefined
}

/** The names of arguments in a rule that the tool has no parameters for. */
const misspelt = (patterns: Rule["arguments"], known: ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  known === undefined
    ? []
    : Object.keys(patterns ?? {}).filter((path) => !known.includes(path) && !known.includes(path.split(".")[0] ?? ""))

/** A name of an argument in a rule that the tool does not have: the rule holds for all of its calls then. */
export interface Misspelt {
  readonly rule: string
  readonly argument: string
  readonly hint: string
}

interface Context {
  readonly call: Call
  /** The arguments as the model gave them and, where these differ, as the tool runs with them. */
  readonly views: () => ReadonlyArray<JsonObject>
  readonly known: FormsBy
  readonly parameters: ReadonlyArray<string> | undefined
  readonly onMisspelt: (found: Misspelt) => void
}

/**
 * A rule that a call fits. It is sure where the call fits it as it is written: no further rule is looked at. Where only
 * folding makes it fit, the rules behind it are looked at too, and the strictest counts.
 */
interface Fit {
  readonly word: Word
  readonly isSure: boolean
}

const listOf = (rules: Rules): ReadonlyArray<Mode | Rule> =>
  typeof rules === "string" || "mode" in rules ? [rules] : rules

/** Tells how a call fits a rule. A restriction that can't be read restricts everything; a permission allows nothing. */
const fitOf = ({ known, views }: Context, patterns: Rule["arguments"], mode: Mode, isMisspelt: boolean) => {
  if (isMisspelt) return mode === "allow" ? "not" : "surely"
  if (patterns === undefined) return "surely"
  if (mode === "allow") return matchesArguments(patterns, views(), "closely", known) ? "surely" : "not"
  if (matchesArguments(patterns, views(), "exactly", known)) return "surely"
  return matchesArguments(patterns, views(), "widely", known) ? "widely" : "not"
}

/** The rules of a list that fit a call, up to the first that does so surely. */
const fitsOf = (
  context: Context,
  policy: string,
  place: string,
  rules: Rules | undefined,
  isNamed: boolean
): ReadonlyArray<Fit> => {
  if (rules === undefined) return []
  const { onMisspelt, parameters } = context
  const found: Array<Fit> = []
  const list = listOf(rules)
  for (const [index, one] of list.entries()) {
    const rule = list.length > 1 ? `${place}[${index}]` : place
    const { arguments: patterns, mode, ...terms }: Rule = typeof one === "string" ? { mode: one } : one
    const wrong = misspelt(patterns, parameters)
    for (const argument of wrong)
      onMisspelt({ rule: `${policy}: ${rule}`, argument, hint: didYouMean(argument, parameters ?? []) })
    const fit = fitOf(context, patterns, mode, wrong.length > 0)
    const word: Word = { policy, rule, mode, isNamed, terms, patterns: wrong.length > 0 ? undefined : patterns }
    if (fit !== "not") found.push({ word, isSure: fit === "surely" })
    if (fit === "surely") break
  }
  return found
}

const isSure = (found: ReadonlyArray<Fit>): boolean => found.some((fit) => fit.isSure)

const restricting = (found: ReadonlyArray<Fit>): ReadonlyArray<Fit> => found.filter(({ word }) => word.mode !== "allow")

type ByName = { readonly [name: string]: Rules } | undefined

/**
 * The rules by a name: those of the name itself, then those of all patterns that it fits. A pattern allows only tools
 * that have no rule of their own, and it allows by the name as it is written.
 */
const byName = (
  context: Context,
  policy: string,
  place: string,
  rules: ByName,
  name: string,
  isNamed: boolean
): ReadonlyArray<Fit> => {
  if (rules === undefined) return []
  const all = Object.keys(rules)
  const own = Object.hasOwn(rules, name) ? name : all.find((one) => !isWild(one) && names([one], name))
  const found = own === undefined ? [] : fitsOf(context, policy, `${place}.${own}`, rules[own], isNamed)
  if (isSure(found)) return found
  const others = all.flatMap((one) => {
    if (one === own || !(isWild(one) ? matchesName(one, name, true) : foldName(one) === foldName(name))) return []
    const fits = fitsOf(context, policy, `${place}.${one}`, rules[one], false)
    return own === undefined && isWild(one) && matchesName(one, name, false) ? fits : restricting(fits)
  })
  return [...found, ...others]
}

/** Tells whether what a tool says of itself may allow: a server's own word only where the policy trusts the server. */
const mayVouch = ({ annotations }: Call, servers: Policy["servers"]): boolean => {
  const { server } = annotations
  if (server === undefined) return true
  return servers !== undefined && Object.hasOwn(servers, server) && servers[server]?.trusted === true
}

const byAnnotation = (context: Context, policy: string, { annotations, servers }: Policy): ReadonlyArray<Fit> => {
  if (annotations === undefined) return []
  const found = annotated.flatMap((annotation) =>
    context.call.annotations[annotation] === true
      ? fitsOf(context, policy, `annotations.${annotation}`, annotations[annotation], false)
      : []
  )
  return mayVouch(context.call, servers) ? found : restricting(found)
}

/** The name that the server gave a tool: where nobody says it, what comes behind the server's own. */
const ownName = ({ annotations, name }: Pick<Call, "name" | "annotations">, server: string): string => {
  if (annotations.serverTool !== undefined) return annotations.serverTool
  const prefix = name.startsWith(`${server}__`) ? server.length : name.indexOf("__")
  return prefix < 0 ? name : name.slice(prefix + 2)
}

/** The rules for the server of a tool. Those of a server whose name is written otherwise only restrict. */
const byServer = (context: Context, policy: string, servers: Policy["servers"]): ReadonlyArray<Fit> => {
  const { server } = context.call.annotations
  if (server === undefined || servers === undefined) return []
  const name = ownName(context.call, server)
  return Object.keys(servers).flatMap((one) => {
    if (one !== server && foldName(one) !== foldName(server)) return []
    const { default: otherwise, tools } = servers[one] ?? {}
    const named = byName(context, policy, `servers.${one}.tools`, tools, name, true)
    const found = isSure(named)
      ? named
      : [...named, ...fitsOf(context, policy, `servers.${one}.default`, otherwise, false)]
    return one === server ? found : restricting(found)
  })
}

export const nameOf = ({ name }: Policy, index: number): string => name ?? `policy ${index + 1}`

/** Finds a tool among those that are off. */
export const offOf = (policy: Policy, tool: string): string | undefined =>
  policy.off?.tools?.find((one) => (isWild(one) ? matchesName(one, tool, true) : names([one], tool)))

const wordOf = (context: Context, policy: Policy, named: string): Word | undefined => {
  const { name } = context.call
  const off = offOf(policy, name)
  if (off !== undefined)
    return { policy: named, rule: `off.tools (${off})`, mode: "deny", isNamed: true, terms: {}, patterns: undefined }
  const levels: ReadonlyArray<() => ReadonlyArray<Fit>> = [
    () => byName(context, named, "tools", policy.tools, name, true),
    () => byServer(context, named, policy.servers),
    () => byAnnotation(context, named, policy),
    () => fitsOf(context, named, "default", policy.default, false)
  ]
  const found: Array<Fit> = []
  for (const level of levels) {
    found.push(...level())
    if (isSure(found)) break
  }
  // What the rules say as they are written is first; of two that are as strict, it decides.
  const [first, ...others] = [...found.filter((fit) => fit.isSure), ...found.filter((fit) => !fit.isSure)]
  return first === undefined
    ? undefined
    : others.reduce((strictest, { word }) => stricterOf(strictest, word), first.word)
}

/** A name of a server, or of one of its tools, that is misspelt as it seems, and what follows from that. */
export interface Stranger {
  readonly place: string
  readonly problem: string
}

const strangersIn = (
  place: string,
  named: ReadonlyArray<string>,
  there: ReadonlySet<string>
): ReadonlyArray<Stranger> =>
  named.flatMap((one) => {
    if (there.has(one)) return []
    const meant = [...there].find((name) => foldName(name) === foldName(one))
    if (meant !== undefined) {
      const problem = `is written otherwise than ${JSON.stringify(meant)}, so its rules restrict that, and allow nothing.`
      return [{ place: `${place}.${one}`, problem }]
    }
    const hint = didYouMean(one, there)
    const problem = `is for nothing that is here, so its rules hold for no call.${hint}`
    return hint === "" ? [] : [{ place: `${place}.${one}`, problem }]
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

/** The arguments of a call as the model gave them and, where these differ, as the tool runs with them. */
const viewsOf = (call: Call, parameters: JsonObject | undefined): ReadonlyArray<JsonObject> => {
  const given = call.given === undefined ? withDefaults(parameters ?? {}, call.arguments) : call.given()
  return given === call.arguments ? [given] : [call.arguments, given]
}

/** The calls that an approval for good covers: a key of them, and the same in words. */
export interface Likeness {
  readonly key: string
  readonly text: string
}

/**
 * The calls that are like this one to a rule: those with the same values of the arguments that its patterns are about,
 * or with all the same arguments where it has no patterns; all that it asks about, if it says so.
 */
export const likenessOf = ({ patterns, terms }: Word, call: Call): Likeness => {
  const rule = canonical(fromUnknown([patterns ?? {}, terms.always ?? ""]))
  if (terms.always === "rule") return { key: rule, text: "every call that this rule asks about" }
  const views = viewsOf(call, undefined)
  const names = new Set(Object.keys(patterns ?? {}).flatMap((path) => [path, path.split(".")[0] ?? ""].map(foldName)))
  const looked = views.map((args) =>
    Object.fromEntries(Object.entries(args).filter(([name]) => names.has(foldName(name))))
  )
  const seen = [...new Set(looked.flatMap(Object.keys))]
  return seen.length === 0
    ? { key: `${rule} ${canonical(views)}`, text: `calls of ${call.name} with the same arguments` }
    : {
        key: `${rule} ${canonical(looked)}`,
        text: `calls of ${call.name} with the same ${seen.join(", ")}, whatever else they say`
      }
}

/** All words on a call, the one that decides first. */
export const decide = (
  policies: ReadonlyArray<Policy>,
  call: Call,
  parameters: JsonObject | undefined,
  onMisspelt: (found: Misspelt) => void
): ReadonlyArray<Word> => {
  const context: Context = {
    call,
    views: once(() => viewsOf(call, parameters)),
    known: new Map(),
    parameters: parametersOf(parameters),
    onMisspelt
  }
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
