/**
 * Checks the input and output of a model, its tool calls and their results. A failed check stops the run, or answers in
 * the model's place.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Guardrail } from "effect-deepagents/middleware"
 *
 * const noSecrets = Guardrail.output({
 *   name: "no-secrets",
 *   check: ({ text }) => Effect.succeed(text.includes("sk-") ? Guardrail.trip("it names a key") : Guardrail.pass),
 *   onTrip: { answer: "I can't show you that." }
 * })
 *
 * const agent = Agent.make({ name: "discreet", prompt: "You answer questions.", middleware: [noSecrets] })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type ChatModel, turnPurpose, type TurnPart } from "../core/ChatModel.ts"
import * as Content from "../core/Content.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { ToolError } from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import * as Guard from "./internal/guard.ts"
import { pass, type Verdict } from "./internal/guard.ts"
import { checkByModel } from "./internal/modelCheck.ts"
import * as shapes from "./internal/shapes.ts"

export { pass, type Verdict }

/**
 * Something is wrong. The reason is for logs, events and the error; in the place of a tool call, the model reads it.
 */
export const trip = (reason: string): Verdict => ({ _tag: "Trip", reason })

const refuseByModel = makeEffectCheck("Guardrail.byModel", shapes.guardrailByModel)

/**
 * Makes a check by rules in words, for each kind of guardrail. The `DecisionModel` of `effect/ai` is asked if the context
 * has one. In doubt, after its failure, and without one, the agent's own model is asked, by a call with the purpose
 * `guardrail` through all middleware. A verdict that can't be read trips. Texts alone are checked, and calls with their
 * arguments.
 */
export const byModel = (options: {
  /** The rules in words. */
  readonly rules: string
}): ((subject: {
  readonly run: Run
  readonly text?: string | undefined
  readonly call?: Middleware.PreparedCall | undefined
}) => Effect.Effect<Verdict, ModelError, ChatModel>) => {
  const refused = refuseByModel(options)
  return refused === undefined ? checkByModel(options.rules) : () => refused
}

/** A guardrail stopped the run. `guardrail` is its name, `stage` the checked stage, `reason` its check's reason. */
export class GuardrailTripped extends TaggedError<GuardrailTripped>()("GuardrailTripped", {
  guardrail: Schema.String,
  stage: Schema.Literals(["input", "output", "toolCall", "toolResult"]),
  agent: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    const what = {
      input: "the input",
      output: "the answer",
      toolCall: "a tool call",
      toolResult: "the result of a tool"
    }[this.stage]
    return `Guardrail "${this.guardrail}" stopped agent "${this.agent}" at ${what}: ${this.reason}`
  }
}

/**
 * The time of a check. `"before"`: nothing continues until it passes. `"beside"`: the model's text is streamed
 * meanwhile, and a trip voids it (a `TurnRestarted` event). The outcome of the turn (an answer, tool calls) waits for
 * the verdict.
 */
export type Mode = "before" | "beside"

/**
 * The effect of a trip: `"fail"` fails the run with {@link GuardrailTripped}; an answer is given in the model's place
 * and ends the run as `refused`.
 */
export type OnTrip =
  | "fail"
  | {
      /** The answer that takes the model's place. */
      readonly answer: string
    }

/** Failures that a guardrail adds to an agent's. */
export type TripError<T> = "fail" extends T ? GuardrailTripped : never

/** Options of a guardrail: its check, and what happens on a trip. */
export interface Options<Subject, E, R, T> {
  /** The name of the guardrail, in errors and events. */
  readonly name: string
  /** Passes, or trips with a reason. */
  readonly check: (subject: Subject) => Effect.Effect<Verdict, E, R>
  /** The effect of a trip. Default: `fail` for inputs and outputs, `answer` for tool calls. */
  readonly onTrip?: T | undefined
}

/** Gives T its default, since nothing infers it. */
const byDefault = <T>(value: string): T => value as T

/** The messages of the user (or a parent agent) since the model was last asked. */
export interface Input {
  readonly text: string
  readonly messages: ReadonlyArray<Message.HumanMessage>
  readonly run: Run
}

