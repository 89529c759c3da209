/** Turns a provider's async iterable into a stream. */
import * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { fromPull } from "./pulled.ts"

const ahead = 256

/** A reason that costs nothing to make: without one, `abort()` makes an exception with a stack trace. */
const abortReason = "the reader left"

/** For sources that take no signal. Workers allow none to be made while a module is loaded. */
let unused: AbortSignal | undefined

type ReadNext<A, E> = Pull.Pull<Array.NonEmptyReadonlyArray<A>, E>

/** A pumped source: its unread items, its end, and who waits. */
interface Source<Item, A, E> {
  readonly fiber: Fiber.Fiber<unknown, unknown>
  readonly pull: ReadNext<A, E>
  iterator: AsyncIterator<Item> | undefined
  items: ReadonlyArray<A> & { push(item: A): void }
  end: ReadNext<A, E> | undefined
  hasLeft: boolean
  /** Lets the pump go on. */
  resume: (() => void) | undefined
  /** Resumes the waiting reader. An interrupted reader ignores it. */
  wake: ((next: ReadNext<A, E>) => void) | undefined
}

/** Node, Bun and Deno have it; browsers and some workers do not. */
declare const process: { readonly nextTick?: <A>(task: (argument: A) => void, argument: A) => void } | undefined

const hasTicks = typeof process !== "undefined" && process.nextTick !== undefined

/** The wakes and elements since the last turn of the event loop that a source took: at most `ahead`. */
let steps = 0

/**
 * Wakes a reader when no promise is left that settles by itself, so the reader finds all items without waiting. Node's
 * ticks cost a tenth of a turn of the event loop; elsewhere the next turn is used. After many wakes Node takes the next
 * turn too: a source that never waits must not block timers and signals.
 */
const whenSettled = <Item, A, E>({ fiber, pull }: Source<Item, A, E>, wake: (next: ReadNext<A, E>) => void): void => {
  steps++
  if (hasTicks && steps < ahead) return process.nextTick(wake, pull)
  steps = 0
  fiber.currentDispatcher.scheduleTask(() => wake(pull), 0)
}

/**
 * One fiber step per element makes `Stream.fromAsyncIterable` slow, so the iterator is drained by a plain loop into an
 * array, and the reader takes it whole. `ahead` bounds the array: the loop waits, and with it the source.
 */
const pumped = <Item, A, E>(
  make: (signal: AbortSignal) => AsyncIterable<Item>,
  add: (items: { push(item: A): void }, item: Item) => void,
  onError: (cause: unknown) => E
): Stream.Stream<A, E> =>
  fromPull((scope) =>
    Effect.withFiber((fiber) => {
      // One is dear to make, and a source that takes none has no use for it.
      const controller = make.length === 0 ? undefined : new AbortController()
      const signal = controller?.signal ?? (unused ??= new AbortController().signal)
      const source: Source<Item, A, E> = {
        fiber,
        pull: Effect.suspend(() => takeItems(source) ?? woken),
        iterator: undefined,
        items: [],
        end: undefined,
        hasLeft: false,
        resume: undefined,
        wake: undefined
      }
      const woken = Effect.callback<Array.NonEmptyReadonlyArray<A>, E | Cause.Done>((ready) => {
        source.wake = ready
      })
      pump(source, make, add, signal).then(undefined, (cause: unknown) => {
        if (source.hasLeft) return
        const error = Result.try(() => onError(cause))
        finish(source, Result.isSuccess(error) ? Effect.fail(error.success) : Effect.die(error.failure))
      })
      return Effect.as(
        Scope.addFinalizer(
          scope,
          Effect.sync(() => leave(source, controller))
        ),
        source.pull
      )
    })
  )

/** Turns an async iterable into a stream of its elements. */
export const fromAsyncIterable = <A, E>(
  make: (signal: AbortSignal) => AsyncIterable<A>,
  onError: (cause: unknown) => E
): Stream.Stream<A, E> => pumped<A, A, E>(make, (items, item) => items.push(item), onError)

/** Turns an async iterable of arrays into a stream of their elements. Its arrays bound the reading ahead. */
export const fromAsyncArrays = <A, E>(
  make: (signal: AbortSignal) => AsyncIterable<ReadonlyArray<A>>,
  onError: (cause: unknown) => E
): Stream.Stream<A, E> =>
  pumped<ReadonlyArray<A>, A, E>(
    make,
    (items, array) => {
      for (const item of array) items.push(item)
    },
    onError
  )

const pump = async <Item, A, E>(
  source: Source<Item, A, E>,
  make: (signal: AbortSignal) => AsyncIterable<Item>,
  add: (items: { push(item: A): void }, item: Item) => void,
  signal: AbortSignal
): Promise<void> => {
  const iterator = (source.iterator = make(signal)[Symbol.asyncIterator]())
  while (!source.hasLeft) {
    const next = await iterator.next()
    if (source.hasLeft) return
    if (next.done === true) return finish(source, Cause.done())
    const before = source.items.length
    add(source.items, next.value)
    if (before === 0 && source.items.length > 0) notify(source)
    if (source.items.length >= ahead) {
      await new Promise<void>((go) => {
        source.resume = go
      })
    }
  }
}

const finish = <Item, A, E>(source: Source<Item, A, E>, end: ReadNext<A, E>): void => {
  source.end = end
  notify(source)
}

const notify = <Item, A, E>(source: Source<Item, A, E>): void => {
  const { wake } = source
  if (wake === undefined) return
  source.wake = undefined
  whenSettled(source, wake)
}

const leave = <Item, A, E>(source: Source<Item, A, E>, controller: AbortController | undefined): void => {
  source.hasLeft = true
  if (source.end !== undefined) return
  controller?.abort(abortReason)
  source.resume?.()
  // A failure of the source is its own affair; nobody reads it any more.
  source.iterator?.return?.().then(undefined, () => undefined)
}

/** Takes the unread items, or the end; `undefined` when the reader must wait. */
const takeItems = <Item, A, E>(source: Source<Item, A, E>): ReadNext<A, E> | undefined => {
  const { items } = source
  if (!Array.isReadonlyArrayNonEmpty(items)) return source.end
  source.items = []
  steps += items.length
  const go = source.resume
  source.resume = undefined
  go?.()
  return Effect.succeed(items)
}
