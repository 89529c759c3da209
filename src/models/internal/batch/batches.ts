/**
 * Joins requests of the same time into batches, which a provider answers within a day for half the price. The store
 * keeps the batch of each request until a run has its answer, so a process after a crash goes on with the batch instead
 * of paying twice. Before a batch begins, the store keeps its intent: with that, a process finds a batch whose id the
 * process before did not learn.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { JsonObject } from "../../../core/Json.ts"
import { isModelError, ModelError } from "../../../core/ModelError.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { badResponse, type Origin } from "../wire/errors.ts"
import { linesOf } from "../wire/lines.ts"
import { objectOf, parse, stringOf } from "../wire/read.ts"
import { findBatch, type Intent, type ListedBatch, readIntent, writeIntent } from "./intent.ts"

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

/** Requests that were uploaded. `create` begins their batch, and returns its id. */
export interface Uploaded {
  readonly upload?: string
  readonly create: Effect.Effect<string, ModelError>
}

/** The requests that a provider's API has for batches. */
export interface BatchApi {
  readonly provider: string
  readonly model: string
  /** Uploads the requests. */
  readonly begin: (
    group: string,
    requests: ReadonlyArray<{ readonly id: string; readonly text: string }>
  ) => Effect.Effect<Uploaded, ModelError>
  /** Lists batches, with the newest first. `after` is the last batch of the page before. */
  readonly list: (after: string | undefined) => Effect.Effect<ReadonlyArray<ListedBatch>, ModelError>
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
    /** Finds the batch of a request, or its intent. */
    find: (id: string) =>
      Effect.map(Effect.mapError(store.get(id), unreadable), (text): string | Intent | undefined =>
        Option.getOrElse(readIntent(text), () => text)
      ),
    keep: (ids: Iterable<string>, batch: string) =>
      Effect.forEach(ids, (id) => warn(store.set(id, batch)), { concurrency: 16, discard: true }),
    forget: (ids: Iterable<string>) =>
      Effect.forEach(ids, (id) => warn(store.remove(id)), { concurrency: 16, discard: true })
  }
})

type Memory = Effect.Success<ReturnType<typeof makeMemory>>

/** Ways of a request to its batch: it is the one that was begun, one of an earlier process, or one of the same size. */
type Way = "begun" | "earlier" | "guess"

/** The functions of a sender that a watch calls. */
interface Asking {
  /** Asks anew for a request whose batch the provider does not have any more. */
  readonly enqueue: (waiter: Waiter) => void
  /** Looks for the batch of a request again: `batch` is another's. */
  readonly lookElsewhere: (waiter: Waiter, batch: string) => void
}

