/**
 * Say what agents may do, as data: a value with a schema that an application stores, shows and edits.
 *
 * A policy has rules for calls (by tool, MCP server, annotation, argument), rules for files and requests, the reach on the
 * machine, and budgets. Several policies combine: of an organisation, a project, a user. A later one overrides an earlier
 * one; after a strict policy, the stricter ruling wins. They compile to the middleware and layers of this library.
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
 *       pay: { ruling: ask, arguments: { amount: { above: 100 } }, deciders: ["role:finance"] }
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
import * as Budget from "../middleware/Budget.ts"
import type * as Network from "../net/Network.ts"
import * as Attached from "../support/effect/attached.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { check } from "../support/options/check.ts"
import { at, brief, problems } from "../support/text/issues.ts"
import { didYouMean } from "../support/text/names.ts"
import { parseYaml } from "../support/text/yaml.ts"
import { decide, type Call, findStrangers, type Misspelt, offOf } from "./internal/decide.ts"
import { budgetOf, networkOf, permissionsOf, sandboxOf } from "./internal/merge.ts"
import { fieldNames, type Limits, nameOf, Policy, type Sandbox } from "./internal/model.ts"
import { isWild } from "./internal/patterns.ts"
import * as shapes from "./internal/shapes.ts"

export { Policy, Rule } from "./internal/model.ts"

/** A policy is wrong. `policy` is its name, `path` the wrong field. */
export class InvalidPolicy extends TaggedError<InvalidPolicy>()("InvalidPolicy", {
  policy: Schema.String,
  path: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The policy "${this.policy}" can't be taken: ${this.path === "" ? "" : `${this.path}: `}${this.problem}`
  }
}

const decodeStrictly = Schema.decodeUnknownEffect(Policy, { onExcessProperty: "error" })

/** The name of an undecoded policy. */
const nameIn = (input: unknown): string => {
  const name = at(input, ["name"])
  return typeof name === "string" ? name : "policy"
}

