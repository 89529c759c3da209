/**
 * Tools: the abilities of an agent, with typed arguments and typed needs.
 *
 * The model reads a failure of `execute`, and the run continues. To end the run, fail in a middleware's `wrapToolCall`.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool } from "effect-deepagents"
 *
 * const add = Tool.make("add", {
 *   description: "Adds two numbers",
 *   parameters: { left: Schema.Finite, right: Schema.Finite },
 *   execute: ({ left, right }) => Effect.succeed(String(left + right)),
 *   annotations: { readOnly: true }
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import { identity, memoize } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { check } from "../support/options/check.ts"
import type { Approvals } from "./Approval.ts"
import type { JsonObject } from "./Json.ts"
import type { ToolOptions as ProviderOptions } from "./ProviderOptions.ts"
import { type Decoder, fromJsonSchema, fromSchema, fromStandard } from "./schema/arguments.ts"
import { mapBoth, toEffect } from "./schema/decoding.ts"
import * as shapes from "./schema/shapes.ts"
import { isCodec, isStandard, type NoJsonSchema, type NoStandard, type StandardSchema } from "./schema/standard.ts"
import { dieOfType, needsDecision, perform } from "./schema/toolWork.ts"
import { fromUnknown, make as makeError, type ToolError } from "./ToolError.ts"
import { fromResult, make as makeOutput, type ToolOutput } from "./ToolOutput.ts"

/**
 * The effects of a tool on the world. A fact that is missing counts as false. Four are hints of MCP (`readOnly`,
 * `destructive`, `idempotent`, `openWorld`), and the last six are for `Taint` and `HiddenResults`.
 */
export interface Annotations {
  /** The tool changes nothing. */
  readonly readOnly?: boolean | undefined
  /** The tool may delete or overwrite something. */
  readonly destructive?: boolean | undefined
  /** Repeating a call has no further effect. */
  readonly idempotent?: boolean | undefined
  /** The tool reaches the world outside of this machine. */
  readonly openWorld?: boolean | undefined
  /** The tool returns large results in parts, so they never go into files. */
  readonly paged?: boolean | undefined
  /** The same call may return another result the next time (a status, a test run), so repeating it is no circle. */
  readonly volatile?: boolean | undefined
  /** The tool acts only through inner calls, steps and agents, so a call that a crash cut off is safe to run again. */
  readonly resumable?: boolean | undefined
  /** The server of the tool, for rules about that server. */
  readonly server?: string | undefined
  /** The name of the tool on its server. */
  readonly serverTool?: string | undefined
  /** Changes or moves files, and nothing else; people may let such calls run unasked. */
  readonly editsFiles?: boolean | undefined
  /** Runs programs, which go around rules for files. */
  readonly runsCommands?: boolean | undefined
  /** Starts a sub-agent, so that limits on sub-agents count its calls. */
  readonly delegates?: boolean | undefined
  /** The names of the tool in other programs, which their skills and agent files use. */
  readonly aliases?: ReadonlyArray<string> | undefined
  /** Stores data that other threads read, without their marks. */
  readonly lasting?: boolean | undefined
  /** Results hold text of others, though the tool stays local. */
  readonly untrusted?: boolean | undefined
  /**
   * The arguments of an `untrusted` tool that bring text of others into its results, each with the values that don't.
   * Without such an argument, results show the folder's own files: a program that trusts these trusts the call.
   */
  readonly untrustedBy?: { readonly [argument: string]: ReadonlyArray<string> } | undefined
  /**
   * The arguments that are addresses (URLs, hosts); `[]` means that no argument chooses the target of a call. For
   * `Taint` and `HiddenResults`.
   */
  readonly addresses?: ReadonlyArray<string> | undefined
  /**
   * The arguments that are only said, such as the body of a mail; all others choose who, where, which or how much.
   * For `Taint` and `HiddenResults`.
   */
  readonly content?: ReadonlyArray<string> | undefined
  /**
   * The fields of JSON results that hold ids, directory names or addresses, never prose. For `Taint` and
   * `HiddenResults`.
   */
  readonly typed?: ReadonlyArray<string> | undefined
}

