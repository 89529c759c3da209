import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

const ahead = 256

/** A reason that costs nothing to make: without one, `abort()` makes an exception with a stack trace. */
const left = "the reader left"

const unused = new AbortController()

/**
 * One fiber step per element is what makes `Stream.fromAsyncIterable` slow, so the iterator is drained by a plain loop
 * into a queue, and the reader takes arrays. `ahead` bounds the queue: the loop waits, and with it the source.
 */
export const fromAsyncIterable = <A, E>(
  make: (signal: AbortSignal) => AsyncIterable<A>,
  onError: (cause: unknown) => E
): Stream.Stream<A, E> =>
  Stream.fromChannel(
    Channel.fromTransform((_, scope) =>
      Effect.flatMap(Queue.unbounded<A, E | Cause.Done>(), (queue) => {
        // One is dear to make, and a source that takes none has no use for it.
        const controller = make.length === 0 ? unused : new AbortController()
        let iterator: AsyncIterator<A> | undefined
        let resume: (() => void) | undefined
        let over = false

        const pump = async (): Promise<void> => {
          iterator = make(controller.signal)[Symbol.asyncIterator]()
          while (!over) {
            const next = await iterator.next()
            if (over) return
            if (next.done === true) {
              over = true
              Queue.endUnsafe(queue)
              return
            }
            Queue.offerUnsafe(queue, next.value)
            if (Queue.sizeUnsafe(queue) >= ahead) {
              await new Promise<void>((wake) => {
                resume = wake
              })
            }
          }
        }

        pump().then(undefined, (cause: unknown) => {
          if (over) return
          over = true
          const error = Result.try(() => onError(cause))
          Queue.failCauseUnsafe(queue, Result.isSuccess(error) ? Cause.fail(error.success) : Cause.die(error.failure))
        })

        const leave = Effect.sync(() => {
          if (over) return
          over = true
          if (controller !== unused) controller.abort(left)
          resume?.()
          // What the source does with that is its own affair; nobody reads it any more.
          iterator?.return?.().then(undefined, () => undefined)
        })
        const pull = Effect.map(Queue.takeAll(queue), (items) => {
          const wake = resume
          resume = undefined
          wake?.()
          return items
        })
        return Effect.as(Scope.addFinalizer(scope, leave), pull)
      })
    )
  )
