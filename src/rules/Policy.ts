/**
 * Say what agents may do, as data: a value with a schema that an application stores, shows and edits.
 *
 * A policy has rules for calls (by tool, by MCP server, by annotation, by argument), permissions for files, the reach on
 * the machine, and budgets. Several are put together, of an organisation, a project, a user: a later one overrides an
 * earlier one, but where that is strict, the stricter wins. They compile to the middleware and layers of this library.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Tool } from "effect-deepagents"
 * import { Policy } from "effect-deepagents/rules"
 *
 * declare const tools: ReadonlyArray<Tool.Tool>
 *
 * const program = Effect.gen(function* () {
 *   const organisation = yield* Policy.fromYaml(`
 *     name: organisation
 *     strict: true
 *     annotations: { destructive: ask }
 *     tools:
 *       pay: { mode: ask, arguments: { amount: { above: 100 } }, deciders: ["role:finance"] }
 *     budget: { tokens: 200000 }
 *   `)
 *   const policy = yield* Effect.fromResult(Policy.compile([organisation]))
 *   const agent = Agent.make({ name: "clerk", prompt: "You pay bills.", tools, middleware: policy.middleware })
 *   return yield* Agent.run(agent, "Pay what is due")
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Permissions from "../backends/Permissions.ts"
import * as Agent from "../core/Agent.ts"
import * as Backend from "../core/Backend.ts"
import type { JsonObject } from "../core/Json.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import * as Sandboxes from "../core/Sandbox.ts"
import type { Annotations } from "../core/Tool.ts"
import { describeArguments } from "../core/ToolCall.ts"
import * as Budget from "../middleware/Budget.ts"
import type * as Network from "../net/Network.ts"
import * as Attached from "../support/effect/attached.ts"
import { at, brief, problems } from "../support/text/issues.ts"
import { didYouMean } from "../support/text/names.ts"
import { parseYaml } from "../support/text/yaml.ts"
import { decide, likenessOf, type Misspelt, nameOf, offOf, strangers, type Word } from "./internal/decide.ts"
import { budgetOf, networkOf, permissionsOf, sandboxOf } from "./internal/merge.ts"
import { fieldNames, type Limits, type Mode, Policy, type Sandbox } from "./internal/model.ts"
import { isWild } from "./internal/patterns.ts"

export { Limits, Mode, Pattern, Policy, Rule, Rules, Sandbox, Server } from "./internal/model.ts"

/** A policy can't be taken. `policy` is its name, `path` where it is wrong. */
export class InvalidPolicy extends Schema.TaggedError<InvalidPolicy>()("InvalidPolicy", {
  policy: Schema.String,
  path: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The policy "${this.policy}" can't be taken: ${this.path === "" ? "" : `${this.path}: `}${this.problem}`
  }
}

const decodeStrictly = Schema.decodeUnknownEffect(Policy, { onExcessProperty: "error" })

/** The name of a policy that is not one yet. */
const nameIn = (input: unknown): string => {
  const name = at(input, ["name"])
  return typeof name === "string" ? name : "policy"
}

/** Decodes a policy. A field that there is not is refused, with those that are near. */
export const fromUnknown = (input: unknown): Effect.Effect<Policy, InvalidPolicy> =>
  Effect.mapError(decodeStrictly(input), ({ issue }) => {
    const { expected = "a policy", keys = [], path = "" } = problems(issue)[0] ?? {}
    const last = keys.at(-1)
    const hint = typeof last === "string" && !fieldNames.has(last) ? didYouMean(last, fieldNames) : ""
    const found = brief(at(input, keys))
    return new InvalidPolicy({ policy: nameIn(input), path, problem: `expected ${expected}, got ${found}.${hint}` })
  })

/** The longest text of a policy, in characters. */
const maxLength = 262_144

/** Reads a policy from YAML, or from JSON, which YAML includes: at most 262,144 characters, without aliases. */
export const fromYaml = (text: string): Effect.Effect<Policy, InvalidPolicy> =>
  Effect.flatMap(
    Effect.mapError(
      parseYaml(text, maxLength),
      (problem) => new InvalidPolicy({ policy: "policy", path: "", problem })
    ),
    fromUnknown
  )

/**
 * The word of policies on a call: whose it is, by which rule (`tools.pay[1]`), and what the others said. Without a rule,
 * no policy speaks of the call, and it runs as far as they go.
 */
export interface Explanation {
  readonly mode: Mode
  readonly policy: string | undefined
  readonly rule: string | undefined
  readonly reason: string | undefined
  readonly deciders: ReadonlyArray<string> | undefined
  readonly overridden: ReadonlyArray<{ readonly policy: string; readonly rule: string; readonly mode: Mode }>
}