/**
 * A call whose arguments were decoded: the arguments as the model gave them (after coercion), the work, and whether
 * somebody must decide on it first, for a tool with `needsApproval` (if nothing is said: yes).
 */
export interface PreparedWork<out R> {
  readonly arguments: JsonObject
  /** Gives the arguments that the tool runs with, as JSON: decoded, with defaults. Without it, they are `arguments`. */
  readonly given?: (() => JsonObject) | undefined
  readonly execute: Effect.Effect<ToolOutput, ToolError, R>
  readonly needsApproval?: Effect.Effect<boolean, never, R> | undefined
  /** Finds out whether a call that was cut off took effect. */
  readonly reconcile?: Effect.Effect<Reconciliation, ToolError, R> | undefined
  /**
   * Fails as the call would, or gives the output that it would have, if that is known. `earlier` are the arguments of the
   * calls before it in its round.
   */
  readonly rehearse?:
    | ((earlier: ReadonlyArray<JsonObject>) => Effect.Effect<ToolOutput | undefined, ToolError, R>)
    | undefined
}

/**
 * The report of a tool on a call of its own that a crash cut off: it was done, with this output; it never began; it may
 * be done again, begun or not; or that is not known here either.
 */
export type Reconciliation =
  | { readonly _tag: "Completed"; readonly output: ToolOutput }
  | { readonly _tag: "NeverBegan" }
  | { readonly _tag: "Repeatable" }
  | { readonly _tag: "Unknown" }

/** The call was done: the model reads this output. */
export const completed = (output: ToolOutput | string): Reconciliation => ({
  _tag: "Completed",
  output: typeof output === "string" ? makeOutput(output) : output
})

/** The call never began: it runs now. */
export const neverBegan: Reconciliation = { _tag: "NeverBegan" }

/** The call may have begun, and does no harm when it runs again: it does. */
export const repeatable: Reconciliation = { _tag: "Repeatable" }

/** Nobody knows: the run decides as for a tool that can't say (`unknownOutcome` of `Agent.resume`). */
export const unknown: Reconciliation = { _tag: "Unknown" }

/**
 * A tool that needs `R` to run. `parameters` is a JSON Schema of an object. `outputLimit` is in characters of text:
 * longer results and failures lose their middle. Without it, the model sees at most `ToolOutput.defaultLimit`
 * characters.
 */
export interface Tool<out R = never> {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
  readonly annotations: Annotations
  readonly providerOptions?: ProviderOptions | undefined
  readonly outputLimit: number | undefined
  /** The names of the tools that a call can lead to: the tools of its sub-agents. */
  readonly reaches?: ReadonlySet<string> | undefined
  /** Describes a call to the person who decides on it. */
  readonly describe?: ((args: JsonObject) => string) | undefined
  /** Says whether calls of it may need a decision before they run; which ones, `prepare` says. */
  readonly needsApproval?: true | undefined
  /** Decodes arguments: at once, or as an effect when the schema validates asynchronously. */
  readonly prepare: (
    args: JsonObject
  ) => Result.Result<PreparedWork<R>, ToolError> | Effect.Effect<PreparedWork<R>, ToolError>
  /** Keeps agents that have the tool from running, with a remedy for its author. */
  readonly problem?: string | undefined
}

const OwnId = "~effect-deepagents/Tool/Own"

/**
 * A tool whose calls need a decision. An agent that has one needs `Approvals`, which is asked while the run waits, or a
 * middleware that can suspend the run (then `undefined` may be its answer).
 */
export interface NeedingApproval<out R = never> extends Tool<R | Approvals> {
  readonly needsApproval: true
  /** Services that the tool itself needs. */
  readonly [OwnId]?: (() => R) | undefined
}

/**
 * The name of the tool by which an agent with an `output` schema is answered, where its model has no JSON-schema mode.
 * No other tool of such an agent may have it, and code that narrows a request's tools should keep it.
 */
export const finalAnswer = "final_answer"

/** The services that a tool needs. */
export type Services<T> = T extends Tool<infer R> ? R : never

/** The services that a tool needs in an agent. An agent that can be suspended needs no `Approvals`. */
export type ServicesIn<T, Suspension> = [Suspension] extends [never]
  ? Services<T>
  : T extends NeedingApproval<infer R>
    ? R
    : Services<T>

