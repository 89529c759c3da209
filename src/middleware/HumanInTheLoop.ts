/**
 * Asks a person before a tool runs: all calls of a round at once, before the first of them runs, in sub-agents too.
 *
 * Where `Approvals` is in the run's context, that is asked while the run waits (see `Agent.attended`). Elsewhere the run
 * ends with `stopReason: "suspended"` and `pending` requests; `Agent.resume` goes on with the decisions, in another
 * process, days later. The model reads a refusal, and nothing fails.
 *
 * ```ts
 * import { Agent, Tool } from "effect-deepagents"
 * import { HumanInTheLoop } from "effect-deepagents/middleware"
 *
 * declare const deploy: Tool.Tool
 * declare const transfer: Tool.Tool
 *
 * const agent = Agent.make({
 *   name: "operator",
 *   prompt: "You operate the shop.",
 *   tools: [deploy, transfer],
 *   middleware: [
 *     HumanInTheLoop.make({
 *       tools: { deploy: true, transfer: { when: ({ amount }) => Number(amount) > 100, allow: ["approve", "reject"] } },
 *       destructive: true
 *     })
 *   ]
 * })
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Approval from "../core/Approval.ts"
import { type JsonObject } from "../core/Json.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { canonical } from "../core/schema/jsonTree.ts"
import type { Takes, Tool } from "../core/Tool.ts"
import { normaliseName } from "../support/text/names.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"

/** The name of this middleware: one of yours with it takes its place in a deep agent. */
export const name = "HumanInTheLoop"

/**
 * A rule for the calls of a tool. `when`, `describe` and `likeness` see the arguments that the tool runs with: decoded,
 * with the defaults of its schema.
 *
 * - `when`: selects the calls to ask about (default: all)
 * - `allow`: the possible decisions (default: all)
 * - `describe`: the description for the person (default: the tool's own, else its name and arguments)
 * - `likeness`: an "always" covers the calls with the same text (default: the same arguments)
 * - `deciders`: the only principals who may decide (see `Approval.Request`)
 * - `name`: the name of the rule in the request, its decision and the audit
 */
export interface Rule<in Args = JsonObject> {
  /** The name of the rule in requests, decisions and the audit. */
  readonly name?: string | undefined
  /** Selects the calls to ask about, by the decoded arguments. Default: all calls. */
  readonly when?: ((args: Args) => boolean) | undefined
  /** The decisions that a person may take. Default: all of them. */
  readonly allow?: ReadonlyArray<Approval.Choice> | undefined
  /** The people or roles that may decide. Default: anybody. */
  readonly deciders?: ReadonlyArray<string> | undefined
  /**
   * Describes a call to the person who decides. Default: the tool's own description of the call, else its name and
   * arguments.
   */
  readonly describe?: ((args: Args) => string) | undefined
  /**
   * Gives the text that an approval for good is compared by: calls with the same text are covered. Default: the
   * arguments.
   */
  readonly likeness?: ((args: Args) => string) | undefined
}

/**
 * Makes the rule of a tool that is at hand as a value, so that its name can't be misspelt and its arguments have types:
 * `tools: { ...HumanInTheLoop.on(transfer, { when: ({ amount }) => amount > 100 }) }`.
 */
export const on = <R, Args extends JsonObject>(
  tool: Tool<R> & Takes<Args>,
  rule: boolean | ((args: NoInfer<Args>) => boolean) | Rule<NoInfer<Args>> = true
): { readonly [name: string]: boolean | ((args: JsonObject) => boolean) | Rule } => ({
  // A gate sees the arguments as the tool's own schema decoded them.
  [tool.name]: rule as boolean | ((args: JsonObject) => boolean) | Rule
})

/**
 * The calls to ask a person about.
 *
 * - `tools`: rules by tool name. `true` asks always, `false` never, a function is its `when`
 * - `destructive`: also asks about every other tool that is annotated as destructive
 * - `except`: calls that never ask, against all other rules
 * - `expiresIn`: afterwards, a decision is ignored and the call is asked about again (default: never)
 * - `inherit`: applies to sub-agents too (default `true`)
 *
 * A name may have any spelling that a model may use (`Write-File` is `write_file`). The agent's runs fail with
 * `InvalidAgent` for a name without a tool in the agent or a sub-agent, for two names of one tool, and for options that
 * ask about nothing while no tool has `needsApproval`.
 *
 * A rule for a tool (`false` too) replaces its own `needsApproval`.
 */
