/** The tables of threads in Redis. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { Redis } from "effect/persistence/Redis"
import * as Result from "effect/Result"
import type { Label, Stored, Thread } from "../../../core/SessionStore.ts"
import type { Problem } from "../../../support/store/problem.ts"
import { runnerOf } from "../../../support/store/redis.ts"
import { toJson } from "../codec.ts"
import { key } from "../ids.ts"
import { isListed } from "../memory.ts"
import { movedTo, placeIn } from "../moving.ts"
import type { Appended, Fault, Named, Tables } from "../tables.ts"
import { waitsIn } from "../waits.ts"
import { lists, mark, texts, toPart, toRecord, toRecordOf, toStored, toThread } from "./records.ts"
import * as scripts from "./scripts.ts"
import { makeSearch } from "./search.ts"
import { makeWaits, toList } from "./waits.ts"

/** The number of entries that one script sends or receives: the server runs nothing else beside it. */
const batch = 500

const toFault = ({ cause, problem }: Problem): Fault => {
  const place = placeIn(problem)
  return place === undefined ? { reason: { _tag: "Unavailable", problem }, cause } : movedTo(place, cause)
}

const removed: Fault = {
  reason: { _tag: "Unavailable", problem: "the thread was removed while it was read; read it again" }
}

const lost: Fault = { reason: { _tag: "Corrupt", problem: "an entry of the thread is not there any more" } }

const keyOrNull = (id: string | null): string | null => (id === null ? null : key(id))

const orCorrupt = <A>(results: ReadonlyArray<Result.Result<A, string>>): Effect.Effect<ReadonlyArray<A>, Fault> =>
  Effect.mapError(Effect.fromResult(Result.all(results)), (problem) => ({ reason: { _tag: "Corrupt", problem } }))

const readRecord = (text: string): Result.Result<Stored, string> => Result.flatMap(toRecordOf(text), toStored)