/**
 * A turn of the model. A turn with tool calls is not the answer yet, but its text is shown too. An answer in a schema
 * may be a call of `final_answer`.
 */
export interface Output {
  readonly text: string
  readonly message: Message.AiMessage
  readonly run: Run
}

/** A tool call that is about to run. */
export interface Call {
  readonly call: Middleware.PreparedCall
  readonly run: Run
}

/** Tells of a trip, and fails the run or goes on with something else, as `onTrip` says. */
const tripped = <T, A>(
  guardrail: string,
  onTrip: T,
  stage: GuardrailTripped["stage"],
  run: Run,
  reason: string,
  instead: A
): Effect.Effect<A, TripError<T>> =>
  Effect.andThen(
    run.warn("guardrail", `Guardrail "${guardrail}" tripped: ${reason}`),
    // T is the type of onTrip, so this fails only if the type allows it.
    (onTrip === "fail"
      ? Effect.fail(new GuardrailTripped({ guardrail, stage, agent: run.agent, reason }))
      : Effect.succeed(instead)) as Effect.Effect<A, TripError<T>>
  )

/** The answer in the model's place. It carries the usage of the voided turn. */
const answerOf = (name: string, onTrip: OnTrip, voided?: Message.AiMessage): Message.AiMessage =>
  Message.ai(onTrip === "fail" ? "" : onTrip.answer, {
    stopReason: "refusal",
    source: `guardrail:${name}`,
    usage: voided?.usage
  })

/** Ends a model call after a trip. A turn that fails the run is paid for too: its cost goes ahead. */
const inTurn =
  <T extends OnTrip>(name: string, onTrip: T, stage: GuardrailTripped["stage"], run: Run) =>
  (reason: string, voided: Message.AiMessage | undefined): Stream.Stream<TurnPart, TripError<T>> => {
    const message = answerOf(name, onTrip, voided)
    const lastPart: TurnPart = { _tag: "TurnDone", message }
    const answer = Stream.fromIterable<TurnPart>([{ _tag: "TextDelta", text: Message.text(message) }, lastPart])
    const instead = Stream.unwrap(tripped(name, onTrip, stage, run, reason, answer))
    return onTrip === "fail" && voided?.usage !== undefined ? Stream.concat(Stream.succeed(lastPart), instead) : instead
  }

const refuseInput = makeMiddlewareCheck("Guardrail", shapes.guardrailInput)

/**
 * Checks the user's input, before or beside the model's first turn on it, and messages that arrive during the run.
 * Sub-agents inherit the check: their input is their task.
 *
 * `mode` is `"before"` by default: a trip costs no tokens. `"beside"` costs no time: the model is asked immediately,
 * and cut off when the check trips. Put it before middleware that asks again (`ModelRetry`) or rewrites messages.
 */
export const input = <E = never, R = never, const T extends OnTrip = "fail">(
  options: Options<Input, E, R, T> & {
    /** The time of the check: `before` the model is asked, or `beside` it. Default: `before`. */
    readonly mode?: Mode | undefined
  }
): Middleware.Middleware<E | TripError<T>, R> => {
  const refused = refuseInput(options)
  if (refused !== undefined) return refused
  const { check, mode = "before", name } = options
  const onTrip = options.onTrip ?? byDefault<T>("fail")
  const checked = Attached.make<Run, number>()

  /** The check of the unchecked messages; `undefined` without any. */
  const pending = (run: Run): Effect.Effect<Verdict, E, R> | undefined => {
    const end = run.messages.length
    const start = checked.get(run) ?? run.messages.findLastIndex((message) => message.role === "ai") + 1
    const messages = run.messages.slice(start, end).filter((message) => message.role === "human")
    if (messages.length === 0) return undefined
    return Effect.tap(check({ text: messages.map(Message.text).join("\n\n"), messages, run }), () =>
      Effect.sync(() => checked.set(run, end))
    )
  }

  return Middleware.make<E | TripError<T>, R>({
    name: `Guardrail(${name})`,
    inherit: true,
    ...(mode === "before"
      ? {
          beforeModel: Effect.fnUntraced(function* (run) {
            const verdict = yield* pending(run) ?? Effect.succeed(pass)
            if (verdict._tag === "Pass") return undefined
            const end = Middleware.end("refused", answerOf(name, onTrip))
            return yield* tripped(name, onTrip, "input", run, verdict.reason, end)
          })
        }
      : {}),
    // In mode "before" this finds something only if an outer middleware went past `beforeModel` to a final answer.
    wrapModelCall: (request, next, run) =>
      Stream.suspend((): Stream.Stream<TurnPart, ModelError | E | TripError<T>, R> => {
        const verdict = request.purpose === turnPurpose ? pending(run) : undefined
        if (verdict === undefined) return next(request)
        return (mode === "before" ? Guard.checkFirst : Guard.checkBeside)(
          next(request),
          verdict,
          inTurn(name, onTrip, "input", run)
        )
      })
  })
}

