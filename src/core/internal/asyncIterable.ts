import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

const ahead = 256

/**
 * One fiber step per element is what makes `Stream.fromAsyncIterable` slow, so the iterator is drained by a plain loop
 * into a queue, and the reader takes arrays. `ahead` bounds the queue: the loop waits, and with it the source.
 */
export const fromAsyncIterable = <A, E>(
  make: (signal: AbortSignal) => AsyncIterable<A>,
  onError: (cause: unknown) => E
): Stream.Stream<A, E> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const queue = yield* Queue.unbounded<A, E | Cause.Done>()
      const controller = new AbortController()
      let resume: (() => void) | undefined
      let left = false
      const pump = async (): Promise<void> => {
        const iterator = make(controller.signal)[Symbol.asyncIterator]()
        controller.signal.addEventListener("abort", () => void iterator.return?.()?.then(undefined, () => undefined))
        for (;;) {
          const next = await iterator.next()
          if (left) return
          if (next.done === true) {
            Queue.endUnsafe(queue)
            return
          }
          Queue.offerUnsafe(queue, next.value)
          if (Queue.sizeUnsafe(queue) >= ahead) {
            await new Promise<void>((resolve) => {
              resume = resolve
            })
          }
        }
      }
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          left = true
          controller.abort()
          resume?.()
        })
      )
      pump().then(undefined, (cause: unknown) => {
        if (!left) Queue.failCauseUnsafe(queue, Cause.fail(onError(cause)))
      })
      const pull = Effect.map(Queue.takeAll(queue), (items) => {
        const waiting = resume
        resume = undefined
        waiting?.()
        return items
      })
      return Stream.fromPull(Effect.succeed(pull))
    })
  )
