/**
 * Turns a provider's async iterable into a stream.
 */
import * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

const ahead = 256

/** A reason that costs nothing to make: without one, `abort()` makes an exception with a stack trace. */
const left = "the reader left"

const unused = new AbortController()

type Read<A, E> = Pull.Pull<Array.NonEmptyReadonlyArray<A>, E>

/**
 * One fiber step per element is what makes `Stream.fromAsyncIterable` slow, so the iterator is drained by a plain loop
 * into an array, and the reader takes it whole. `ahead` bounds the array: the loop waits, and with it the source. The
 * reader is woken by the fibers' scheduler, so it finds all that came without waiting.
 */
export const fromAsyncIterable = <A, E>(
  make: (signal: AbortSignal) => AsyncIterable<A>,
  onError: (cause: unknown) => E
): Stream.Stream<A, E> =>
  Stream.fromChannel(
    Channel.fromTransform((_, scope) =>
      Effect.withFiber((fiber) => {
        // One is dear to make, and a source that takes none has no use for it.
        const controller = make.length === 0 ? unused : new AbortController()
        let iterator: AsyncIterator<A> | undefined
        let items: ReadonlyArray<A> & { push(item: A): void } = []
        let end: Read<A, E> | undefined
        let hasLeft = false
        let resume: (() => void) | undefined
        let wake: (() => void) | undefined

        const awaken = () => {
          const waiting = wake
          wake = undefined
          waiting?.()
        }
        const notify = () => {
          if (wake !== undefined) fiber.currentDispatcher.scheduleTask(awaken, 0)
        }
        const finish = (how: Read<A, E>) => {
          end = how
          notify()
        }

        const pump = async (): Promise<void> => {
          iterator = make(controller.signal)[Symbol.asyncIterator]()
          while (!hasLeft) {
            const next = await iterator.next()
            if (hasLeft) return
            if (next.done === true) return finish(Cause.done())
            items.push(next.value)
            if (items.length === 1) notify()
            else if (items.length >= ahead) {
              await new Promise<void>((go) => {
                resume = go
              })
            }
          }
        }

        pump().then(undefined, (cause: unknown) => {
          if (hasLeft) return
          const error = Result.try(() => onError(cause))
          finish(Result.isSuccess(error) ? Effect.fail(error.success) : Effect.die(error.failure))
        })

        const leave = Effect.sync(() => {
          hasLeft = true
          if (end !== undefined) return
          if (controller !== unused) controller.abort(left)
          resume?.()
          // What the source does with that is its own affair; nobody reads it any more.
          iterator?.return?.().then(undefined, () => undefined)
        })
        const waited: Read<A, E> = Effect.flatMap(
          Effect.callback<void>((ready) => {
            wake = () => ready(Effect.void)
            return Effect.sync(() => {
              wake = undefined
            })
          }),
          () => pull
        )
        const pull: Read<A, E> = Effect.suspend(() => {
          const taken = items
          if (!Array.isReadonlyArrayNonEmpty(taken)) return end ?? waited
          items = []
          const go = resume
          resume = undefined
          go?.()
          return Effect.succeed(taken)
        })
        return Effect.as(Scope.addFinalizer(scope, leave), pull)
      })
    )
  )