/**
 * A call to be explained: one that a gate was asked about, or another. `given` gives the arguments that the tool runs
 * with (default: `arguments`, with the defaults of `parameters`). `parameters` is the JSON Schema of the tool: with it, a
 * rule about an argument that the tool does not have is seen.
 */
export interface Call {
  readonly name: string
  readonly arguments?: JsonObject | undefined
  readonly given?: (() => JsonObject) | undefined
  readonly annotations?: Annotations | undefined
  readonly parameters?: JsonObject | undefined
}

/**
 * Policies, ready to be used.
 *
 * - `middleware`: for the rules of calls and the budget. Sub-agents inherit it. A tool that a rule names needs no approval
 *   of its own.
 * - `files`: permissions and reach, before the `Backend` that it is given; `sandbox` is for one that runs commands, and
 *   fails where they are denied: take `files` then.
 * - `apply`: the agent without the middleware that is off; see `Agent.without`
 * - `explain`, `explainPath`: which rule decides
 * - `budget`, `reach`, `network`: what the policies come to. Give `network` to `Network.layer`, or on Node to
 *   `NodeNetwork.layer`, and the client of that to all that opens a URL.
 */
export interface Compiled {
  readonly policies: ReadonlyArray<Policy>
  readonly middleware: ReadonlyArray<Middleware.Middleware<Budget.BudgetExceeded> | Middleware.Asking>
  readonly files: Layer.Layer<Backend.Backend, Permissions.InvalidPermissions, Backend.Backend>
  readonly sandbox: Layer.Layer<Sandboxes.Sandbox | Backend.Backend, Permissions.InvalidPermissions, Sandboxes.Sandbox>
  readonly apply: <O, E, R>(agent: Agent.Agent<O, E, R>) => Agent.Agent<O, E, R>
  readonly explain: (call: Call) => Explanation
  readonly explainPath: (operation: Permissions.FileOperation, path: string) => Mode
  readonly budget: Limits | undefined
  readonly reach: Sandbox | undefined
  readonly network: Network.Rules | undefined
}

const explanationOf = ([first, ...others]: ReadonlyArray<Word>): Explanation => ({
  mode: first?.mode ?? "allow",
  policy: first?.policy,
  rule: first?.rule,
  reason: first?.terms.reason,
  deciders: first?.terms.deciders,
  overridden: others.map(({ mode, policy, rule }) => ({ policy, rule, mode }))
})

/** The name of the middleware that policies compile to, beside that of the budget. */
const name = "Policy"

const rulingOf = (word: Word, call: Middleware.PreparedCall): Ruling.Ruling => {
  const rule = `${word.policy}: ${word.rule}`
  const { deciders, expiresIn, reason } = word.terms
  if (word.mode === "deny") {
    const why = reason === undefined ? "." : `: ${reason}`
    return Ruling.refuse(rule, `Not executed: a policy does not allow it (${rule})${why}`)
  }
  if (word.mode === "allow") return Ruling.allow(rule, { settles: word.isNamed })
  const like = likenessOf(word, call)
  return Ruling.ask(rule, {
    description: `${call.name} ${describeArguments(call.given())}`,
    reason: [...(reason === undefined ? [] : [reason]), `An approval for good covers ${like.text}.`].join("\n"),
    deciders,
    expiresIn,
    byPerson: true,
    likeness: like.key,
    settles: true
  })
}

const rulings = (policies: ReadonlyArray<Policy>) => {
  const warned = Attached.make<Run, Set<string>>()
  const warn = (run: Run, text: string): Effect.Effect<void> => {
    const known = warned.get(run) ?? new Set<string>()
    warned.set(run, known)
    if (known.has(text)) return Effect.void
    known.add(text)
    return run.warn("policy", text)
  }
  const ofArgument = ({ argument, hint, rule }: Misspelt): string =>
    `${rule} has a pattern for the argument "${argument}", which the tool does not have, so it holds for all calls if it restricts, and for none if it allows.${hint}`
  const hasServers = policies.some(({ servers }) => servers !== undefined)
  return Effect.fnUntraced(function* (run: Run, calls: ReadonlyArray<Middleware.PreparedCall>) {
    const found: Array<Misspelt> = []
    const answers = calls.map((call) => {
      const offered = run.offered.find((one) => one.name === call.name)
      const [word] = decide(policies, call, offered?.parameters, (one) => found.push(one))
      return word === undefined ? undefined : rulingOf(word, call)
    })
    for (const one of found) yield* warn(run, ofArgument(one))
    if (hasServers) {
      for (const { place, problem } of strangers(policies, run.offered)) yield* warn(run, `${place} ${problem}`)
    }
    return answers
  })
}

