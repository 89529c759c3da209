/** A middleware that makes the turns and tool calls of a run activities of its workflow. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { type ModelRequest, turnPurpose, type TurnPart } from "../../core/ChatModel.ts"
import { type AiMessage, text as textOf } from "../../core/Message.ts"
import * as Middleware from "../../core/Middleware.ts"
import type { ModelError } from "../../core/ModelError.ts"
import * as Activities from "./activities.ts"

/** The most buffered parts of a turn. */
const ahead = 256

/** Makes the parts of a stored turn. */
const replayTurn = (message: AiMessage): ReadonlyArray<TurnPart> => {
  const text = textOf(message)
  const turnDone: TurnPart = { _tag: "TurnDone", message }
  return text === "" ? [turnDone] : [{ _tag: "TextDelta", text }, turnDone]
}

/** Requests a turn in an activity, and streams its parts. */
const turn = (
  request: ModelRequest,
  next: (request: ModelRequest) => Stream.Stream<TurnPart, ModelError>
): Stream.Stream<TurnPart, ModelError, WorkflowEngine | WorkflowInstance> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const queue = yield* Queue.bounded<TurnPart, ModelError | Cause.Done>(ahead)
      const work = Effect.suspend(() => {
        let answer: AiMessage | undefined
        return Effect.map(
          Stream.runForEachArray(next(request), (parts) => {
            for (const part of parts) {
              if (part._tag === "TurnDone") answer = part.message
              else if (part._tag === "TurnRestarted") answer = undefined
            }
            return Queue.offerAll(queue, parts)
          }),
          () => answer
        )
      })
      yield* Activities.turn(request.messages.at(-1)?.id ?? "", work).pipe(
        Effect.flatMap((message) => (message === undefined ? Effect.void : Queue.offerAll(queue, replayTurn(message)))),
        Effect.onExit((exit) =>
          Queue.failCause(queue, exit._tag === "Failure" ? exit.cause : Cause.fail(Cause.Done()))
        ),
        Effect.forkScoped({ startImmediately: true })
      )
      return Stream.fromQueue(queue)
    })
  )

/**
 * Makes turns and tool calls activities of the current workflow. Their results are stored at once, even if the process dies
 * before they are in the thread.
 */
export const asActivities = Middleware.make<never, WorkflowEngine | WorkflowInstance>({
  name: "activities",
  wrapModelCall: (request, next) => (request.purpose === turnPurpose ? turn(request, next) : next(request)),
  wrapToolCall: (call, next, run) => {
    // The turn with the call, or the message that started a program.
    const origin = run.messages.findLast((message) => message.role !== "tool")
    return origin === undefined ? next(call) : Activities.call(origin.id, call.id, run.state.writes, next(call))
  }
})
