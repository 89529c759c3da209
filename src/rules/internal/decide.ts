/** Applies the rules of policies to a call. */
import * as CommandRule from "../../backends/CommandRule.ts"
import { fromUnknown, isObject, type Json, type JsonObject } from "../../core/Json.ts"
import { names } from "../../core/Middleware.ts"
import * as Ruling from "../../core/Ruling.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import type { Annotations } from "../../core/Tool.ts"
import { describeArguments } from "../../core/ToolCall.ts"
import { once } from "../../support/effect/once.ts"
import { withDefaults } from "../../support/json/defaults.ts"
import { didYouMean } from "../../support/text/names.ts"
import { foldName } from "./fold.ts"
import { annotated, isStrict, nameOf, type Policy, type Rule, type Rules, type Verb } from "./model.ts"
import { type FormsBy, isWild, matchesArguments, matchesName } from "./patterns.ts"

/** A call. `given` returns the arguments that the tool runs with. */
export interface Call {
  readonly name: string
  readonly arguments: JsonObject
  readonly given?: (() => JsonObject) | undefined
  readonly annotations: Annotations
}

/** A rule that a call fits, and its place. */
interface Match {
  readonly by: string
  readonly rule: Omit<Rule, "arguments">
  /** True for a rule that is for the tool itself. */
  readonly isNamed: boolean
  /** The patterns that the call fits, unless one names an argument that the tool does not have. */
  readonly patterns: Rule["arguments"]
  /**
   * True if the call fits the rule as it is written: then no further rule is tried. If only folding makes it fit, the
   * next rules are tried too, and the strictest counts.
   */
  readonly isSure: boolean
}

/** The names of the parameters of a tool, where its schema has any. */
const parametersOf = (schema: JsonObject | undefined): ReadonlyArray<string> | undefined => {
  const properties: Json | undefined = schema?.["properties"]
  return isObject(properties) ? Object.keys(properties) : undefined
}

/** The names of arguments in a rule that the tool has no parameters for. */
const findMisspelt = (
  patterns: Rule["arguments"],
  argumentNames: ReadonlyArray<string> | undefined
): ReadonlyArray<string> =>
  argumentNames === undefined
    ? []
    : Object.keys(patterns ?? {}).filter(
        (path) => !argumentNames.includes(path) && !argumentNames.includes(path.split(".")[0] ?? "")
      )

/** An argument in a rule that the tool does not have: a rule that restricts holds for all of its calls then. */
export interface Misspelt {
  readonly rule: string
  readonly argument: string
  readonly hint: string
}

interface Context {
  readonly call: Call
  /** The arguments of the model, and the arguments that the tool runs with if they differ. */
  readonly views: () => ReadonlyArray<JsonObject>
  readonly cache: FormsBy
  readonly parameters: ReadonlyArray<string> | undefined
  readonly onMisspelt: (found: Misspelt) => void
}

const listOf = (rules: Rules): ReadonlyArray<Verb | Rule> =>
  typeof rules === "string" || "ruling" in rules ? [rules] : rules

/** Checks whether a rule is for the command line of a call. A call without one fits only rules that restrict. */
const matchesCommand = (
  command: NonNullable<Rule["command"]>,
  views: ReadonlyArray<JsonObject>,
  ruling: Verb
): boolean => {
  const rules = (typeof command === "string" ? [command] : command).map((one) => ({ ruling, command: one }))
  const isFor = ({ command: line }: JsonObject): boolean =>
    typeof line === "string" ? CommandRule.matches(rules, line) : ruling !== "allow"
  return ruling === "allow" ? views.every(isFor) : views.some(isFor)
}

/** Checks whether a call fits a rule. A restriction that can't be read restricts everything; a permission allows nothing. */
const fitOf = (
  { cache, views }: Context,
  { arguments: patterns, command, ruling: verb }: { readonly [Part in "arguments" | "command" | "ruling"]: Rule[Part] },
  isMisspelt: boolean
) => {
  if (isMisspelt) return verb === "allow" ? "not" : "surely"
  const isCovered = command === undefined || matchesCommand(command, views(), verb)
  if (!isCovered) return "not"
  if (patterns === undefined) return "surely"
  if (verb === "allow") return matchesArguments(patterns, views(), "closely", cache) ? "surely" : "not"
  if (matchesArguments(patterns, views(), "exactly", cache)) return "surely"
  return matchesArguments(patterns, views(), "widely", cache) ? "widely" : "not"
}