/**
 * The calls that need a decision: all, or the calls for which a function returns true. It gets the arguments of
 * `execute`.
 */
export type NeedsApproval<A> = true | ((args: A) => Answers)

/** Finds out, without doing anything, whether a call can succeed, and its output if that is known. */
export type Rehearse<A, R> = (
  args: A,
  earlier: ReadonlyArray<JsonObject>
) => Effect.Effect<ToolOutput | string | void, unknown, R>

type Answers = boolean | Effect.Effect<boolean, never, unknown>

/** Objects and lists, but neither promises nor effects. */
type Plain = object & { readonly then?: never; readonly [Effect.TypeId]?: never }

/** The result of `execute`: a text, an output, or data, which the model reads as JSON. */
export type Data = ToolOutput | string | number | boolean | null | Plain

/**
 * The work of a call: an effect, a promise or a value. The model reads the message of a promise that rejects, as it
 * reads a failure of an effect.
 */
export type Work<E, R> = EffectShape<E, R> | Promise<Data> | Data

/** The services of a tool's work. Promises and values need no services, also for a tool written inside of `tools`. */
type ServicesOf<W> = W extends { readonly [Effect.TypeId]: Effect.Variance<Data, unknown, infer R> } ? R : never

/** The parts of a tool beside its work. */
interface Asides<A, R> {
  readonly needsApproval?: NeedsApproval<A> | undefined
  readonly reconcile?: ((args: A) => Effect.Effect<Reconciliation, unknown, R>) | undefined
  readonly rehearse?: Rehearse<A, R> | undefined
}

/** An effect, by its shape alone: of a union of two effects, the compiler then infers `E` and `R` from both. */
interface EffectShape<E, R> {
  readonly [Effect.TypeId]: Effect.Variance<Data, E, R>
}

/** The tool that `make` and `dynamic` give: `Always` and `Answer` are `never` for one without `needsApproval`. */
export type MadeTool<R, Always, Answer> = [Always | Answer] extends [never]
  ? Tool<R>
  : NeedingApproval<R | (Answer extends Effect.Effect<boolean, never, infer R2> ? R2 : never)>

/** Stops inference from an expected tool type. */
type Same<T> = T extends infer Own ? Own : never

type Fields = { readonly [name: string]: Schema.ConstraintCodec<unknown, unknown> }

/** Parameters: fields, a struct (or class) of them, or an object schema of another library. */
export type Parameters =
  | (Fields & NoStandard)
  | (Schema.ConstraintCodec<unknown, unknown> & { readonly fields: Schema.Struct.Fields })
  | StandardSchema
  | NoJsonSchema<"The schema gives no JSON Schema: use zod 4.2 or later, not zod 3; wrap one of valibot by toStandardJsonSchema">

/** The arguments of a tool with these parameters. */
export type Arguments<P> =
  P extends Schema.ConstraintCodec<infer A, unknown>
    ? A
    : P extends StandardSchema<infer A>
      ? A
      : P extends Fields
        ? Schema.Struct<P>["Type"]
        : never

const TakesId = "~effect-deepagents/Tool/Takes"

/**
 * The type of the arguments that a tool takes, as JSON, for `ToolContext.call`. A tool that is known by its name, or
 * its `Tool` type alone, takes any.
 */
export interface Takes<in Args> {
  readonly [TakesId]?: ((args: Args) => void) | undefined
}

type EncodedArguments<P> =
  P extends Schema.ConstraintCodec<unknown, infer I>
    ? I
    : P extends StandardSchema
      ? JsonObject
      : P extends Fields
        ? Schema.Struct<P>["Encoded"]
        : JsonObject

/** The arguments of a tool with these parameters, as JSON. */
export type GivenArguments<P> = EncodedArguments<P> extends JsonObject ? EncodedArguments<P> : JsonObject

