/**
 * Joins requests of the same time into batches, which a provider answers within a day for half the price. The store
 * keeps the batch of each request until a run has its answer, so a process after a crash goes on with the batch instead
 * of paying twice.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { JsonObject } from "../../../core/Json.ts"
import { isModelError, ModelError } from "../../../core/ModelError.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { badResponse, type Origin } from "../wire/errors.ts"
import { linesOf } from "../wire/lines.ts"
import { objectOf, parse, stringOf } from "../wire/read.ts"

/** The options of a layer that asks in batches. */
export interface Batching {
  /** The time that a request waits for others, which are sent in the same batch. Default: 5 seconds. */
  readonly window?: Duration.Input | undefined
  /** The most requests of a batch, which is then sent at once. Default: 10,000. */
  readonly limit?: number | undefined
  /**
   * The time between two looks at a batch. It doubles with each look, up to ten times the first one. Default: 15
   * seconds.
   */
  readonly interval?: Duration.Input | undefined
}

/** A request of a batch. Requests of one `group` can share a batch. `text` is the JSON of the request. */
export interface BatchRequest {
  readonly group: string
  readonly text: string
}

/** The end of a batch. */
export interface BatchEnd {
  /** Reads the results. Each has a `custom_id`. */
  readonly read: (take: (result: JsonObject) => void) => Effect.Effect<void, ModelError>
  /** The failure of a request without a result. */
  readonly missing: ModelError
}

/** The requests that a provider's API has for batches. */
export interface BatchApi {
  readonly provider: string
  readonly model: string
  /** Uploads the requests. The inner effect begins the batch, and returns its id. */
  readonly begin: (
    group: string,
    requests: ReadonlyArray<{ readonly id: string; readonly text: string }>
  ) => Effect.Effect<Effect.Effect<string, ModelError>, ModelError>
  /** Looks at a batch. `undefined` while it is under way. */
  readonly look: (batch: string) => Effect.Effect<BatchEnd | undefined, ModelError>
}

/** Asks for one request, and returns its result when its batch is over. */
export type AskInBatch = (request: BatchRequest) => Effect.Effect<JsonObject, ModelError>

/** Opens the requests of one session, which ends with its scope. */
export type OpenBatched<Send> = Effect.Effect<Send, never, Scope.Scope>

/** Reads the results of a batch: one in each line. */
export const readResults = async (
  body: Response["body"],
  origin: Origin,
  take: (result: JsonObject) => void
): Promise<void> => {
  for await (const line of linesOf(body, origin)) {
    const result = objectOf(Result.getOrUndefined(parse(line)))
    if (result !== undefined) take(result)
  }
}

/** The failure of a request that was not answered within the day of its batch. */
export const expired = ({ model, provider }: Origin): ModelError =>
  new ModelError({
    provider,
    model,
    reason: { _tag: "Timeout" },
    detail: "the day of the batch was over before this request was answered"
  })

/** The failure of a request whose batch somebody cancelled. */
export const cancelled = ({ model, provider }: Origin): ModelError =>
  new ModelError({
    provider,
    model,
    reason: { _tag: "Unknown" },
    detail: "somebody cancelled the batch before this request was answered"
  })

/** The failure of a request that a batch has no result for. */
export const lost = (origin: Origin): ModelError =>
  badResponse(origin, "the batch is over, and has no result for this request")

interface Waiter extends BatchRequest {
  readonly key: string
  /** Tells equal requests apart. */
  readonly number: number
  readonly id: string
  readonly done: Deferred.Deferred<JsonObject, ModelError>
}

type Waiters = Map<string, Waiter>

/** Requests that wait for others. */
interface Group {
  readonly waiters: Waiters
  size: number
}

/** The most characters of a batch's requests. Providers take twice as many bytes. */
const largestBatch = 64_000_000

/** The failed looks in a row after which the requests fail. Their batch goes on, and the same request finds it. */
const mostFailures = 20

/** Numbers equal requests that wait at the same time, so that each has an answer of its own. */
const makeNumbers = () => {
  const used = new Map<string, Set<number>>()
  return {
    take: (key: string): number => {
      const numbers = used.get(key) ?? new Set<number>()
      used.set(key, numbers)
      let number = 0
      while (numbers.has(number)) number++
      numbers.add(number)
      return number
    },
    free: (key: string, number: number): void => {
      const numbers = used.get(key)
      numbers?.delete(number)
      if (numbers?.size === 0) used.delete(key)
    }
  }
}

const failAll = (waiters: Iterable<Waiter>, cause: Cause.Cause<ModelError>): void => {
  for (const { done } of waiters) Deferred.doneUnsafe(done, Exit.failCause(cause))
}

