/** Prepares runs of routes that have a store of threads, and no server of this library. */
import * as Effect from "effect/Effect"
import type { Input } from "../../../core/Agent.ts"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import type { Decision, Request } from "../../../core/Approval.ts"
import * as Checkpoint from "../../../core/Checkpoint.ts"
import type { HumanMessage } from "../../../core/Message.ts"
import type { SessionError } from "../../../core/SessionError.ts"
import { type Page, type Service, SessionStore, type StoredEntry } from "../../../core/SessionStore.ts"
import { loadThread } from "../../../sessions/journal.ts"
import { isMissing } from "../posting.ts"
import { rebuild } from "../rebuild.ts"
import { RunsError } from "../service.ts"

/** The input of a run, and the events of its thread that the client has. */
export interface RunInput {
  readonly input: Input
  readonly told: ReadonlyArray<AgentEvent>
}

const conflict = (threadId: string, problem: string) => new RunsError({ reason: "Conflict", threadId, problem })

/** Reports whether a run began with an input: the first message behind its start is of a person. */
const isInputRun = (entries: ReadonlyArray<StoredEntry>, at: number): boolean => {
  if (entries[at]?.entry._tag !== "RunStarted") return false
  const first = entries.slice(at + 1).find(({ entry }) => entry._tag === "Message" || entry._tag === "RunStarted")
  return first?.entry._tag === "Message" && first.entry.message.role === "human"
}

/** Reads a thread backwards to the start of a run that began with an input. `undefined`: no run did. */
const findRun = Effect.fnUntraced(function* (
  store: Service,
  threadId: string,
  isWanted: (entries: ReadonlyArray<StoredEntry>, at: number) => boolean
): Effect.fn.Return<
  { readonly first: number; readonly entries: ReadonlyArray<StoredEntry> } | undefined,
  SessionError
> {
  const leaf = yield* store.leaf(threadId)
  let entries: ReadonlyArray<StoredEntry> = []
  let from = leaf.id
  while (from !== null) {
    const page: Page = yield* store.load(threadId, { from })
    entries = [...page.entries, ...entries]
    const at = entries.findLastIndex((_, index) => isInputRun(entries, index) && isWanted(entries, index))
    if (at >= 0) return { first: leaf.step - entries.length + at, entries: entries.slice(at) }
    from = page.next
  }
  return undefined
})

/** Goes on with the decisions of the client. */
export const prepareDecisions = Effect.fnUntraced(function* (
  threadId: string,
  decide: (request: Request) => Decision | undefined
): Effect.fn.Return<RunInput, RunsError | SessionError, SessionStore> {
  const store = yield* SessionStore
  const { checkpoint } = yield* loadThread(store, threadId)
  const pending =
    checkpoint === undefined
      ? []
      : yield* Effect.mapError(Checkpoint.pending(checkpoint), ({ message }) => conflict(threadId, message))
  const decisions = pending.flatMap((request) => decide(request) ?? [])
  if (decisions.length === 0) {
    return yield* conflict(threadId, "nothing of this waits for a decision any more; read the thread again")
  }
  const run = yield* findRun(store, threadId, () => true)
  const events = run === undefined ? [] : rebuild(threadId, run).map(({ event }) => event)
  return { input: Checkpoint.resume(undefined, { decisions }), told: events }
})

/** Takes the message and all later ones out of the conversation. They stay in the thread as a branch. */
const takeBack = Effect.fnUntraced(function* (store: Service, threadId: string, { id }: HumanMessage) {
  const run = yield* findRun(store, threadId, (entries, at) => {
    const message = entries.slice(at).find(({ entry }) => entry._tag === "Message")?.entry
    return message?._tag === "Message" && message.message.id === id
  })
  const first = run?.entries[0]
  if (first !== undefined) yield* store.rewind(threadId, first.parentId)
})

/** Answers a message. If the client wants another answer, the earlier one is taken out of the conversation. */
export const prepareInput = Effect.fnUntraced(function* (
  threadId: string,
  message: HumanMessage,
  isRepeated: boolean
): Effect.fn.Return<RunInput, SessionError, SessionStore> {
  if (isRepeated) yield* Effect.catchIf(takeBack(yield* SessionStore, threadId, message), isMissing, () => Effect.void)
  return { input: message, told: [] }
})