/** The options of any tool. */
export interface Options {
  /** Tells the model what the tool does and when to call it. */
  readonly description: string
  /** Facts about the tool's effects, for gates and people. Default: none. */
  readonly annotations?: Annotations | undefined
  /** Options of single providers, by the provider's name: `{ anthropic: { deferLoading: true } }`. Default: none. */
  readonly providerOptions?: ProviderOptions | undefined
  /**
   * The most characters of a result or failure; the middle of a longer text is cut. Default:
   * `ToolOutput.defaultLimit`.
   */
  readonly outputLimit?: number | undefined
  /**
   * The names of the tools of its sub-agents (`Agent.toolNames`), so that inherited rules may name them. Default: none.
   */
  readonly reaches?: ReadonlySet<string> | undefined
  /** Describes a call to the person who decides on it. Default: its name and arguments. */
  readonly describe?: ((args: JsonObject) => string) | undefined
}

const assemble = <A, E, R, Always, Answer>(
  name: string,
  options: Options,
  decoder: Decoder<A>,
  execute: (args: A, context: { readonly signal: AbortSignal }) => Work<E, R>,
  { needsApproval: need, reconcile, rehearse }: Asides<A, R>
): MadeTool<R, Always, Answer> => {
  const tool: Tool<R> = {
    name,
    description: options.description,
    parameters: decoder.jsonSchema,
    annotations: options.annotations ?? {},
    ...(options.providerOptions === undefined ? {} : { providerOptions: options.providerOptions }),
    outputLimit: options.outputLimit,
    reaches: options.reaches,
    describe: options.describe,
    needsApproval: isOff(need) ? undefined : true,
    problem: decoder.problem,
    prepare: (args) =>
      mapBoth(decoder.decode(args), {
        onFailure: identity,
        onSuccess: (decoded) => ({
          arguments: decoded.json,
          given: decoded.given,
          needsApproval: typeof need === "function" ? needsDecision(name, need, decoded.value) : undefined,
          reconcile:
            reconcile === undefined
              ? undefined
              : Effect.mapError(
                  Effect.suspend(() => reconcile(decoded.value)),
                  fromUnknown
                ),
          rehearse:
            rehearse === undefined
              ? undefined
              : (earlier) =>
                  Effect.mapBoth(
                    Effect.suspend(() => rehearse(decoded.value, earlier)),
                    {
                      onSuccess: (promised) =>
                        typeof promised === "string" ? makeOutput(promised) : promised || undefined,
                      onFailure: fromUnknown
                    }
                  ),
          execute: Effect.matchEffect(perform(name, execute, decoded.value), {
            onSuccess: (result) => {
              const output = fromResult(result)
              return output === undefined
                ? dieOfType("execute", name, result, "a text, a ToolOutput or data")
                : Effect.succeed(output)
            },
            onFailure: (error) => Effect.fail(fromUnknown(error))
          })
        })
      })
  }
  // The loop asks the decider, and provides the services that the question needs.
  return tool as MadeTool<R, Always, Answer>
}

/** A tool with wrong options. */
const invalid = (name: string, problem: string): Tool => ({
  name,
  description: "",
  parameters: { type: "object" },
  annotations: {},
  outputLimit: undefined,
  problem,
  prepare: () => Result.fail(makeError(problem))
})

const checkMake = check(shapes.toolMake)
const checkDynamic = check(shapes.toolDynamic)

/** Programs without types may say `false`. */
const isOff = (need: unknown): boolean => need === undefined || need === false

/** The decoder of a schema: the same one for all tools that have it. */
const decoderBy = memoize((schema: Schema.ConstraintCodec<unknown, unknown>) => fromSchema(schema))

const decoderOf = (parameters: Parameters): Decoder<unknown> => {
  if (isCodec(parameters)) return decoderBy(parameters)
  // There are no values of the other type.
  return isStandard(parameters) ? fromStandard(parameters) : fromSchema(Schema.Struct(parameters as Fields))
}

/**
 * Makes a tool from Schema fields, a `Schema.Struct`, a `Schema.Class` or an object schema of another library.
 * Arguments are decoded with the schema. Common mistakes in form (a number as a string, one object instead of a list,
 * JSON inside a string) are mended if the schema leaves no doubt.
 *
 * With `needsApproval` no call runs before somebody decides on it, in any agent. The `Approvals` service decides while
 * the run waits; an agent that can be suspended ends its run instead. A rule for the tool replaces the question.
 *
 * After a crash, tools that only read or are idempotent simply run again; for others, `reconcile` looks up the outcome.
 */