/** The rules of a list that a call fits, up to the first sure one. */
const matchesIn = (
  context: Context,
  policy: string,
  place: string,
  rules: Rules | undefined,
  isNamed: boolean
): ReadonlyArray<Match> => {
  if (rules === undefined) return []
  const { onMisspelt, parameters } = context
  const matches: Array<Match> = []
  const list = listOf(rules)
  for (const [index, one] of list.entries()) {
    const { arguments: patterns, ...rule }: Rule = typeof one === "string" ? { ruling: one } : one
    const by = `${policy}: ${rule.name ?? (list.length > 1 ? `${place}[${index}]` : place)}`
    const wrong = findMisspelt(patterns, parameters)
    for (const argument of wrong) onMisspelt({ rule: by, argument, hint: didYouMean(argument, parameters ?? []) })
    const fit = fitOf(context, { arguments: patterns, command: rule.command, ruling: rule.ruling }, wrong.length > 0)
    if (fit === "not") continue
    matches.push({ by, rule, isNamed, patterns: wrong.length > 0 ? undefined : patterns, isSure: fit === "surely" })
    if (fit === "surely") break
  }
  return matches
}

const isSure = (matches: ReadonlyArray<Match>): boolean => matches.some((match) => match.isSure)

const restrictionsIn = (matches: ReadonlyArray<Match>): ReadonlyArray<Match> =>
  matches.filter(({ rule }) => rule.ruling !== "allow")

type ByName = { readonly [name: string]: Rules } | undefined

/**
 * The rules by a name: the rules of the name itself, then the rules of all patterns that it fits. A pattern allows only
 * tools without rules of their own, and only by the name as it is written.
 */
const byName = (
  context: Context,
  policy: string,
  place: string,
  rules: ByName,
  name: string,
  isNamed: boolean
): ReadonlyArray<Match> => {
  if (rules === undefined) return []
  const all = Object.keys(rules)
  const own = Object.hasOwn(rules, name) ? name : all.find((one) => !isWild(one) && names([one], name))
  const ownMatches = own === undefined ? [] : matchesIn(context, policy, `${place}.${own}`, rules[own], isNamed)
  if (isSure(ownMatches)) return ownMatches
  const others = all.flatMap((one) => {
    if (one === own || !(isWild(one) ? matchesName(one, name, true) : foldName(one) === foldName(name))) return []
    const matches = matchesIn(context, policy, `${place}.${one}`, rules[one], false)
    return own === undefined && isWild(one) && matchesName(one, name, false) ? matches : restrictionsIn(matches)
  })
  return [...ownMatches, ...others]
}

/** Checks whether annotations may allow a call: the annotations of a server only if the policy trusts the server. */
const mayVouch = ({ annotations }: Call, servers: Policy["servers"]): boolean => {
  const { server } = annotations
  if (server === undefined) return true
  return servers !== undefined && Object.hasOwn(servers, server) && servers[server]?.trusted === true
}

const byAnnotation = (context: Context, policy: string, { annotations, servers }: Policy): ReadonlyArray<Match> => {
  if (annotations === undefined) return []
  const matches = annotated.flatMap((annotation) =>
    context.call.annotations[annotation] === true
      ? matchesIn(context, policy, `annotations.${annotation}`, annotations[annotation], false)
      : []
  )
  return mayVouch(context.call, servers) ? matches : restrictionsIn(matches)
}

/** The server's own name of a tool. Without it, the rest of the tool's name behind the server's. */
const ownName = ({ annotations, name }: Pick<Call, "name" | "annotations">, server: string): string => {
  if (annotations.serverTool !== undefined) return annotations.serverTool
  const prefix = name.startsWith(`${server}__`) ? server.length : name.indexOf("__")
  return prefix < 0 ? name : name.slice(prefix + 2)
}

