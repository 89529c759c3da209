/** Finds messages in Redis by reading them, without an index. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { JsonObject } from "../../../core/Json.ts"
import { text as messageText } from "../../../core/Message.ts"
import type { Hit } from "../../../core/SessionStore.ts"
import { key } from "../ids.ts"
import { firstHits, hasMetadata, isHitBehind } from "../memory/order.ts"
import type { SearchQuery, Tables } from "../tables.ts"
import { excerpt, makePace, matches, type Pace, spend } from "../words.ts"
import { texts, toRecordOf, toStored } from "./records.ts"
import * as scripts from "./scripts.ts"

/** The entries of one script, and the bytes after which it takes no more. */
const batch = 50
const most = 1024 * 1024

/** The threads of one script. */
const threads = 100

/** Checks a record for the phrases. Unreadable entries are left out. */
const hitsOf = Effect.fnUntraced(function* (
  threadId: string,
  record: string,
  { after, phrases }: SearchQuery,
  pace: Pace
): Effect.fn.Return<ReadonlyArray<Hit>> {
  yield* spend(pace, record.length)
  const fields = Result.getOrUndefined(toRecordOf(record))
  const storedEntry = fields?.tag === "Message" ? Result.getOrUndefined(toStored(fields)) : undefined
  if (storedEntry?.entry._tag !== "Message") return []
  const { message } = storedEntry.entry
  const content = messageText(message)
  if (!(yield* matches(content, phrases, pace))) return []
  const { at, id: entryId } = storedEntry
  const hit: Hit = { threadId, entryId, at, role: message.role, excerpt: yield* excerpt(content, phrases, pace) }
  return isHitBehind(hit, after) ? [hit] : []
})

/** Searches threads in the order of their newest entries, until the rest is older than all hits. */
export const makeSearch = (run: scripts.Run, find: Tables["find"]): Tables["search"] => {
  const hasAll = Effect.fnUntraced(function* (threadId: string, where: JsonObject) {
    if (Object.keys(where).length === 0) return true
    const thread = yield* find(threadId)
    return thread !== undefined && hasMetadata(thread.metadata, where)
  })

  const searchThread = Effect.fnUntraced(function* (thread: string, query: SearchQuery, pace: Pace) {
    let [list, stop]: [ReadonlyArray<Hit>, string] = [[], "-"]
    let isChecked = false
    while (stop !== "0") {
      const [threadId, archived, start = "0", ...records] = texts(yield* run(scripts.talk, thread, stop, batch, most))
      if (threadId === undefined || (archived === "1") !== query.archived) return []
      if (!isChecked && !(yield* hasAll(threadId, query.where))) return []
      isChecked = true
      const hits = yield* Effect.forEach(records, (record) => hitsOf(threadId, record, query, pace))
      list = firstHits([...list, ...hits.flat()], query.limit)
      stop = start
    }
    return list
  })

  return Effect.fnUntraced(function* (query) {
    const pace = makePace()
    if (query.threadId !== undefined) {
      const thread = String(yield* run(scripts.numberOf, key(query.threadId)))
      return thread === "" ? [] : yield* searchThread(thread, query, pace)
    }
    let hits: ReadonlyArray<Hit> = []
    let [score, member] = ["-inf", ""]
    while (true) {
      const page = Arr.chunksOf(texts(yield* run(scripts.newest, score, member, threads)), 2)
      for (const [thread, newest = ""] of page) {
        member = thread
        score = newest
        const oldest = hits[query.limit - 1]
        if (oldest !== undefined && -Number(score) < oldest.at) return hits
        hits = firstHits([...hits, ...(yield* searchThread(member, query, pace))], query.limit)
      }
      if (page.length < threads) return hits
    }
  })
}
