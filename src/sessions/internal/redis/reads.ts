/** Reads threads from Redis. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Label, StoredEntry, Thread } from "../../../core/SessionStore.ts"
import { key } from "../ids.ts"
import { isListed } from "../memory/order.ts"
import type { Fault, ThreadName, Tables } from "../tables.ts"
import { lists, mark, texts, toRecordOf, toStored, toThread } from "./records.ts"
import * as scripts from "./scripts.ts"

/** The number of items in one script, because the server runs nothing else meanwhile. */
const batch = 500

const removed: Fault = {
  reason: { _tag: "Unavailable", problem: "the thread was removed while it was read; read it again" }
}

const missingEntry: Fault = { reason: { _tag: "Corrupt", problem: "an entry of the thread is not there any more" } }

const orCorrupt = <A>(results: ReadonlyArray<Result.Result<A, string>>): Effect.Effect<ReadonlyArray<A>, Fault> =>
  Effect.mapError(Effect.fromResult(Result.all(results)), (problem) => ({ reason: { _tag: "Corrupt", problem } }))

const readRecord = (text: string): Result.Result<StoredEntry, string> => Result.flatMap(toRecordOf(text), toStored)

/** The queries about threads and their entries. */
export const makeReads = (
  run: scripts.Run
): Pick<Tables, "find" | "path" | "entry" | "labels" | "entries" | "list" | "names"> => {
  const find: Tables["find"] = (threadId) =>
    Effect.flatMap(run(scripts.find, key(threadId)), (reply) => {
      const fields = texts(reply)
      return fields.length === 0
        ? Effect.undefined
        : Effect.map(orCorrupt([toThread(fields)]), ([thread]): Thread | undefined => thread)
    })

  const path = Effect.fnUntraced(function* (threadId: string, from: string, limit: number) {
    const records: Array<string> = []
    let next = mark(key(from))
    while (records.length < limit && next !== "@-") {
      const size = Math.min(batch, limit - records.length)
      const [place, ...part] = texts(yield* run(scripts.path, key(threadId), next, size))
      if (place === "!") return yield* Effect.fail(missingEntry)
      if (place === undefined) return records.length === 0 ? [] : yield* Effect.fail(removed)
      records.push(...part)
      next = `@${place}`
    }
    return yield* orCorrupt(records.map(readRecord))
  })

  return {
    find,
    path,

    entry: (threadId, id) =>
      Effect.flatMap(run(scripts.entry, key(threadId), key(id)), (reply) => {
        const [text] = texts(reply)
        if (text === undefined) return Effect.undefined
        const storedEntry = Result.flatMap(toRecordOf(text), (record) =>
          Result.map(toStored(record), (entry) => ({ ...entry, step: record.step }))
        )
        return Effect.map(orCorrupt([storedEntry]), ([entry]) => entry)
      }),

    labels: (threadId) =>
      Effect.flatMap(run(scripts.labels, key(threadId)), (reply) =>
        Effect.map(orCorrupt(texts(reply).map(readRecord)), (entries) =>
          entries.flatMap(({ entry }): ReadonlyArray<Label> => (entry._tag === "Label" ? [entry] : []))
        )
      ),

    entries: (threadId, cursor, limit) =>
      Effect.flatMap(run(scripts.entries, key(threadId), cursor, limit + 1), (reply) => {
        const list = texts(reply)
        return Effect.map(orCorrupt(list.slice(0, limit).map(readRecord)), (entries) => ({
          entries,
          next: list.length > limit ? cursor + limit : undefined
        }))
      }),

    list: Effect.fnUntraced(function* (query) {
      const { after, archived, limit } = query
      const listed: Array<Thread> = []
      let [score, member] = after === undefined ? ["-inf", ""] : [`-${after.at}`, after.threadId]
      while (listed.length < limit) {
        const list = lists(yield* run(scripts.list, archived ? 1 : 0, score, member, batch))
        const threads = yield* orCorrupt(list.map(toThread))
        listed.push(...threads.filter((thread) => isListed(thread, query)))
        const last = threads.at(-1)
        if (last === undefined || threads.length < batch) break
        score = `-${last.updatedAt}`
        member = last.threadId
      }
      return listed.slice(0, limit)
    }),

    names: Effect.gen(function* () {
      const list: Array<ThreadName> = []
      for (const archived of [0, 1]) {
        let part: ReadonlyArray<string> = []
        let start = 0
        do {
          part = texts(yield* run(scripts.names, archived, start, batch))
          list.push(...part.map((threadId) => ({ threadId })))
          start += part.length
        } while (part.length === batch)
      }
      return list
    })
  }
}