/** The rules for the server of a tool. If they spell the server otherwise, they only restrict. */
const byServer = (context: Context, policy: string, servers: Policy["servers"]): ReadonlyArray<Match> => {
  const { server } = context.call.annotations
  if (server === undefined || servers === undefined) return []
  const name = ownName(context.call, server)
  return Object.keys(servers).flatMap((one) => {
    if (one !== server && foldName(one) !== foldName(server)) return []
    const { default: otherwise, tools } = servers[one] ?? {}
    const named = byName(context, policy, `servers.${one}.tools`, tools, name, true)
    const matches = isSure(named)
      ? named
      : [...named, ...matchesIn(context, policy, `servers.${one}.default`, otherwise, false)]
    return one === server ? matches : restrictionsIn(matches)
  })
}

/** Finds the entry of `off` that a tool fits. */
export const offOf = (policy: Policy, tool: string): string | undefined =>
  policy.off?.tools?.find((one) => (isWild(one) ? matchesName(one, tool, true) : names([one], tool)))

/** The rules of one policy that decide on a call, first the sure ones. */
const matchesOf = (context: Context, policy: Policy, policyName: string): ReadonlyArray<Match> => {
  const { name } = context.call
  const off = offOf(policy, name)
  if (off !== undefined) {
    const by = `${policyName}: off.tools (${off})`
    return [{ by, rule: { ruling: "refuse" }, isNamed: true, patterns: undefined, isSure: true }]
  }
  const levels: ReadonlyArray<() => ReadonlyArray<Match>> = [
    () => byName(context, policyName, "tools", policy.tools, name, true),
    () => byServer(context, policyName, policy.servers),
    () => byAnnotation(context, policyName, policy),
    () => matchesIn(context, policyName, "default", policy.default, false)
  ]
  const matches: Array<Match> = []
  for (const level of levels) {
    matches.push(...level())
    if (isSure(matches)) break
  }
  return [...matches.filter((match) => match.isSure), ...matches.filter((match) => !match.isSure)]
}

/** A name of a server or of its tool that seems misspelt, and the consequence. */
interface Stranger {
  readonly place: string
  readonly problem: string
}

const findStrangersIn = (
  place: string,
  named: ReadonlyArray<string>,
  there: ReadonlySet<string>
): ReadonlyArray<Stranger> =>
  named.flatMap((one) => {
    if (there.has(one)) return []
    const namesake = [...there].find((name) => foldName(name) === foldName(one))
    if (namesake !== undefined) {
      const problem = `is written otherwise than ${JSON.stringify(namesake)}, so its rules restrict that, and allow nothing.`
      return [{ place: `${place}.${one}`, problem }]
    }
    const hint = didYouMean(one, there)
    const problem = `is for nothing that is here, so its rules hold for no call.${hint}`
    return hint === "" ? [] : [{ place: `${place}.${one}`, problem }]
  })

/** The names of servers and their tools that seem misspelt. Servers come and go, so an unknown name may be right. */
export const findStrangers = (
  policies: ReadonlyArray<Policy>,
  offered: ReadonlyArray<Pick<Call, "name" | "annotations">>
): ReadonlyArray<Stranger> => {
  const toolsByServer = new Map<string, Set<string>>()
  for (const tool of offered) {
    const { server } = tool.annotations
    if (server === undefined) continue
    toolsByServer.set(server, (toolsByServer.get(server) ?? new Set()).add(ownName(tool, server)))
  }
  return policies.flatMap((policy, index) => {
    const servers = Object.entries(policy.servers ?? {})
    const who = `${nameOf(policy, index)}: servers`
    return [
      ...findStrangersIn(
        who,
        servers.map(([name]) => name),
        new Set(toolsByServer.keys())
      ),
      ...servers.flatMap(([name, { tools = {} }]) =>
        findStrangersIn(
          `${who}.${name}.tools`,
          Object.keys(tools).filter((one) => !isWild(one) && !names([...(toolsByServer.get(name) ?? [])], one)),
          toolsByServer.get(name) ?? new Set()
        )
      )
    ]
  })
}

