/** Finds the open requests of a thread, by its last turn and later entries. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { byTime, Request } from "../../core/Approval.ts"
import * as Checkpoint from "../../core/Checkpoint.ts"
import type { Entry, NewEntry, StoredEntry } from "../../core/SessionStore.ts"
import { parse } from "./codec.ts"
import { threadIdProblem } from "./ids.ts"
import { add, checkpointOf, emptySum, type Recent } from "./recent.ts"
import type { Content, Fault, Tables, Waits } from "./tables.ts"

/** The slot of a suspended run. */
const slot = "suspension"

const none: Waits = []

const window = 64

const isSlot = (entry: Entry): boolean => entry._tag === "State" && entry.slot === slot

/** Reports whether an entry begins a turn. A suspension belongs to the last turn. */
const isTurn = (entry: Entry): boolean => entry._tag === "Message" && entry.message.role !== "tool"

/** Recognises entries that may begin or end a wait. A part counts as a message until its run ends. */
const isChange = (entry: Entry): boolean =>
  isSlot(entry) || entry._tag === "Message" || entry._tag === "Part" || entry._tag === "RunSettled"

/** The open requests of a path from the last turn on. */
const requestsOf = (path: ReadonlyArray<Pick<StoredEntry, "id" | "entry">>): Effect.Effect<Waits> => {
  if (!path.some(({ entry }) => isSlot(entry))) return Effect.succeed(none)
  const sum = emptySum()
  for (const { entry, id } of path) add(sum, id, entry)
  // An unreadable state waits for nobody here. The next run of the thread reports it.
  return Effect.map(
    Effect.orElseSucceed(Checkpoint.pending(checkpointOf(sum)), () => none),
    (requests) => {
      const byId = new Map<string, Request>()
      for (const request of requests) {
        // Nobody decides a request that waits for its time. No place can store an invalid id.
        if (request.rule !== byTime && threadIdProblem(request.id) === undefined) byId.set(request.id, request)
      }
      return [...byId.values()]
    }
  )
}

type Path<E> = (from: string, limit: number) => Effect.Effect<ReadonlyArray<StoredEntry>, E>

/** The path to an entry, from its last turn on at least. */
const sinceTurn = Effect.fnUntraced(function* <E>(path: Path<E>, entryId: string | null) {
  const entries: Array<StoredEntry> = []
  let from = entryId
  while (from !== null) {
    const part: ReadonlyArray<StoredEntry> = yield* path(from, window)
    entries.push(...part)
    if (part.some(({ entry }) => isTurn(entry))) break
    from = part.at(-1)?.parentId ?? null
  }
  return entries.toReversed()
})

/** The requests that a thread waits for when it stands at an entry. */
export const waitsAt = <E>(path: Path<E>, entryId: string | null): Effect.Effect<Waits, E> =>
  entryId === null ? Effect.succeed(none) : Effect.flatMap(sinceTurn(path, entryId), requestsOf)

/** The requests that a thread waits for that has these entries. */
export const waitsIn = ({ entries, leaf }: Content): Effect.Effect<Waits> => {
  if (!entries.some(({ entry }) => isSlot(entry))) return Effect.succeed(none)
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  const path: Path<never> = (from, limit) =>
    Effect.sync(() => {
      const part: Array<StoredEntry> = []
      for (let next = byId.get(from); next !== undefined && part.length < limit;) {
        part.push(next)
        next = byId.get(next.parentId ?? "")
      }
      return part
    })
  return waitsAt(path, leaf)
}

/** The waits of a thread after an append; `undefined`: they stay as they are. */
export type After = (
  threadId: string,
  leaf: string | null,
  behind: string | null,
  entries: ReadonlyArray<NewEntry>
) => Effect.Effect<Waits | undefined, Fault> | undefined

/**
 * Knows the pending requests of threads after an append. Mostly nothing is read for that, and nothing changes
 * (`undefined`).
 */
export const makeAfter =
  (tables: Pick<Tables, "path">, recent: Pick<Recent, "slot">): After =>
  (threadId, leaf, behind, entries) => {
    const last = entries.findLast(({ entry }) => isSlot(entry))?.entry
    if (last === undefined) {
      if (behind === leaf && !entries.some(({ entry }) => isChange(entry))) return undefined
      // It did not wait, and nothing is there now that it could wait for.
      if (behind === leaf && recent.slot(threadId, behind, slot) === null) return undefined
    } else if (last._tag === "State" && (last.value ?? null) === null) return Effect.succeed(none)
    const turn = entries.findIndex(({ entry }) => isTurn(entry))
    const isWhole = turn >= 0 && entries.every(({ entry }, index) => index >= turn || !isSlot(entry))
    if (isWhole) return requestsOf(entries)
    const path = (from: string, limit: number) => tables.path(threadId, from, limit)
    return Effect.flatMap(sinceTurn(path, behind), (before) => requestsOf([...before, ...entries]))
  }

const decodeRequest = Schema.decodeUnknownResult(Request)

/** Reads a request of an index. */
export const toRequest = (id: string, body: string): Result.Result<Request, string> =>
  Result.flatMap(parse(body), (value) =>
    Result.mapError(decodeRequest(value), ({ message }) => `request ${id}: ${message}`)
  )

/** The threads of a store that is older than its index of pending requests. */
export interface Backlog {
  /** The next of them, with their leaves; `undefined` when there are no more. */
  readonly next: Effect.Effect<ReadonlyArray<{ readonly threadId: string; readonly leaf: string }> | undefined, Fault>
  /** Stores the requests of threads whose leaf did not move, and continues behind them. */
  readonly put: (
    page: ReadonlyArray<{ readonly threadId: string; readonly leaf: string; readonly waits: Waits }>
  ) => Effect.Effect<unknown, Fault>
}

/** Indexes the backlog of a place, page by page. Each process looks once; of two at once, both do the same. */
export const makeCatchUp = (path: Tables["path"], backlog: Backlog): Effect.Effect<void, Fault> => {
  let isDone = false
  return Effect.gen(function* () {
    while (!isDone) {
      const page = yield* backlog.next
      if (page === undefined) {
        isDone = true
        return
      }
      const results = yield* Effect.forEach(page, ({ leaf, threadId }) =>
        Effect.map(
          Effect.catchIf(
            waitsAt((from, limit) => path(threadId, from, limit), leaf),
            // An unreadable thread waits for nobody. Opening it reports the problem.
            ({ reason }) => reason._tag === "Corrupt",
            () => Effect.succeed(none)
          ),
          (waits) => ({ threadId, leaf, waits })
        )
      )
      yield* backlog.put(results)
      yield* Effect.yieldNow
    }
  })
}