export const make = <
  const P extends Parameters,
  W extends Work<unknown, unknown>,
  Always extends true = never,
  Answer extends Answers = never,
  R2 = never
>(
  name: string,
  options: Options & {
    /** The parameters: Schema fields, a struct, a class, or an object schema of another library. */
    readonly parameters: P
    /** Does the work: an Effect, an async function, or a plain value. The model reads the result. */
    readonly execute: (args: Arguments<P>, context: { readonly signal: AbortSignal }) => W
    /** Asks for a decision before a call: always, or when the function says so. Default: never. */
    readonly needsApproval?: Always | ((args: Arguments<P>) => Answer) | undefined
    /**
     * Looks up whether an interrupted call took effect (by an idempotency key, an order number), when a run resumes
     * after a crash. Default: the model reads that the outcome is unknown.
     */
    readonly reconcile?: ((args: Arguments<P>) => Effect.Effect<Reconciliation, unknown, R2>) | undefined
    /**
     * Fails as the call would, and changes nothing: a person is not asked about a call that can't succeed. `earlier` are
     * the arguments of the calls before it in its round, on which its outcome may depend. Where the output of the call is
     * known before it acts, `rehearse` gives it: a script that is reviewed goes on with it. Default: none.
     */
    readonly rehearse?: Rehearse<Arguments<P>, R2> | undefined
  }
): MadeTool<ServicesOf<W> | Same<R2>, Always, Answer> & Takes<GivenArguments<P>> => {
  const problem = checkMake(options)
  const tool =
    problem === undefined
      ? assemble<Arguments<P>, unknown, unknown, Always, Answer>(
          name,
          options,
          decoderOf(options.parameters) as Decoder<Arguments<P>>,
          options.execute,
          options
        )
      : invalid(name, problem)
  // The tool takes the arguments of its parameters.
  return tool as MadeTool<ServicesOf<W> | Same<R2>, Always, Answer> & Takes<GivenArguments<P>>
}

/**
 * Makes a tool from a JSON Schema, for tools that are only known at run time (MCP, OpenAPI). Arguments are checked
 * against the schema as far as it can be interpreted, and arrive as JSON. `needsApproval` is as for `make`.
 */
export const dynamic = <
  W extends Work<unknown, unknown>,
  Always extends true = never,
  Answer extends Answers = never,
  R2 = never
>(
  name: string,
  options: Options & {
    /** The JSON Schema of the arguments: an object. */
    readonly parameters: JsonObject
    /** Does the work: an Effect, an async function, or a plain value. The model reads the result. */
    readonly execute: (args: JsonObject, context: { readonly signal: AbortSignal }) => W
    /** Asks for a decision before a call: always, or when the function says so. Default: never. */
    readonly needsApproval?: Always | ((args: JsonObject) => Answer) | undefined
    /** Looks up whether an interrupted call took effect, when a run resumes after a crash. */
    readonly reconcile?: ((args: JsonObject) => Effect.Effect<Reconciliation, unknown, R2>) | undefined
    /**
     * Fails as the call would, and changes nothing: a person is not asked about a call that can't succeed. It may give
     * the output of the call, if that is known.
     */
    readonly rehearse?: Rehearse<JsonObject, R2> | undefined
  }
): MadeTool<ServicesOf<W> | Same<R2>, Always, Answer> => {
  const problem = checkDynamic(options)
  const tool =
    problem === undefined
      ? assemble<JsonObject, unknown, unknown, Always, Answer>(
          name,
          options,
          fromJsonSchema(options.parameters),
          options.execute,
          options
        )
      : invalid(name, problem)
  // The tool takes the arguments of its parameters.
  return tool as MadeTool<ServicesOf<W> | Same<R2>, Always, Answer>
}

/** Runs a tool on its own, as a test or a script does: arguments are decoded like a model's, and nobody is asked. */
export const run = <R>(tool: Tool<R>, args: JsonObject): Effect.Effect<ToolOutput, ToolError, R> =>
  Effect.flatMap(
    Effect.suspend(() => toEffect(tool.prepare(args))),
    (prepared) => prepared.execute
  )
