/**
 * Calls a handler of an `effect/ai` toolkit as a tool of an agent: its results become output, its failures
 * `ToolError`s.
 */
import * as AiError from "effect/ai/AiError"
import type * as AiPrompt from "effect/ai/Prompt"
import type * as AiTool from "effect/ai/Tool"
import * as AiToolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { JsonObject } from "../../../../core/Json.ts"
import { ToolContext } from "../../../../core/ToolContext.ts"
import { fromUnknown, ToolError } from "../../../../core/ToolError.ts"
import * as ToolOutput from "../../../../core/ToolOutput.ts"
import { fromMessages } from "../../EffectAiPrompt.ts"
import { shownBlocks } from "./media.ts"
import { toJson } from "./metadata.ts"

type Outcome = AiTool.HandlerResult<AiTool.Any>

/** The handlers of a toolkit by name. The types of the tools carry their requirements. */
export interface ToolkitHandlers {
  readonly handle: (
    name: string,
    params: unknown,
    toolCallId: string | undefined
  ) => Effect.Effect<Stream.Stream<Outcome, unknown>, AiError.AiError>
}

type Approve<R> = (request: {
  readonly callId: string
  readonly toolName: string
  readonly arguments: JsonObject
}) => Effect.Effect<boolean, never, R>

/** Preliminary results that may wait for the run, at most: a slow run slows the handler. */
const preliminaryBuffer = 16

const render = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(toJson(value))

const outputOf = (outcome: Outcome): ToolOutput.ToolOutput => {
  if (outcome.modelOutput !== undefined) return ToolOutput.make(shownBlocks(outcome.modelOutput))
  const text = render(outcome.encodedResult)
  return ToolOutput.make(text === "" ? "(The tool gave no result.)" : text)
}

/** Describes a failure of the tool's own type by its message, else by its fields. */
const describe = (tool: AiTool.Any, failure: unknown): Effect.Effect<ToolError> => {
  if (typeof failure === "string" || (Predicate.hasProperty(failure, "message") && failure.message !== "")) {
    return Effect.succeed(fromUnknown(failure))
  }
  // Encoding needs no services beyond the tool's.
  const encoded = Schema.encodeUnknownEffect(tool.failureSchema)(failure) as Effect.Effect<unknown, Schema.SchemaError>
  return Effect.match(encoded, {
    onSuccess: (value) => new ToolError({ reason: "Failed", message: render(value), cause: failure }),
    onFailure: () => fromUnknown(failure)
  })
}

const invalidArguments = (description: string): string =>
  `The arguments are not valid. Correct them and call again:\n${description}`

const toToolError = (tool: AiTool.Any, failure: unknown): Effect.Effect<ToolError> => {
  if (!AiError.isAiError(failure)) return describe(tool, failure)
  const { reason } = failure
  if (reason._tag === "ToolParameterValidationError") {
    const message = invalidArguments(reason.description)
    return Effect.succeed(new ToolError({ reason: "InvalidArguments", message, cause: failure }))
  }
  return Effect.succeed(new ToolError({ reason: "Failed", message: reason.message, cause: failure }))
}

const failWith = (tool: AiTool.Any, failure: unknown): Effect.Effect<never, ToolError> =>
  Effect.flatMap(toToolError(tool, failure), Effect.fail)

/** Gives the conversation up to the call, which `needsApproval` may look at. */
const messagesOf = (context: Option.Option<ToolContext["Service"]>): Effect.Effect<ReadonlyArray<AiPrompt.Message>> =>
  Option.match(context, {
    onNone: () => Effect.succeed([]),
    onSome: (run) => Effect.map(run.messages, (messages) => fromMessages(messages).content)
  })

/** Arguments that do not decode need no approval: the handler never sees them. */
const needsApproval = Effect.fnUntraced(function* (
  tool: AiTool.Any,
  args: JsonObject,
  context: Option.Option<ToolContext["Service"]>,
  toolCallId: string
) {
  const { needsApproval: needed } = tool
  if (typeof needed !== "function") return needed === true
  // Decoding needs no services beyond the tool's.
  const decode = Schema.decodeUnknownEffect(tool.parametersSchema)(args) as Effect.Effect<unknown, Schema.SchemaError>
  const decoded = yield* Effect.option(decode)
  if (Option.isNone(decoded)) return false
  const answer = needed(decoded.value, { toolCallId, messages: yield* messagesOf(context) })
  return Effect.isEffect(answer) ? yield* answer : answer
})

/** Runs one call. */
export const callHandler = Effect.fnUntraced(function* <R>(
  tool: AiTool.Any,
  handlers: ToolkitHandlers,
  args: JsonObject,
  approve: Approve<R> | undefined
) {
  const context = yield* Effect.serviceOption(ToolContext)
  const callId = Option.match(context, { onNone: () => "", onSome: (run) => run.callId })
  if (yield* needsApproval(tool, args, context, callId)) {
    const approved = approve !== undefined && (yield* approve({ callId, toolName: tool.name, arguments: args }))
    if (!approved) {
      return yield* new ToolError({ reason: "Rejected", message: `The call of ${tool.name} was not approved.` })
    }
  }
  const outcomes = yield* Effect.provideService(
    Effect.catch(handlers.handle(tool.name, args, callId === "" ? undefined : callId), (error) =>
      failWith(tool, error)
    ),
    AiToolkit.PreliminaryBuffer,
    preliminaryBuffer
  )
  let last: Outcome | undefined
  yield* Stream.runForEach(
    Stream.catch(outcomes, (failure) => Stream.fromEffect(failWith(tool, failure))),
    (outcome) => {
      if (!outcome.preliminary) last = outcome
      return outcome.preliminary && Option.isSome(context)
        ? context.value.emit(toJson(outcome.encodedResult))
        : Effect.void
    }
  )
  if (last === undefined) {
    return yield* new ToolError({ reason: "Failed", message: `${tool.name} ended without a result.` })
  }
  return last.isFailure ? yield* failWith(tool, last.result) : outputOf(last)
})