/** Tables in Redis, under a prefix. */
export const make = (redis: Redis["Service"], prefix: string): Tables => {
  const runScript = runnerOf(redis, prefix)
  const run: scripts.Run = (script, ...args) => Effect.mapError(runScript(script, ...args), toFault)

  const find: Tables["find"] = (threadId) =>
    Effect.flatMap(run(scripts.find, key(threadId)), (reply) => {
      const fields = texts(reply)
      return fields.length === 0
        ? Effect.undefined
        : Effect.map(orCorrupt([toThread(fields)]), ([thread]): Thread | undefined => thread)
    })

  /** Reads the reply of a script that appends. */
  const settle = (threadId: string, reply: unknown): Effect.Effect<Appended, Fault> => {
    const [step = "", taken] = texts(reply)
    return step !== ""
      ? Effect.succeed({ _tag: "Done", step: Number(step) })
      : Effect.map(find(threadId), (thread) => ({
          _tag: "Refused",
          thread,
          ...(taken === undefined ? {} : { taken })
        }))
  }

  /** Entries of a thread that is not there yet: where each is, and how far from the beginning. */
  const placed = (thread: string, entries: ReadonlyArray<Stored>) => {
    const places = new Map<string, { readonly place: string; readonly step: number }>()
    const records = entries.map((stored, index) => {
      const parent = places.get(stored.parentId ?? "") ?? { place: "-", step: 0 }
      places.set(stored.id, { place: `${thread}:${index}`, step: parent.step + 1 })
      return [
        stored.id,
        toRecord(stored, parent.place, parent.step + 1),
        stored.entry._tag === "Label" ? 1 : 0
      ] as const
    })
    return { places, records }
  }

  const path = Effect.fnUntraced(function* (threadId: string, from: string, limit: number) {
    const records: Array<string> = []
    let next = mark(key(from))
    while (records.length < limit && next !== "@-") {
      const size = Math.min(batch, limit - records.length)
      const [place, ...found] = texts(yield* run(scripts.path, key(threadId), next, size))
      if (place === "!") return yield* Effect.fail(lost)
      if (place === undefined) return records.length === 0 ? [] : yield* Effect.fail(removed)
      records.push(...found)
      next = `@${place}`
    }
    return yield* orCorrupt(records.map(readRecord))
  })

  return {
    find,
    path,
    search: makeSearch(run),
    ...makeWaits(run, path),

    insert: Effect.fnUntraced(function* ({ at, metadata, threadId }, content) {
      const { archived, entries, leaf, past } = content
      if (!Arr.isReadonlyArrayNonEmpty(entries) && !archived && past === undefined) {
        return (yield* run(scripts.create, threadId, at, toJson(metadata))) === 1
      }
      const thread = String(yield* run(scripts.number))
      const { places, records } = placed(thread, entries)
      let start = 0
      for (const part of Arr.chunksOf(records, batch)) {
        yield* run(scripts.stage, thread, start, ...part.flat())
        start += part.length
      }
      const last = places.get(leaf ?? "") ?? { place: "-", step: 0 }
      const origin = past?.origin
      const newest = entries.reduce((latest, stored) => Math.max(latest, stored.at), 0)
      const reply = yield* run(
        ...([scripts.publish, thread, threadId, past?.createdAt ?? at, toJson(metadata), archived ? 1 : 0] as const),
        ...([last.place === "-" ? "-" : mark(leaf), last.place, last.step, entries.length, newest] as const),
        ...([past?.updatedAt ?? at, origin?.threadId ?? "", origin === undefined ? "" : mark(origin.entryId)] as const),
        toList(yield* waitsIn(content))
      )
      if (reply === -1) {
        return yield* Effect.fail<Fault>({
          reason: { _tag: "Unavailable", problem: "it took over an hour to send the entries; import it again" }
        })
      }
      return reply === 1
    }),

    fork: (source, entryId, { at, metadata, threadId }, waits) =>
      Effect.map(
        run(scripts.fork, key(source), mark(entryId), threadId, at, toJson(metadata), toList(waits)),
        (reply) => (reply === "Done" || reply === "Exists" ? reply : "Gone")
      ),

    append: (threadId, leaf, entries, at, behind, _bytes, waits) => {
      const parts: Array<string> = []
      let parentId = behind
      for (const { entry, id } of entries) {
        parts.push(id, toPart({ id, parentId, at, entry }))
        parentId = id
      }
      const where = behind === leaf ? "=" : mark(keyOrNull(behind))
      const due = waits === undefined ? "" : toList(waits)
      return Effect.flatMap(
        run(scripts.append, key(threadId), mark(keyOrNull(leaf)), where, at, due, ...parts),
        (reply) => settle(threadId, reply)
      )
    },

    addLabel: (threadId, id, label, at) => {
      const part = toPart({ id, parentId: label.target, at, entry: label })
      return Effect.flatMap(run(scripts.addLabel, key(threadId), mark(label.target), at, id, part), (reply) =>
        settle(threadId, reply)
      )
    },

    move: (threadId, from, to, at, waits) =>
      Effect.map(run(scripts.move, key(threadId), mark(from), mark(to), at, toList(waits)), (reply) => reply === 1),

    update: (threadId, change, at) => {
      const [field, value] =
        "archived" in change
          ? (["archived", change.archived ? 1 : 0] as const)
          : (["metadata", toJson(change.metadata)] as const)
      return Effect.map(run(scripts.update, key(threadId), field, value, at), (reply) => reply === 1)
    },

    remove: (threadId) => Effect.map(run(scripts.remove, key(threadId)), (reply) => reply === 1),

    entry: (threadId, id) =>
      Effect.flatMap(run(scripts.entry, key(threadId), key(id)), (reply) => {
        const [text] = texts(reply)
        if (text === undefined) return Effect.undefined
        const found = Result.flatMap(toRecordOf(text), (record) =>
          Result.map(toStored(record), (stored) => ({ ...stored, step: record.step }))
        )
        return Effect.map(orCorrupt([found]), ([stored]) => stored)
      }),

    labels: (threadId) =>
      Effect.flatMap(run(scripts.labels, key(threadId)), (reply) =>
        Effect.map(orCorrupt(texts(reply).map(readRecord)), (stored) =>
          stored.flatMap(({ entry }): ReadonlyArray<Label> => (entry._tag === "Label" ? [entry] : []))
        )
      ),

    entries: (threadId, cursor, limit) =>
      Effect.flatMap(run(scripts.entries, key(threadId), cursor, limit + 1), (reply) => {
        const found = texts(reply)
        return Effect.map(orCorrupt(found.slice(0, limit).map(readRecord)), (entries) => ({
          entries,
          next: found.length > limit ? cursor + limit : undefined
        }))
      }),

    list: Effect.fnUntraced(function* (query) {
      const { after, archived, limit } = query
      const listed: Array<Thread> = []
      let [score, member] = after === undefined ? ["-inf", ""] : [`-${after.at}`, after.threadId]
      while (listed.length < limit) {
        const found = lists(yield* run(scripts.list, archived ? 1 : 0, score, member, batch))
        const threads = yield* orCorrupt(found.map(toThread))
        listed.push(...threads.filter((thread) => isListed(thread, query)))
        const last = threads.at(-1)
        if (last === undefined || threads.length < batch) break
        score = `-${last.updatedAt}`
        member = last.threadId
      }
      return listed.slice(0, limit)
    }),

    names: Effect.gen(function* () {
      const found: Array<Named> = []
      for (const archived of [0, 1]) {
        let part: ReadonlyArray<string> = []
        let start = 0
        do {
          part = texts(yield* run(scripts.names, archived, start, batch))
          found.push(...part.map((threadId) => ({ threadId })))
          start += part.length
        } while (part.length === batch)
      }
      return found
    }),

    moved: Effect.map(run(scripts.moved), (reply) => (reply === "" ? undefined : String(reply))),
    close: (to) => Effect.map(run(scripts.close, to), String),
    reopen: Effect.asVoid(run(scripts.reopen))
  }
}
