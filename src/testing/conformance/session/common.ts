/**
 * What checks of session stores have in common.
 */
import * as Effect from "effect/Effect"
import type { Entry } from "../../../core/Journal.ts"
import * as Message from "../../../core/Message.ts"
import type { Reason, SessionError } from "../../../core/SessionError.ts"
import type { NewEntry, Service, Stored } from "../../../core/SessionStore.ts"
import * as Usage from "../../../core/Usage.ts"
import { NotConformant } from "../backend/hold.ts"

/** What a check does with a store. */
export type Body = (store: Service) => Effect.Effect<void, SessionError | NotConformant>

/** Checks by their names. */
export type Rules<B = Body> = ReadonlyArray<readonly [name: string, body: B]>

/** The reason for which an operation fails, which must be this one. */
export const fails = <A, T extends Reason["_tag"]>(
  operation: Effect.Effect<A, SessionError>,
  tag: T,
  rule: string
): Effect.Effect<Extract<Reason, { readonly _tag: T }>, NotConformant> => {
  const isWanted = (reason: Reason): reason is Extract<Reason, { readonly _tag: T }> => reason._tag === tag
  const broken = (found: string) => Effect.fail(new NotConformant({ rule: `${rule} fails with ${tag}`, found }))
  return Effect.matchEffect(operation, {
    onFailure: ({ message, reason }) =>
      isWanted(reason) ? Effect.succeed(reason) : broken(`${reason._tag} (${message})`.slice(0, 600)),
    onSuccess: (value) => broken(JSON.stringify(value) ?? "success")
  })
}

export const entry = (id: string, value: Entry): NewEntry => ({ id, entry: value })

export const said = (id: string, text: string): NewEntry =>
  entry(id, { _tag: "Message", message: Message.human(text, { id: `m-${id}` }) })

export const answered = (id: string, text: string): NewEntry =>
  entry(id, { _tag: "Message", message: Message.ai(text, { id: `m-${id}` }) })

export const called = (id: string, ...callIds: ReadonlyArray<string>): NewEntry =>
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

/** Appends behind whatever is the leaf. */
export const add = (store: Service, threadId: string, ...entries: ReadonlyArray<NewEntry>) =>
  Effect.flatMap(store.leaf(threadId), (leaf) => store.append(threadId, { leaf: leaf.id, entries }))

/** All entries on the path to the leaf, read in pages. */
export const all = Effect.fnUntraced(function* (
  store: Service,
  threadId: string,
  limit = 1000
): Effect.fn.Return<ReadonlyArray<Stored>, SessionError> {
  const pages: Array<ReadonlyArray<Stored>> = []
  let page = yield* store.load(threadId, { limit })
  pages.push(page.entries)
  while (page.next !== null) {
    page = yield* store.load(threadId, { from: page.next, limit })
    pages.push(page.entries)
  }
  return pages.toReversed().flat()
})

/** The ids of the entries on the path to the leaf. */
export const ids = (store: Service, threadId: string): Effect.Effect<ReadonlyArray<string>, SessionError> =>
  Effect.map(all(store, threadId), (entries) => entries.map(({ id }) => id))
