/**
 * Reads the checkpoint of a thread from its entries.
 */
import * as Effect from "effect/Effect"
import type { Snapshot } from "../../core/AgentState.ts"
import type { Checkpoint } from "../../core/Checkpoint.ts"
import { applyState, type Part, partial } from "../../core/Journal.ts"
import type { Json } from "../../core/Json.ts"
import { isPartial, type Message } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Leaf, Service, Stored } from "../../core/SessionStore.ts"
import * as Usage from "../../core/Usage.ts"

/**
 * A thread as it was at one moment: where it stood, what it had come to, and the outcome of its last run
 * (`RunSettled`), if nothing was written after it.
 */
export interface Loaded {
  readonly leaf: Leaf
  readonly checkpoint: Checkpoint | undefined
  readonly ended: string | undefined
}

const fold = (pages: ReadonlyArray<ReadonlyArray<Stored>>): Checkpoint => {
  const messages: Array<Message> = []
  const state = new Map<string, Json>()
  let step: Pick<Checkpoint, "usage" | "rounds"> = { usage: Usage.zero, rounds: 0 }
  let parts: Array<Part> = []
  const push = (message: Message): void => {
    // A run that went on dropped what was said of the turn that did not end, and asked for that turn again.
    if (message.role === "ai" && isPartial(messages.at(-1))) messages.pop()
    messages.push(message)
  }
  const pushParts = (): void => {
    const message = partial(parts)
    parts = []
    if (message !== undefined) push(message)
  }
  for (const page of pages.toReversed()) {
    for (const { entry } of page) {
      if (entry._tag === "Message") {
        if (entry.message.role === "ai") parts = []
        else if (parts.length > 0) pushParts()
        push(entry.message)
      }
      if (entry._tag === "Part") parts.push(entry)
      if (entry._tag === "State") applyState(state, entry)
      if (entry._tag === "Step") step = { usage: entry.usage, rounds: entry.rounds }
    }
  }
  if (parts.length > 0) pushParts()
  const snapshot: Snapshot = Object.fromEntries(state)
  return { messages, state: snapshot, ...step }
}

/** The outcome of the run that wrote the last entries: it ends with its settlement, and what it used. */
const outcomeOf = (newest: ReadonlyArray<Stored>): string | undefined => {
  const settled = newest.slice(-2).find(({ entry }) => entry._tag === "RunSettled")?.entry
  return settled?._tag === "RunSettled" ? settled.outcome : undefined
}

/** Reads the whole path to the leaf, page by page. A thread that grows meanwhile is read as it stood at first. */
export const load = Effect.fnUntraced(function* (
  store: Service,
  threadId: string
): Effect.fn.Return<Loaded, SessionError> {
  const leaf = yield* store.leaf(threadId)
  if (leaf.id === null) return { leaf, checkpoint: undefined, ended: undefined }
  const pages: Array<ReadonlyArray<Stored>> = []
  let from: string | null = leaf.id
  while (from !== null) {
    const page: { readonly entries: ReadonlyArray<Stored>; readonly next: string | null } = yield* store.load(
      threadId,
      {
        from,
        limit: 10_000
      }
    )
    pages.push(page.entries)
    from = page.next
  }
  return { leaf, checkpoint: fold(pages), ended: outcomeOf(pages[0] ?? []) }
})
