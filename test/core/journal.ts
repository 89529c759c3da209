/** The smallest journal, for tests of a run's records. */
import { Effect, Layer } from "effect"
import { type AgentState, type Checkpoint, Journal, type Message, SessionError, Usage } from "effect-deepagents"
import { applyState } from "../../src/core/thread/parts.ts"

/** The content of a thread, and the appends that brought it there. */
export interface Stored {
  readonly entries: Array<Journal.Entry>
  readonly appends: Array<ReadonlyArray<Journal.Entry>>
  /** Told of each append before it is done. */
  onAppend?: Effect.Effect<void, SessionError.SessionError>
}

export const stored = (entries: ReadonlyArray<Journal.Entry> = []): Stored => ({ entries: [...entries], appends: [] })

export const checkpointOf = (entries: ReadonlyArray<Journal.Entry>): Checkpoint.Checkpoint | undefined => {
  if (entries.length === 0) return undefined
  const messages: Array<Message.Message> = []
  const state = new Map<string, AgentState.Snapshot[string]>()
  let step: Pick<Checkpoint.Checkpoint, "usage" | "rounds" | "spent"> = { usage: Usage.zero, rounds: 0 }
  for (const entry of entries) {
    if (entry._tag === "Message") messages.push(entry.message)
    if (entry._tag === "State") applyState(state, entry)
    if (entry._tag === "Step") step = { usage: entry.usage, rounds: entry.rounds, spent: entry.spent }
  }
  return { messages, state: Object.fromEntries(state), ...step }
}

export const layer = (threads: Record<string, Stored>): Layer.Layer<Journal.Journal> =>
  Layer.succeed(Journal.Journal, {
    open: (threadId) =>
      Effect.sync(() => {
        const thread = (threads[threadId] ??= stored())
        let leaf = thread.entries.length
        return {
          checkpoint: checkpointOf(thread.entries),
          step: leaf,
          append: (entries) =>
            Effect.gen(function* () {
              if (thread.onAppend !== undefined) yield* thread.onAppend
              if (leaf !== thread.entries.length) {
                const reason = { _tag: "Conflict", expected: `${leaf}`, found: `${thread.entries.length}` } as const
                return yield* SessionError.make("append", threadId, reason)
              }
              thread.entries.push(...entries)
              thread.appends.push(entries)
              leaf = thread.entries.length
              return leaf
            })
        }
      })
  })