const refuseOutput = makeMiddlewareCheck("Guardrail", shapes.guardrailOutput)

/**
 * Checks every turn of the model, and answers of tools in the model's place (`returnDirect`). A tripped turn leaves
 * nothing: its message is not in the history and its tool calls do not run. Sub-agents inherit the check.
 *
 * `mode` is `"before"` by default: nothing of a turn is shown until the whole turn has passed, so there is no
 * streaming. With `"beside"` the text is streamed, and voided when the check of the complete turn trips. Put it before
 * middleware that changes the model's answer.
 */
export const output = <E = never, R = never, const T extends OnTrip = "fail">(
  options: Options<Output, E, R, T> & {
    /** The time of the check: `before` a turn is shown, or `beside` its stream. Default: `before`. */
    readonly mode?: Mode | undefined
  }
): Middleware.Middleware<E | TripError<T>, R> => {
  const refused = refuseOutput(options)
  if (refused !== undefined) return refused
  const { check, mode = "before", name } = options
  const onTrip = options.onTrip ?? byDefault<T>("fail")
  const checkMessage = (run: Run) => (message: Message.AiMessage) =>
    check({ text: Message.text(message), message, run })
  return Middleware.make<E | TripError<T>, R>({
    name: `Guardrail(${name})`,
    inherit: true,
    wrapModelCall: (request, next, run) =>
      request.purpose === turnPurpose
        ? (mode === "before" ? Guard.hold : Guard.after)(
            next(request),
            checkMessage(run),
            inTurn(name, onTrip, "output", run)
          )
        : next(request),
    wrapToolCall: Effect.fnUntraced(function* (call, next, run) {
      const result = yield* next(call)
      // A call by a tool ends nothing.
      if (!result.returnDirect || result.isError || call.parent !== undefined) return result
      const verdict = yield* checkMessage(run)(Message.ai(result.content))
      if (verdict._tag === "Pass") return result
      const instead = ToolOutput.make(answerOf(name, onTrip).content, { returnDirect: true })
      return yield* tripped(name, onTrip, "output", run, verdict.reason, instead)
    })
  })
}

const refuseToolCalls = makeMiddlewareCheck("Guardrail", shapes.guardrailToolCalls)

/**
 * Checks tool calls, all of a turn at once, before the first of them runs. A call that trips is not run: the model is
 * told the reason and goes on (`onTrip: "answer"`, the default), or the run fails with {@link GuardrailTripped}
 * (`"fail"`, and then no call of the turn runs). Sub-agents inherit the check.
 */
export const toolCalls = <E = never, R = never, const T extends "answer" | "fail" = "answer">(
  options: Options<Call, E, R, T>
): Middleware.Middleware<E | TripError<T>, R> => {
  const refused = refuseToolCalls(options)
  if (refused !== undefined) return refused
  const { check, name } = options
  const onTrip = options.onTrip ?? byDefault<T>("answer")
  return Middleware.make<E | TripError<T>, R>({
    name: `Guardrail(${name})`,
    inherit: true,
    rulings: Effect.fnUntraced(function* (run, calls) {
      const verdicts = yield* Effect.forEach(calls, (call) => check({ call, run }), { concurrency: "unbounded" })
      return yield* Effect.forEach(verdicts, (verdict) => {
        if (verdict._tag === "Pass") return Effect.undefined
        const text = `Not executed: guardrail "${name}" does not allow it: ${verdict.reason}`
        return tripped(name, onTrip, "toolCall", run, verdict.reason, Ruling.refuse(`guardrail ${name}`, text))
      })
    })
  })
}