/** The arguments of the model, and the arguments that the tool runs with if they differ. */
const viewsOf = (call: Call, parameters: JsonObject | undefined): ReadonlyArray<JsonObject> => {
  const effectiveArgs = call.given === undefined ? withDefaults(parameters ?? {}, call.arguments) : call.given()
  return effectiveArgs === call.arguments ? [effectiveArgs] : [call.arguments, effectiveArgs]
}

/** The calls that an approval for good covers: their key, and a text for a person. */
interface Likeness {
  readonly key: string
  readonly text: string
}

/**
 * The calls that are like this one to a rule: calls with the same values of the arguments in its patterns, or with the
 * same arguments if it has no patterns; with `always: "rule"`, all calls that it asks about.
 */
const likenessOf = ({ patterns, rule }: Match, call: Call): Likeness => {
  const ruleKey = canonical(fromUnknown([patterns ?? {}, rule.always ?? ""]))
  if (rule.always === "rule") return { key: ruleKey, text: "every call that this rule asks about" }
  const views = viewsOf(call, undefined)
  const named = new Set(Object.keys(patterns ?? {}).flatMap((path) => [path, path.split(".")[0] ?? ""].map(foldName)))
  const matched = views.map((args) =>
    Object.fromEntries(Object.entries(args).filter(([name]) => named.has(foldName(name))))
  )
  const argumentNames = [...new Set(matched.flatMap(Object.keys))]
  return argumentNames.length === 0
    ? { key: `${ruleKey} ${canonical(views)}`, text: `calls of ${call.name} with the same arguments` }
    : {
        key: `${ruleKey} ${canonical(matched)}`,
        text: `calls of ${call.name} with the same ${argumentNames.join(", ")}, whatever else they say`
      }
}

const rulingOf = (match: Match, call: Call, getArguments: () => JsonObject): Ruling.Ruling => {
  const { by, isNamed, rule } = match
  const { deciders, expiresIn, reason, ruling } = rule
  if (ruling === "allow") return Ruling.allow(by, { settles: isNamed })
  if (ruling === "refuse") {
    const why = reason === undefined ? "." : `: ${reason}`
    return Ruling.refuse(by, `Not executed: a policy does not allow it (${by})${why}`)
  }
  const like = likenessOf(match, call)
  return Ruling.ask(by, {
    description: `${call.name} ${describeArguments(getArguments())}`,
    reason: [...(reason === undefined ? [] : [reason]), `An approval for good covers ${like.text}.`].join("\n"),
    deciders,
    expiresIn,
    byPerson: true,
    likeness: like.key,
    settles: true
  })
}

/**
 * The verdict of policies on a call; `undefined` if none speaks of it. A later policy overrides earlier ones. From the
 * first strict policy on, all rulings count together. The overridden rulings are last in the verdict.
 */
export const decide = (
  policies: ReadonlyArray<Policy>,
  call: Call,
  parameters: JsonObject | undefined,
  onMisspelt: (found: Misspelt) => void
): Ruling.Verdict | undefined => {
  const views = once(() => viewsOf(call, parameters))
  const lastView = (): JsonObject => views().at(-1) ?? call.arguments
  const context: Context = { call, views, cache: new Map(), parameters: parametersOf(parameters), onMisspelt }
  let current: ReadonlyArray<Ruling.Ruling> = []
  let overridden: ReadonlyArray<Ruling.Ruling> = []
  let isFixed = false
  for (const [index, policy] of policies.entries()) {
    const matches = matchesOf(context, policy, nameOf(policy, index))
    if (matches.length === 0) continue
    const rulings = matches.map((match) => rulingOf(match, call, lastView))
    if (isFixed) current = [...current, ...rulings]
    else {
      overridden = [...current, ...overridden]
      current = rulings
    }
    // A tool that is off stays off, whoever set it.
    isFixed ||= isStrict(policy, "tools") || offOf(policy, call.name) !== undefined
  }
  if (current.length === 0) return undefined
  const { ruling, rulings } = Ruling.compose(current)
  return { ruling, rulings: [...rulings, ...overridden] }
}
