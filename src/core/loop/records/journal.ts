/**
 * Writes the progress of a run: messages into the history, entries into the journal, steps into the thread.
 *
 * `record` and `note…` act at once. `settle` and `save` are effects: they wait for the log, for readers, for the store.
 */
import * as Effect from "effect/Effect"
import { AgentError } from "../../AgentError.ts"
import type { Entry } from "../../Journal.ts"
import { fromUnknown, type Json } from "../../Json.ts"
import { encode as encodeMessage, type Message } from "../../Message.ts"
import type { LogContext } from "../../MessageLog.ts"
import { add, type Spent, zero } from "../../Usage.ts"
import { type Live, type Recorder, type Records, rootOf } from "../live.ts"
import { emit, report, settleReaders } from "../report.ts"
import { countWork, spentBy } from "../work.ts"

/** Adds a message to the history, and reports it in the journal and as an event. Run {@link settle} after it. */
export const record = (live: Live, message: Message): void => {
  noteMessage(live, message, live.run.messages.push(message) - 1)
  report(live, { _tag: "MessageAppended", message })
}

/** Waits until the log has all messages of the history, and slow readers have caught up. */
export const settle = (live: Live): Effect.Effect<void> =>
  live.records.log === undefined ? settleReaders(live) : Effect.andThen(flushLog(live), settleReaders(live))

/** Reports a message that the history has already, in the place of its stand-in. */
export const recordLate = (live: Live, message: Message): Effect.Effect<void> =>
  Effect.suspend(() => {
    noteMessage(live, message, live.run.messages.indexOf(message))
    report(live, { _tag: "MessageAppended", message })
    const { log } = live.records
    return log === undefined
      ? settleReaders(live)
      : Effect.andThen(log.append(message, logContext(live)), settleReaders(live))
  })

/** Notes a message: of the thread by itself, of a run inside a call by its index in the conversation. */
const noteMessage = ({ parent, records }: Live, message: Message, index: number): void => {
  if (parent === undefined) note(records, { _tag: "Message", message })
  else if (records.place !== undefined) {
    note(records, { _tag: "State", slot: `${records.place}/m/${index}`, value: encodeMessage(message) })
  }
}

const logContext = ({ run }: Live): LogContext => ({
  agent: run.agent,
  path: run.path,
  runId: run.runId,
  threadId: run.threadId,
  round: run.round
})

export const flushLog = (live: Live): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { records, run } = live
    const { log } = records
    if (log === undefined || records.logged >= run.messages.length) return Effect.void
    const messages = run.messages.slice(records.logged)
    records.logged = run.messages.length
    const context = logContext(live)
    return Effect.uninterruptible(
      Effect.forEach(messages, (message) => log.append(message, context), { discard: true })
    )
  })

/** Notes an entry. The next step stores it. */
export const note = ({ journal }: Pick<Records, "journal">, entry: Entry): void => {
  if (journal !== undefined) (journal.heldEntries ?? journal.recorder.entries).push(entry)
}

/** Notes an entry about shared state of the tree. {@link hold} never holds it back. */
export const noteShared = ({ journal }: Pick<Records, "journal">, entry: Entry): void => {
  journal?.recorder.entries.push(entry)
}

/** The tag and the message of the error that ended a run. */
export type Failure = NonNullable<Extract<Entry, { readonly _tag: "RunSettled" }>["error"]>

export const noteSettled = ({ records, run }: Live, outcome: string, error?: Failure): void => {
  if (records.journal !== undefined) records.journal.recorder.isSettled = true
  note(records, { _tag: "RunSettled", runId: run.runId, outcome, ...(error === undefined ? {} : { error }) })
}

/** Holds the entries of a run back until the calls of its turn have passed their gates. */
export const hold = ({ journal }: Records): void => {
  if (journal !== undefined) journal.heldEntries ??= []
}

/** Ends {@link hold}: the next step of any run of the tree stores the entries. */
export const release = ({ journal }: Records): void => {
  if (journal?.heldEntries === undefined) return
  journal.recorder.entries.push(...journal.heldEntries)
  journal.heldEntries = undefined
}

/** The prefix of a run's slots in the journal. */
export const prefixOf = ({ place }: Pick<Records, "place">): string => (place === undefined ? "" : `${place}/s/`)

/** The usage, the rounds and the work of a run, as the record of a sub-agent keeps them. */
export const progressOf = (live: Live): Json =>
  fromUnknown({ usage: live.run.usage, rounds: live.run.round, spent: spentBy(live) })

/** Stores the noted entries of the whole tree. A step begins when the step before it is stored. */
export const save = (live: Live): Effect.Effect<void, AgentError> => {
  const { isJournaled, journal, place } = live.records
  if (journal === undefined || !isJournaled) return Effect.void
  return Effect.suspend(() => {
    const { recorder } = journal
    const root = rootOf(live)
    release(live.records)
    if (recorder.entries.length === 0 && root.run.spent === recorder.spent) return Effect.void
    if (place !== undefined) note(live.records, { _tag: "State", slot: `${place}/u`, value: progressOf(live) })
    return recorder.lock.withPermits(1)(Effect.suspend(() => store(root, recorder)))
  })
}

const store = (root: Live, recorder: Recorder): Effect.Effect<void, AgentError> => {
  const { thread, threadId } = recorder
  const due = recorder.entries
  const { round: rounds, spent, usage } = root.run
  // The append before may have stored them.
  if (due.length === 0 && spent === recorder.spent) return Effect.void
  const entries: ReadonlyArray<Entry> = [...due, { _tag: "Step", usage, rounds, spent: spentBy(root) }]
  recorder.entries = []
  const append = Effect.onError(thread.append(entries), () =>
    Effect.sync(() => {
      // They are still due: later entries must not be stored without them.
      recorder.entries = [...due, ...recorder.entries]
    })
  )
  return Effect.flatMap(
    Effect.mapError(
      Effect.uninterruptible(append),
      (error) => new AgentError({ agent: root.run.agent, reason: { _tag: "Thread", error } })
    ),
    (step) => {
      recorder.spent = spent
      return emit(root, { _tag: "CheckpointSaved", threadId, step })
    }
  )
}

/**
 * Counts work that was done beside a run and for it, here and in all runs above. Stores the count at once, since the run
 * may not take another step soon. A run that has ended stores nothing.
 */
export const charge = (live: Live, { beside, rounds = 0, toolCalls = 0 }: Partial<Spent>): Effect.Effect<void> =>
  Effect.suspend(() => {
    countWork(live, "rounds", rounds)
    countWork(live, "toolCalls", toolCalls)
    for (let one: Live | undefined = live; one !== undefined; one = one.parent) {
      const { records, run } = one
      if (beside !== undefined) run.spent = { ...run.spent, beside: add(run.spent.beside ?? zero, beside) }
      if (records.place !== undefined) {
        noteShared(records, { _tag: "State", slot: `${records.place}/u`, value: progressOf(one) })
      }
    }
    const recorder = live.records.journal?.recorder
    if (recorder === undefined) return Effect.void
    const write = recorder.lock.withPermits(1)(
      Effect.suspend(() => (recorder.isSettled ? Effect.void : store(rootOf(live), recorder)))
    )
    return Effect.catch(write, (error) =>
      Effect.logError(`Work in the background could not be counted in its thread: ${error.message}`)
    )
  })