/** Watches batches until they are over. */
const makeWatch = (api: BatchApi, memory: Memory, first: number, { enqueue, lookElsewhere }: Asking) => {
  const watched = new Map<string, Waiters>()
  const guessing = new Set<Waiter>()

  /** Lets requests look elsewhere that only guessed their batch, and gives the others. */
  const leaveGuess = (batch: string, waiters: Waiters): ReadonlyArray<Waiter> => {
    for (const waiter of [...waiters.values()].filter((one) => guessing.has(one))) {
      guessing.delete(waiter)
      waiters.delete(waiter.id)
      lookElsewhere(waiter, batch)
    }
    return [...waiters.values()]
  }

  const settle = Effect.fnUntraced(function* (batch: string, waiters: Waiters, { missing, read }: BatchEnd) {
    // A request from now on looks for itself: its result may have been read already.
    watched.delete(batch)
    yield* read((result) => {
      const id = stringOf(result["custom_id"])
      const waiter = id === undefined ? undefined : waiters.get(id)
      if (waiter === undefined) return
      waiters.delete(waiter.id)
      guessing.delete(waiter)
      Deferred.doneUnsafe(waiter.done, Exit.succeed(result))
    })
    const others = leaveGuess(batch, waiters)
    yield* memory.forget(others.map(({ id }) => id))
    failAll(others, Cause.fail(missing))
  })

  /** Looks once. True if nobody waits any more. */
  const look = Effect.fnUntraced(function* (batch: string, waiters: Waiters) {
    const end = yield* api.look(batch)
    if (end === undefined) return false
    yield* settle(batch, waiters, end)
    return true
  })

  /** Watches a batch. That of an earlier process may be gone. */
  const watch = Effect.fnUntraced(function* (batch: string, waiters: Waiters, way: Way, delay: number) {
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
      if (way !== "begun" && error.status === 404) {
        watched.delete(batch)
        const others = leaveGuess(batch, waiters)
        yield* memory.forget(others.map(({ id }) => id))
        return others.forEach(enqueue)
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
    add: (batch: string, added: ReadonlyArray<Waiter>, way: Way, delay: number) => {
      // A request that was left finds its result when it is asked again.
      const waiting = added.filter(({ done }) => !Deferred.isDoneUnsafe(done))
      if (way === "guess") for (const waiter of waiting) guessing.add(waiter)
      const watchedWaiters = watched.get(batch)
      for (const waiter of waiting) watchedWaiters?.set(waiter.id, waiter)
      if (watchedWaiters !== undefined) return Effect.void
      const waiters: Waiters = new Map(waiting.map((waiter) => [waiter.id, waiter]))
      watched.set(batch, waiters)
      return Effect.onError(watch(batch, waiters, way, delay), (cause) =>
        Effect.sync(() => {
          watched.delete(batch)
          failAll(waiters.values(), cause)
        })
      )
    },
    leave: (waiter: Waiter) => {
      guessing.delete(waiter)
      for (const waiters of watched.values()) waiters.delete(waiter.id)
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
    const { create, ...uploaded } = yield* api.begin(group, [...waiters.values()])
    const intent: Intent = { at: yield* Clock.currentTimeMillis, count: waiters.size, ...uploaded }
    const ids = [...waiters.keys()]
    yield* memory.keep(ids, writeIntent(intent))
    const begun = Effect.tapError(create, ({ status = 500 }) => (status < 500 ? memory.forget(ids) : Effect.void))
    // A batch that began is kept, even if the scope closes now.
    const batch = yield* Effect.uninterruptible(Effect.tap(begun, (id) => memory.keep(ids, id)))
    yield* watches.add(batch, [...waiters.values()], "begun", first)
  })
  const groups = makeGroups(limit, together, (group, waiters) =>
    Effect.catchCause(begin(group, waiters), (cause) => Effect.sync(() => failAll(waiters.values(), cause)))
  )
  const enqueue = (waiter: Waiter): void => groups.add(waiter).forEach(fork)
  const searches = new Map<string, Effect.Effect<string | undefined, ModelError>>()
  /** Pairs of a request and a batch whose results do not have it. */
  const foreign = new Set<string>()
  const watches = makeWatch(api, memory, first, {
    enqueue,
    lookElsewhere: (waiter, batch) => {
      foreign.add(`${waiter.id} ${batch}`)
      searches.clear()
      fork(resume(waiter))
    }
  })

  /** Finds the batch of an intent, once for all of its requests. */
  const search = Effect.fnUntraced(function* (intent: Intent, { id }: Waiter) {
    const key = writeIntent(intent)
    const isForeign = (batch: string): boolean => foreign.has(`${id} ${batch}`)
    const batch = searches.get(key) ?? (yield* Effect.cached(findBatch(api, intent, isForeign)))
    searches.set(key, batch)
    return yield* Effect.onError(batch, () => Effect.sync(() => searches.delete(key)))
  })

  /** Goes on with the batch that the store, or the provider, knows for a request. Without one, it is asked for anew. */
  const resume = (waiter: Waiter): Effect.Effect<void> =>
    Effect.gen(function* () {
      const earlier = yield* memory.find(waiter.id)
      const batch = typeof earlier === "object" ? yield* search(earlier, waiter) : earlier
      if (batch === undefined) return enqueue(waiter)
      const isGuess = typeof earlier === "object" && earlier.upload === undefined
      if (typeof earlier === "object" && !isGuess) yield* memory.keep([waiter.id], batch)
      // Others of the same batch ask in the same moments: its results are read once.
      yield* watches.add(batch, [waiter], isGuess ? "guess" : "earlier", together)
    }).pipe(Effect.catchCause((cause) => Effect.sync(() => failAll([waiter], cause))))

  const ask = ({ group, text }: BatchRequest, answered: Array<Waiter>) =>
    Effect.suspend(() => {
      const key = sha256Sync(`${group}\n${text}`).slice(0, 40)
      const number = numbers.take(key)
      const waiter: Waiter = { group, text, key, number, id: `${key}-${number}`, done: Deferred.makeUnsafe() }
      const answer = Effect.suspend(() => {
        fork(resume(waiter))
        return Deferred.await(waiter.done)
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