export interface Options {
  /** Rules by tool name: `true` always asks, `false` never asks, a function is the rule's `when`. */
  readonly tools?: { readonly [name: string]: boolean | ((args: JsonObject) => boolean) | Rule } | undefined
  /** Asks about every other tool with the annotation `destructive`. Default: `false`. */
  readonly destructive?: boolean | undefined
  /** Selects calls that nobody is asked about, although a rule or an annotation asks. Default: none. */
  readonly except?: ((call: Middleware.PreparedCall) => boolean) | undefined
  /** The time after which a decision expires and the call is asked about again. Default: never. */
  readonly expiresIn?: Duration.Input | undefined
  /** Applies the rules to sub-agents too. Default: `true`. */
  readonly inherit?: boolean | undefined
}

const ruleFor = (options: Options, call: Middleware.PreparedCall): Rule | "never" | undefined => {
  const rules = options.tools ?? {}
  const key = Object.hasOwn(rules, call.name)
    ? call.name
    : Object.keys(rules).find((name) => Middleware.names([name], call.name))
  const rule = key === undefined ? undefined : rules[key]
  if (rule === undefined) return options.destructive === true && call.annotations.destructive === true ? {} : undefined
  if (typeof rule === "boolean") return rule ? {} : "never"
  return typeof rule === "function" ? { when: rule } : rule
}

const rulingOf = (rule: Rule, call: Middleware.PreparedCall, expiresIn: number | undefined): Ruling.Ruling => {
  const { allow, deciders, describe, likeness, name: by = name } = rule
  const args = call.given()
  return Ruling.ask(by, {
    // A rule that can't describe a call does not keep it from being asked about.
    description: Result.getOrElse(
      Result.try(() => describe?.(args)),
      () => undefined
    ),
    choices: allow,
    deciders,
    expiresIn,
    likeness: likeness === undefined ? canonical(args) : `like ${likeness(args)}`,
    settles: true
  })
}

const rulings = (options: Options) => {
  const time = timeOf(options.expiresIn ?? Duration.infinity)
  const expiresIn = Duration.isFinite(time) ? Duration.toMillis(time) : undefined
  return (_run: Run, calls: ReadonlyArray<Middleware.PreparedCall>) =>
    Effect.sync(() =>
      calls.map((call) => {
        const rule = ruleFor(options, call)
        if (rule === undefined) return undefined
        return rule === "never" || rule.when?.(call.given()) === false || options.except?.(call) === true
          ? Ruling.allow(name, { settles: true })
          : rulingOf(rule, call, expiresIn)
      })
    )
}

/** Finds mistakes in the options that would let calls run without their question. */
const problemOf = (
  { destructive = false, expiresIn, tools }: Options,
  reach: ReadonlySet<string>,
  asks: boolean
): string | undefined => {
  const expiryProblem = timeProblem("approvals", { expiresIn })
  if (expiryProblem !== undefined) return expiryProblem
  const names = Object.keys(tools ?? {})
  // Tools of servers come later.
  const own = names.filter((one) => !one.includes("__"))
  const problem = Middleware.unknownTool("approvals are for", own, reach)
  if (problem !== undefined) return problem
  const resolvedNames = names.map((name) => Middleware.findTool(reach, name) ?? normaliseName(name))
  const twice = names.find((_, index) => resolvedNames.indexOf(resolvedNames[index] ?? "") < index)
  if (twice !== undefined) return `approvals have two rules for one tool: ${JSON.stringify(twice)} is the second`
  return tools === undefined && !destructive && !asks
    ? "approvals without a rule ask about nothing; name tools, or say destructive: true"
    : undefined
}

const refuseMake = makeMiddlewareCheck(name, shapes.humanInTheLoopMake)

/** Asks a person about calls, as the rules say. */
export const make = (options: Options): Middleware.AskingMiddleware =>
  refuseMake(options) ??
  Middleware.make({
    name,
    asks: true,
    inherit: options.inherit ?? true,
    check: (_tools: ReadonlySet<string>, reach: ReadonlySet<string>, asks: boolean) => problemOf(options, reach, asks),
    rulings: rulings(options)
  })
