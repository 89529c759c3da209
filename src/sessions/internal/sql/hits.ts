/** Reads messages that were found from the rows of a SQL database. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Row } from "effect/sql/SqlConnection"
import { text as messageText } from "../../../core/Message.ts"
import type { Hit } from "../../../core/SessionStore.ts"
import { words } from "../../../support/text/words.ts"
import type { Fault, SearchQuery, Tables } from "../tables.ts"
import { excerpt, type Phrases, searchable } from "../words.ts"
import { text, toStored } from "./rows.ts"

/** The search of a database for messages. */
export interface Search {
  readonly search: Tables["search"]
  /** Messages of a thread were inserted that nothing else tells of. */
  readonly await: (thread: number) => Effect.Effect<void, Fault>
  /** The entries of a thread are about to go. */
  readonly forget: (thread: number) => Effect.Effect<void, Fault>
}

/** The words of a row, if it is a message that can be read; loading its thread says what is wrong with another one. */
export const wordsOf = (row: Row): ReadonlyArray<string> | undefined => {
  const stored = Result.getOrUndefined(toStored(row))
  const content = stored === undefined ? undefined : searchable(stored)
  return content === undefined ? undefined : words(content)
}

/** Reads the hit of a row; none if `isFound` denies that the message has what was looked for. */
export const toHit = (
  row: Row,
  { phrases }: SearchQuery,
  isFound: (content: string, phrases: Phrases) => boolean
): Result.Result<ReadonlyArray<Hit>, string> =>
  Result.map(toStored(row), ({ at, entry, id }) => {
    if (entry._tag !== "Message") return []
    const content = messageText(entry.message)
    if (!isFound(content, phrases)) return []
    const { role } = entry.message
    return [{ threadId: text(row, "thread_id"), entryId: id, at, role, excerpt: excerpt(content, phrases) }]
  })

/** Runs steps until one says that there is nothing more to do, and lets others run between them. */
export const untilDone = (step: Effect.Effect<boolean, Fault>): Effect.Effect<void, Fault> =>
  Effect.flatMap(step, (isMore) => (isMore ? Effect.andThen(Effect.yieldNow, untilDone(step)) : Effect.void))
