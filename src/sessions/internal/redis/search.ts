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
import { excerpt, matches } from "../words.ts"
import { texts, toRecordOf, toStored } from "./records.ts"
import * as scripts from "./scripts.ts"

/** The entries of one script. */
const batch = 50

/** The threads of one script. */
const threads = 100

/** Checks a record for the phrases. Unreadable entries are left out. */
const hitsOf = (threadId: string, record: string, { after, phrases }: SearchQuery): ReadonlyArray<Hit> => {
  const known = Result.getOrUndefined(toRecordOf(record))
  const stored = known?.tag === "Message" ? Result.getOrUndefined(toStored(known)) : undefined
  if (stored?.entry._tag !== "Message") return []
  const { message } = stored.entry
  const content = messageText(message)
  if (!matches(content, phrases)) return []
  const { at, id: entryId } = stored
  const hit: Hit = { threadId, entryId, at, role: message.role, excerpt: excerpt(content, phrases) }
  return isHitBehind(hit, after) ? [hit] : []
}

/** Searches threads in the order of their newest entries, until the rest is older than all hits. */
export const makeSearch = (run: scripts.Run, find: Tables["find"]): Tables["search"] => {
  const hasAll = Effect.fnUntraced(function* (threadId: string, where: JsonObject) {
    if (Object.keys(where).length === 0) return true
    const thread = yield* find(threadId)
    return thread !== undefined && hasMetadata(thread.metadata, where)
  })

  const searchThread = Effect.fnUntraced(function* (thread: string, query: SearchQuery) {
    let [found, stop]: [ReadonlyArray<Hit>, string] = [[], "-"]
    let isChecked = false
    while (stop !== "0") {
      const [threadId, archived, start = "0", ...records] = texts(yield* run(scripts.talk, thread, stop, batch))
      if (threadId === undefined || (archived === "1") !== query.archived) return []
      if (!isChecked && !(yield* hasAll(threadId, query.where))) return []
      isChecked = true
      found = firstHits([...found, ...records.flatMap((record) => hitsOf(threadId, record, query))], query.limit)
      stop = start
    }
    return found
  })

  return Effect.fnUntraced(function* (query) {
    if (query.threadId !== undefined) {
      const thread = String(yield* run(scripts.numberOf, key(query.threadId)))
      return thread === "" ? [] : yield* searchThread(thread, query)
    }
    let found: ReadonlyArray<Hit> = []
    let [score, member] = ["-inf", ""]
    while (true) {
      const page = Arr.chunksOf(texts(yield* run(scripts.said, score, member, threads)), 2)
      for (const [thread, newest = ""] of page) {
        member = thread
        score = newest
        const oldest = found[query.limit - 1]
        if (oldest !== undefined && -Number(score) < oldest.at) return found
        found = firstHits([...found, ...(yield* searchThread(member, query))], query.limit)
      }
      if (page.length < threads) return found
    }
  })
}