/** The names of tools in policies that no tool of the agent has, nor one that is known elsewhere. */
const unknownNames = (
  policies: ReadonlyArray<Policy>,
  known: ReadonlySet<string>,
  reach: ReadonlySet<string>
): string | undefined => {
  const all = new Set([...reach, ...known])
  for (const [index, policy] of policies.entries()) {
    const named = [...Object.keys(policy.tools ?? {}), ...(policy.off?.tools ?? [])].filter((one) => !isWild(one))
    const problem = Middleware.unknownTool(`the policy "${nameOf(policy, index)}" is for`, named, all)
    if (problem !== undefined) return problem
  }
  return undefined
}

const isOff =
  (policies: ReadonlyArray<Policy>) =>
  (tool: string): boolean =>
    policies.some((policy) => offOf(policy, tool) !== undefined)

/** The rules for calls as the parts of a middleware. */
const partsOf = (policies: ReadonlyArray<Policy>, known: ReadonlySet<string>) => {
  const off = isOff(policies)
  return {
    name,
    inherit: true,
    asks: true as const,
    check: (_tools: ReadonlySet<string>, reach: ReadonlySet<string>) => unknownNames(policies, known, reach),
    rulings: rulings(policies),
    wrapModelCall: ((request, next) => {
      const tools = request.tools.filter((tool) => !off(tool.name))
      return next(tools.length === request.tools.length ? request : { ...request, tools })
    }) satisfies NonNullable<Middleware.Middleware["wrapModelCall"]>
  }
}

/** The permissions of a policy can't be. */
const notPermissions =
  (policy: string) =>
  ({ field, problem, rule }: Permissions.InvalidPermissions): InvalidPolicy =>
    new InvalidPolicy({
      policy,
      path: rule === "default" ? "files.default" : `files.rules[${rule}].${field}`,
      problem
    })

/**
 * Makes policies ready, from the most general (an organisation's) to the most particular (a user's). Names of tools that
 * the agent does not have fail its runs with `InvalidAgent`, and with the names that are near: `known` are those that
 * other agents have, or that come and go. Names with wildcards, and those of servers' tools, may fit nothing.
 */
export const compile = (
  policies: ReadonlyArray<Policy>,
  options?: { readonly known?: Iterable<string> | undefined }
): Result.Result<Compiled, InvalidPolicy> => {
  const own = policies.flatMap((policy, index) =>
    policy.files === undefined
      ? []
      : [Result.mapError(Permissions.compile(policy.files), notPermissions(nameOf(policy, index)))]
  )
  const together = permissionsOf(policies)
  return Result.flatMap(Result.all(own), () =>
    Result.map(
      Result.mapError(Result.all(together.map(Permissions.compile)), notPermissions("all together")),
      (permissions) => ready(policies, together, permissions, new Set(options?.known))
    )
  )
}

const ready = (
  policies: ReadonlyArray<Policy>,
  together: ReadonlyArray<Permissions.Options>,
  permissions: ReadonlyArray<Permissions.Policy>,
  known: ReadonlySet<string>
): Compiled => {
  const budget = budgetOf(policies)
  const limits =
    budget === undefined ? [] : [Budget.make({ ...budget, onExhausted: budget.onExhausted ?? "finalAnswer" })]
  const off = policies.flatMap((policy) => policy.off?.middleware ?? [])
  return {
    policies,
    middleware: [...limits, Middleware.make(partsOf(policies, known))],
    files: together.reduce<Compiled["files"]>(
      (inner, one) => Layer.provide(Permissions.layer(one), inner),
      Backend.layer(Backend.Backend)
    ),
    sandbox: together.reduce<Compiled["sandbox"]>(
      (inner, one) => Layer.provide(Permissions.layerSandbox(one), inner),
      Sandboxes.layer(Sandboxes.Sandbox)
    ),
    apply: (agent) => (off.length === 0 ? agent : Agent.without(agent, off)),
    explain: ({ annotations = {}, arguments: args = {}, given, name: tool, parameters }) =>
      explanationOf(decide(policies, { name: tool, arguments: args, given, annotations }, parameters, () => undefined)),
    explainPath: (operation, path) => {
      const modes = permissions.map((one) => Permissions.decide(one, operation, path).mode)
      return modes.includes("deny") ? "deny" : modes.includes("ask") ? "ask" : "allow"
    },
    budget,
    reach: sandboxOf(policies),
    network: networkOf(policies)
  }
}