/** The ids of batches by request, in the store of the program. */
const makeMemory = Effect.fnUntraced(function* ({ model, provider }: BatchApi) {
  const store = KeyValueStore.prefix(yield* KeyValueStore.KeyValueStore, `model-batch/${provider}/`)
  const unreadable = (cause: unknown) =>
    new ModelError({
      provider,
      model,
      reason: { _tag: "Unknown" },
      detail: "the store of batches can't be read, so nobody knows whether this request was sent: mend the store",
      cause
    })
  const warn = Effect.catch((cause: unknown) =>
    Effect.logWarning(`the store of batches can't be written: ${String(cause)}`)
  )
  return {
    find: (id: string) => Effect.mapError(store.get(id), unreadable),
    keep: (ids: Iterable<string>, batch: string) =>
      Effect.forEach(ids, (id) => warn(store.set(id, batch)), { concurrency: 16, discard: true }),
    forget: (ids: Iterable<string>) =>
      Effect.forEach(ids, (id) => warn(store.remove(id)), { concurrency: 16, discard: true })
  }
})

type Memory = Effect.Success<ReturnType<typeof makeMemory>>

/** Watches batches until they are over. `ask` asks anew for requests whose batch the provider does not have any more. */
const makeWatch = (api: BatchApi, memory: Memory, first: number, ask: (waiter: Waiter) => void) => {
  const watched = new Map<string, Waiters>()

  const settle = Effect.fnUntraced(function* (batch: string, waiters: Waiters, { missing, read }: BatchEnd) {
    // A request from now on looks for itself: its result may have been read already.
    watched.delete(batch)
    yield* read((result) => {
      const id = stringOf(result["custom_id"])
      const waiter = id === undefined ? undefined : waiters.get(id)
      if (waiter === undefined) return
      waiters.delete(waiter.id)
      Deferred.doneUnsafe(waiter.done, Exit.succeed(result))
    })
    yield* memory.forget(waiters.keys())
    failAll(waiters.values(), Cause.fail(missing))
  })

  /** Looks once. True if nobody waits any more. */
  const look = Effect.fnUntraced(function* (batch: string, waiters: Waiters) {
    const end = yield* api.look(batch)
    if (end === undefined) return false
    yield* settle(batch, waiters, end)
    return true
  })

  /** Watches a batch. That of an earlier process may be gone. */
  const watch = Effect.fnUntraced(function* (batch: string, waiters: Waiters, isEarlier: boolean, delay: number) {
    let pause = delay
    for (let failures = 0; waiters.size > 0;) {
      yield* Effect.sleep(pause)
      if (waiters.size === 0) break
      const looked = yield* Effect.exit(look(batch, waiters))
      pause = Math.min(Math.max(first, pause * 2), first * 10)
      if (Exit.isSuccess(looked)) {
        if (looked.value) return
        failures = 0
        continue
      }
      const error = Cause.squash(looked.cause)
      if (!isModelError(error)) return yield* Effect.die(error)
      if (isEarlier && error.status === 404) {
        watched.delete(batch)
        yield* memory.forget(waiters.keys())
        return waiters.forEach(ask)
      }
      failures++
      if (!error.isRetryable || failures > mostFailures) {
        watched.delete(batch)
        return failAll(waiters.values(), looked.cause)
      }
    }
    watched.delete(batch)
  })

  return {
    /** Adds requests to a batch that is watched, or returns the effect that watches it. */
    add: (batch: string, added: ReadonlyArray<Waiter>, isEarlier: boolean, delay: number) => {
      // A request that was left finds its result when it is asked again.
      const waiting = added.filter(({ done }) => !Deferred.isDoneUnsafe(done))
      const watchedWaiters = watched.get(batch)
      for (const waiter of waiting) watchedWaiters?.set(waiter.id, waiter)
      if (watchedWaiters !== undefined) return Effect.void
      const waiters: Waiters = new Map(waiting.map((waiter) => [waiter.id, waiter]))
      watched.set(batch, waiters)
      return Effect.onError(watch(batch, waiters, isEarlier, delay), (cause) =>
        Effect.sync(() => {
          watched.delete(batch)
          failAll(waiters.values(), cause)
        })
      )
    },
    leave: ({ id }: Waiter) => {
      for (const waiters of watched.values()) waiters.delete(id)
    }
  }
}

