/** Helpers for checks of session stores. */
import * as Effect from "effect/Effect"
import type { Entry } from "../../../../core/Journal.ts"
import * as Message from "../../../../core/Message.ts"
import type { SessionError } from "../../../../core/SessionError.ts"
import type { NewEntry, Service, StoredEntry } from "../../../../core/SessionStore.ts"
import * as Usage from "../../../../core/Usage.ts"
import type { NotConformant } from "../assert.ts"

/** The body of a check. */
export type Body = (store: Service) => Effect.Effect<void, SessionError | NotConformant>

/** Checks by their names. */
export type Rules<B = Body> = ReadonlyArray<readonly [name: string, body: B]>

export const entry = (id: string, value: Entry): NewEntry => ({ id, entry: value })

export const human = (id: string, text: string): NewEntry =>
  entry(id, { _tag: "Message", message: Message.human(text, { id: `m-${id}` }) })

export const answer = (id: string, text: string): NewEntry =>
  entry(id, { _tag: "Message", message: Message.ai(text, { id: `m-${id}` }) })

export const calls = (id: string, ...callIds: ReadonlyArray<string>): NewEntry =>
  entry(id, {
    _tag: "Message",
    message: Message.ai("", {
      id: `m-${id}`,
      toolCalls: callIds.map((callId) => ({ id: callId, name: "look", arguments: { at: callId } }))
    })
  })

export const result = (id: string, toolCallId: string, text = "seen"): NewEntry =>
  entry(id, { _tag: "Message", message: Message.tool(text, { id: `m-${id}`, toolCallId, toolName: "look" }) })

export const step = (id: string, rounds = 1): NewEntry => entry(id, { _tag: "Step", usage: Usage.zero, rounds })

/** Appends entries after the current leaf. */
export const append = (store: Service, threadId: string, ...entries: ReadonlyArray<NewEntry>) =>
  Effect.flatMap(store.leaf(threadId), (leaf) => store.append(threadId, { leaf: leaf.id, entries }))

/** Reads all entries on the path to the leaf, in pages. */
export const readAll = Effect.fnUntraced(function* (
  store: Service,
  threadId: string,
  limit = 1000
): Effect.fn.Return<ReadonlyArray<StoredEntry>, SessionError> {
  const pages: Array<ReadonlyArray<StoredEntry>> = []
  let page = yield* store.load(threadId, { limit })
  pages.push(page.entries)
  while (page.next !== null) {
    page = yield* store.load(threadId, { from: page.next, limit })
    pages.push(page.entries)
  }
  return pages.toReversed().flat()
})

/** Reads the ids of all entries on the path to the leaf. */
export const readIds = (store: Service, threadId: string): Effect.Effect<ReadonlyArray<string>, SessionError> =>
  Effect.map(readAll(store, threadId), (entries) => entries.map(({ id }) => id))