/** Decodes a policy. An unknown field fails, with a suggestion. */
export const fromUnknown = (input: unknown): Effect.Effect<Policy, InvalidPolicy> =>
  Effect.mapError(decodeStrictly(input), ({ issue }) => {
    const { expected = "a policy", keys = [], path = "" } = problems(issue)[0] ?? {}
    const last = keys.at(-1)
    const hint = typeof last === "string" && !fieldNames.has(last) ? didYouMean(last, fieldNames) : ""
    const actual = brief(at(input, keys))
    return new InvalidPolicy({ policy: nameIn(input), path, problem: `expected ${expected}, got ${actual}.${hint}` })
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

/** Combined policies, ready to use. */
export interface CompiledPolicies {
  readonly policies: ReadonlyArray<Policy>
  /** The rules for calls, and the budget. Sub-agents inherit it. A rule by the name of a tool settles `needsApproval`. */
  readonly middleware: ReadonlyArray<Middleware.Middleware<Budget.BudgetExceeded> | Middleware.AskingMiddleware>
  /** Puts the rules for files, and the reach, before the `Backend` in context. */
  readonly files: Layer.Layer<Backend.Backend, Permissions.InvalidPermissions, Backend.Backend>
  /** Like `files`, before a sandbox that keeps its commands. It fails if they are refused: then use `files`. */
  readonly sandbox: Layer.Layer<Sandboxes.Sandbox | Backend.Backend, Permissions.InvalidPermissions, Sandboxes.Sandbox>
  /** Removes the middleware that is off. See `Agent.without`. */
  readonly apply: <O, E, R>(agent: Agent.Agent<O, E, R>) => Agent.Agent<O, E, R>
  /** Rules on a call as `middleware` does. Overridden rulings are last. `Ruling.explain` says the verdict in words. */
  readonly explain: (call: {
    readonly name: string
    /** Default: none. */
    readonly arguments?: JsonObject | undefined
    /** The arguments that the tool runs with. Default: `arguments`, with the defaults of `parameters`. */
    readonly given?: (() => JsonObject) | undefined
    readonly annotations?: Annotations | undefined
    /** The JSON Schema of the tool. It shows rules about arguments that the tool does not have. */
    readonly parameters?: JsonObject | undefined
  }) => Ruling.Verdict
  /** Rules on a path as `files` does, without knowing its links. */
  readonly explainPath: (operation: "read" | "write", path: string) => Ruling.Verdict
  readonly budget: Limits | undefined
  readonly reach: Sandbox | undefined
  /** The rules of the network. Give them to `Network.layer`, or on Node to `NodeNetwork.layer`. */
  readonly network: Network.Rules | undefined
}

/** The name of the middleware for calls. */
const name = "Policy"

const rulings = (policies: ReadonlyArray<Policy>) => {
  const warned = Attached.make<Run, Set<string>>()
  const warn = (run: Run, text: string): Effect.Effect<void> => {
    const texts = warned.get(run) ?? new Set<string>()
    warned.set(run, texts)
    if (texts.has(text)) return Effect.void
    texts.add(text)
    return run.warn("policy", text)
  }
  const describeMisspelt = ({ argument, hint, rule }: Misspelt): string =>
    `${rule} has a pattern for the argument "${argument}", which the tool does not have, so it holds for all calls if it restricts, and for none if it allows.${hint}`
  const hasServers = policies.some(({ servers }) => servers !== undefined)
  return Effect.fnUntraced(function* (run: Run, calls: ReadonlyArray<Middleware.PreparedCall>) {
    const misspellings: Array<Misspelt> = []
    const answers = calls.map((call) => {
      const offered = run.offered.find((one) => one.name === call.name)
      return decide(policies, call, offered?.parameters, (one) => misspellings.push(one))?.ruling
    })
    for (const one of misspellings) yield* warn(run, describeMisspelt(one))
    if (hasServers) {
      for (const { place, problem } of findStrangers(policies, run.offered)) yield* warn(run, `${place} ${problem}`)
    }
    return answers
  })
}

/** Describes a tool in the policies that neither the agent nor `known` has. */
const describeUnknownTool = (
  policies: ReadonlyArray<Policy>,
  moreTools: ReadonlySet<string>,
  reach: ReadonlySet<string>
): string | undefined => {
  const all = new Set([...reach, ...moreTools])
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
const partsOf = (policies: ReadonlyArray<Policy>, moreTools: ReadonlySet<string>) => {
  const off = isOff(policies)
  return {
    name,
    inherit: true,
    asks: true as const,
    check: (_tools: ReadonlySet<string>, reach: ReadonlySet<string>) => describeUnknownTool(policies, moreTools, reach),
    rulings: rulings(policies),
    wrapModelCall: ((request, next) => {
      const tools = request.tools.filter((tool) => !off(tool.name))
      return next(tools.length === request.tools.length ? request : { ...request, tools })
    }) satisfies NonNullable<Middleware.Middleware["wrapModelCall"]>
  }
}

/** The failure of a policy with wrong permissions. */
const toInvalidPolicy =
  (policy: string) =>
  ({ field, problem, rule }: Permissions.InvalidPermissions): InvalidPolicy =>
    new InvalidPolicy({
      policy,
      path: field === "options" ? "files" : rule === "default" ? "files.default" : `files.rules[${rule}].${field}`,
      problem
    })

const checkCompile = check(shapes.policyCompile)

/**
 * Combines policies, from the most general (an organisation's) to the most particular (a user's). A tool name that the
 * agent does not have fails its runs with `InvalidAgent`, with a suggestion. Names with wildcards, and names of servers'
 * tools, may match nothing.
 */
export const compile = (
  policies: ReadonlyArray<Policy>,
  options?: {
    /** Names of further tools: of other agents, or of tools that come and go. Default: none. */
    readonly known?: Iterable<string> | undefined
  }
): Result.Result<CompiledPolicies, InvalidPolicy> => {
  const problem = checkCompile(options)
  if (problem !== undefined) return Result.fail(new InvalidPolicy({ policy: "Policy.compile", path: "", problem }))
  const own = policies.flatMap((policy, index) =>
    policy.files === undefined
      ? []
      : [Result.mapError(Permissions.compile(policy.files), toInvalidPolicy(nameOf(policy, index)))]
  )
  const together = permissionsOf(policies)
  return Result.flatMap(Result.all(own), () =>
    Result.map(
      Result.mapError(Result.all(together.map(Permissions.compile)), toInvalidPolicy("all together")),
      (pathRules) => compiledOf(policies, together, pathRules, new Set(options?.known))
    )
  )
}

const compiledOf = (
  policies: ReadonlyArray<Policy>,
  together: ReadonlyArray<Permissions.Options>,
  pathRules: ReadonlyArray<(operation: "read" | "write", path: string) => Ruling.Ruling>,
  moreTools: ReadonlySet<string>
): CompiledPolicies => {
  const budget = budgetOf(policies)
  const limits =
    budget === undefined ? [] : [Budget.make({ ...budget, onExhausted: budget.onExhausted ?? "finalAnswer" })]
  const off = policies.flatMap((policy) => policy.off?.middleware ?? [])
  return {
    policies,
    middleware: [...limits, Middleware.make(partsOf(policies, moreTools))],
    files: together.reduce<CompiledPolicies["files"]>(
      (inner, one) => Layer.provide(Permissions.layer(one), inner),
      Backend.layer(Backend.Backend)
    ),
    sandbox: together.reduce<CompiledPolicies["sandbox"]>(
      (inner, one) => Layer.provide(Permissions.layerSandbox(one), inner),
      Sandboxes.layer(Sandboxes.Sandbox)
    ),
    apply: (agent) => (off.length === 0 ? agent : Agent.without(agent, off)),
    explain: ({ annotations = {}, arguments: args = {}, given, name: tool, parameters }) => {
      const call: Call = { name: tool, arguments: args, given, annotations }
      return decide(policies, call, parameters, () => undefined) ?? Ruling.compose([])
    },
    explainPath: (operation, path) => Ruling.compose(pathRules.map((rule) => rule(operation, path))),
    budget,
    reach: sandboxOf(policies),
    network: networkOf(policies)
  }
}