/** Gathers requests until their time is over, or they are enough for a batch. */
const makeGroups = (
  limit: number,
  together: number,
  send: (group: string, waiters: Waiters) => Effect.Effect<void>
) => {
  const groups = new Map<string, Group>()

  /** Closes a group, and returns the effect that sends it. */
  const close = (name: string, group: Group): Effect.Effect<void> => {
    if (groups.get(name) !== group) return Effect.void
    groups.delete(name)
    return group.waiters.size === 0 ? Effect.void : send(name, group.waiters)
  }

  const open = (name: string): Effect.Effect<void> => {
    const group: Group = { waiters: new Map(), size: 0 }
    groups.set(name, group)
    return Effect.delay(
      Effect.suspend(() => close(name, group)),
      together
    )
  }

  return {
    /** Adds a request, and returns the effects that send batches. */
    add: (waiter: Waiter): ReadonlyArray<Effect.Effect<void>> => {
      const { group: name, id, text } = waiter
      const last = groups.get(name)
      const isFull = last !== undefined && last.size + text.length > largestBatch
      const before = isFull ? [close(name, last)] : []
      const opened = last === undefined || isFull ? [open(name)] : []
      const group = groups.get(name)
      group?.waiters.set(id, waiter)
      if (group !== undefined) group.size += text.length
      const after = group !== undefined && group.waiters.size >= limit ? [close(name, group)] : []
      return [...before, ...opened, ...after]
    },
    leave: ({ group, id }: Waiter): void => {
      groups.get(group)?.waiters.delete(id)
    }
  }
}

/** Makes the sender of requests. The scope bounds its looks: a batch goes on at the provider when the scope closes. */
export const makeBatches = Effect.fnUntraced(function* (
  api: BatchApi,
  { interval = "15 seconds", limit = 10_000, window = "5 seconds" }: Batching
) {
  const memory = yield* makeMemory(api)
  const scope = yield* Effect.scope
  const services = yield* Effect.context<never>()
  const first = Duration.toMillis(interval)
  const together = Duration.toMillis(window)
  const numbers = makeNumbers()
  const fork = (effect: Effect.Effect<void>): void => {
    Effect.runForkWith(services)(Effect.forkIn(effect, scope))
  }

  const begin = Effect.fnUntraced(function* (group: string, waiters: Waiters) {
    const create = yield* api.begin(group, [...waiters.values()])
    // A batch that began is kept, even if the scope closes now.
    const batch = yield* Effect.uninterruptible(Effect.tap(create, (id) => memory.keep(waiters.keys(), id)))
    yield* watches.add(batch, [...waiters.values()], false, first)
  })
  const groups = makeGroups(limit, together, (group, waiters) =>
    Effect.catchCause(begin(group, waiters), (cause) => Effect.sync(() => failAll(waiters.values(), cause)))
  )
  const enqueue = (waiter: Waiter): void => groups.add(waiter).forEach(fork)
  const watches = makeWatch(api, memory, first, enqueue)

  const ask = ({ group, text }: BatchRequest, answered: Array<Waiter>) =>
    Effect.suspend(() => {
      const key = sha256Sync(`${group}\n${text}`).slice(0, 40)
      const number = numbers.take(key)
      const waiter: Waiter = { group, text, key, number, id: `${key}-${number}`, done: Deferred.makeUnsafe() }
      const answer = Effect.gen(function* () {
        const earlier = yield* memory.find(waiter.id)
        if (earlier === undefined) enqueue(waiter)
        // Others of the same batch ask in the same moments: its results are read once.
        else fork(watches.add(earlier, [waiter], true, together))
        return yield* Deferred.await(waiter.done)
      })
      return Effect.onExit(answer, (exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) return void answered.push(waiter)
          Deferred.doneUnsafe(waiter.done, Exit.interrupt())
          numbers.free(key, number)
          groups.leave(waiter)
          watches.leave(waiter)
        })
      )
    })

  /**
   * Opens the requests of one session. A session asks for its next turn behind the store of the turn before, so an answer
   * is forgotten then, or when the session ends well. The answer of a run that broke off stays: the same request reads
   * it again. A run that a model failed has its answers.
   */
  const open: OpenBatched<AskInBatch> = Effect.gen(function* () {
    const answered: Array<Waiter> = []
    const free = Effect.sync(() => {
      const all = answered.splice(0)
      for (const { key, number } of all) numbers.free(key, number)
      return all.map(({ id }) => id)
    })
    const forget = Effect.suspend(() =>
      Effect.flatMap(memory.forget(answered.map(({ id }) => id)), () => Effect.asVoid(free))
    )
    yield* Effect.addFinalizer((exit) =>
      Exit.isSuccess(exit) || isModelError(Cause.squash(exit.cause)) ? forget : Effect.asVoid(free)
    )
    return (request) => Effect.andThen(forget, ask(request, answered))
  })
  return open
})
