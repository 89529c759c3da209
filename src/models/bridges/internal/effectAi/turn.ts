/** The stream of an `effect/ai` model as a turn: array by array, and never a success when it broke. */
import type * as AiError from "effect/ai/AiError"
import type * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../../../core/ChatModel.ts"
import { ModelError } from "../../../../core/ModelError.ts"
import { type Origin, toModelError } from "./errors.ts"
import type { Part, Reply } from "./reply.ts"

type Parts<A> = Array.NonEmptyReadonlyArray<A>

type Turn = Pull.Pull<Parts<TurnPart>, ModelError>

const cutOffError = (origin: Origin): ModelError =>
  new ModelError({
    ...origin,
    reason: { _tag: "BadResponse" },
    detail: "the stream ended before the turn was complete"
  })

const isFilled = <A>(items: ReadonlyArray<A>): items is Parts<A> => items.length > 0

/** Words of a provider that could not make sense of a call, with which it ends the whole stream. */
const rejected = (error: AiError.AiError) =>
  error.reason._tag === "ToolParameterValidationError" || error.reason._tag === "ToolNotFoundError"
    ? error.reason
    : undefined

/** Makes a turn of a stream. */
export const toTurn = <R>(
  stream: Stream.Stream<Part, AiError.AiError, R>,
  reply: Reply,
  origin: Origin
): Stream.Stream<TurnPart, ModelError, R> =>
  Stream.transformPull(stream, (pull) =>
    Effect.sync(() => {
      /** Parts behind those given last; set when the end is known. */
      let rest: Turn | undefined

      const done: Turn = Effect.suspend(() => {
        rest = Cause.done()
        return Effect.succeed([{ _tag: "TurnDone", message: reply.message() }])
      })

      const broken = (cause: Cause.Cause<AiError.AiError | Cause.Done>): Turn => {
        if (Pull.isDoneCause(cause)) return reply.isFinished() ? done : Effect.fail(cutOffError(origin))
        const failure = Cause.findError(cause)
        if (Result.isSuccess(failure) && !Cause.isDone(failure.success)) {
          const reason = rejected(failure.success)
          if (reason === undefined) return Effect.fail(toModelError(failure.success, origin))
          reply.reject(reason.toolName, reason.message)
          return done
        }
        const defect = Cause.findDefect(cause)
        // Some providers parse the arguments of a call and let the parser's exception through.
        if (Result.isSuccess(defect) && defect.success instanceof SyntaxError && reply.isWriting()) return done
        // There is no failure among the reasons, only defects and interruptions.
        return Effect.failCause(cause as Cause.Cause<never>)
      }

      const take = (parts: Parts<Part>): Turn => {
        const out: Array<TurnPart> = []
        for (const part of parts) {
          const error = reply.take(part, out)
          if (error !== undefined) {
            rest = Effect.fail(error)
            break
          }
        }
        return isFilled(out) ? Effect.succeed(out) : next
      }

      const next: Turn = Effect.suspend(
        () => rest ?? Effect.matchCauseEffect(pull, { onFailure: broken, onSuccess: take })
      )

      return next
    })
  )