/** The result of a tool call, before the model reads it, also of a failed one (`isError`). */
export interface ToolResult {
  readonly call: Middleware.PreparedCall
  readonly output: ToolOutput.ToolOutput
  readonly text: string
  readonly run: Run
}

/** The verdict on a result: it passes, something is wrong with it, or the model reads another one in its place. */
export type ResultVerdict = Verdict | { readonly _tag: "Replace"; readonly content: ReadonlyArray<Content.Block> }

/** The model reads this in the place of a result. Whether the call failed stays as it is; the details for people go. */
export const replace = (content: Content.Input): ResultVerdict => ({
  _tag: "Replace",
  content: Content.fromInput(content)
})

/**
 * Replaces each match of a pattern in the texts of a result by `mask`, also across consecutive texts. A result without
 * a match passes. Blocks other than text stay as they are.
 */
export const redact = ({ output }: Pick<ToolResult, "output">, pattern: RegExp, mask = "[redacted]"): ResultVerdict => {
  const content = Guard.redacted(output.content, pattern, mask)
  return content === undefined ? pass : { _tag: "Replace", content }
}

const refuseToolResults = makeMiddlewareCheck("Guardrail", shapes.guardrailToolResults)

/**
 * Checks the results of tools before the model reads them. A result passes, is replaced or redacted ({@link replace},
 * {@link redact}), or trips. A tripped result is withheld. Then the model gets the reason (`onTrip: "answer"`, the
 * default), or the run fails with {@link GuardrailTripped} (`"fail"`). The effects of the call stay. Failures of tools
 * are checked like results. So are results of inner calls, which go to the calling tools. Sub-agents inherit the check.
 *
 * Put it before middleware that changes results, so that it sees the model's view.
 */
export const toolResults = <E = never, R = never, const T extends "answer" | "fail" = "answer">(options: {
  /** The name of the guardrail, in errors and events. */
  readonly name: string
  /** Passes a result, replaces it, or trips with a reason. */
  readonly check: (subject: ToolResult) => Effect.Effect<ResultVerdict, E, R>
  /** The effect of a trip: the model reads the reason (`answer`), or the run fails (`fail`). Default: `answer`. */
  readonly onTrip?: T | undefined
}): Middleware.Middleware<E | TripError<T>, R> => {
  const refused = refuseToolResults(options)
  if (refused !== undefined) return refused
  const { check, name } = options
  const onTrip = options.onTrip ?? byDefault<T>("answer")
  return Middleware.make<E | TripError<T>, R>({
    name: `Guardrail(${name})`,
    inherit: true,
    wrapToolCall: (call, next, run) => {
      const judged = Effect.fnUntraced(function* (output: ToolOutput.ToolOutput) {
        const verdict = yield* check({ call, output, text: ToolOutput.text(output), run })
        if (verdict._tag === "Pass") return output
        if (verdict._tag === "Replace") {
          return ToolOutput.make(verdict.content, { ...output, details: undefined, sources: undefined })
        }
        const text = `The result is withheld: guardrail "${name}" does not allow it: ${verdict.reason}`
        const instead = ToolOutput.make(text, { isError: true, state: output.state })
        return yield* tripped(name, onTrip, "toolResult", run, verdict.reason, instead)
      })
      return Effect.matchEffect(next(call), {
        onSuccess: judged,
        onFailure: (error) => {
          const output = ToolOutput.make(error.message, { isError: true })
          return Effect.flatMap(judged(output), (judgedOutput) =>
            Effect.fail(
              judgedOutput === output
                ? error
                : new ToolError({ reason: error.reason, message: ToolOutput.text(judgedOutput), ...retryable(error) })
            )
          )
        }
      })
    }
  })
}

const retryable = ({ isRetryable }: ToolError) => (isRetryable === undefined ? {} : { isRetryable })
