/** Reads the stored messages of a thread. */
import * as Effect from "effect/Effect"
import type { HumanMessage, Message } from "../../../core/Message.ts"
import type { SessionError } from "../../../core/SessionError.ts"
import type { Page, Service, StoredEntry } from "../../../core/SessionStore.ts"
import { defined } from "../../../support/json/defined.ts"

const pageSize = 200

/** Reads the last messages up to an entry. `next` is the entry of the message before them. */
export const readMessages = Effect.fnUntraced(function* (
  store: Service,
  threadId: string,
  { before, limit }: { readonly before?: string | undefined; readonly limit: number }
) {
  const entries: Array<StoredEntry> = []
  let from: string | null | undefined = before
  for (;;) {
    const page: Page = yield* store.load(threadId, { limit: pageSize, ...defined({ from: from ?? undefined }) })
    for (const one of page.entries.toReversed()) {
      if (one.entry._tag !== "Message") continue
      if (entries.length === limit) return { entries: entries.toReversed(), next: one.id }
      entries.push(one)
    }
    from = page.next
    if (from === null) return { entries: entries.toReversed(), next: undefined }
  }
})

/** The most messages that clients get at once. */
const most = 1_000

/** Reads the last messages of a thread, those of earlier compactions included. A missing thread has none. */
export const readTranscript = (store: Service, threadId: string): Effect.Effect<ReadonlyArray<Message>, SessionError> =>
  readMessages(store, threadId, { limit: most }).pipe(
    Effect.map(({ entries }) => entries.flatMap(({ entry }) => (entry._tag === "Message" ? [entry.message] : []))),
    Effect.catchIf(
      ({ reason }) => reason._tag === "NotFound",
      () => Effect.succeed([])
    )
  )

/** Reads the messages of a thread up to an input, which may still wait for its run. */
export const readBefore = (
  store: Service,
  threadId: string,
  inputId: string,
  input?: HumanMessage
): Effect.Effect<ReadonlyArray<Message>, SessionError> =>
  Effect.map(readTranscript(store, threadId), (messages) => {
    const at = messages.findLastIndex(({ id }) => id === `input:${inputId}`)
    return at < 0
      ? [...messages, ...(input === undefined ? [] : [{ ...input, id: inputId }])]
      : messages.slice(0, at + 1)
  })
