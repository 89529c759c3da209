/**
 * Wakes an idle thread: when a waking message comes into its mailbox, and when a task of it in the background ends.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Attendant, Channel } from "effect-deepagents/patterns"
 * import { MemorySessions } from "effect-deepagents/sessions"
 * import { Storage } from "effect-deepagents/stores"
 *
 * const base = Agent.make({ name: "base", prompt: "You lead.", tools: Channel.tools({ as: "base" }) })
 *
 * const program = Effect.gen(function* () {
 *   yield* Effect.forkScoped(Attendant.attend(base, { threadId: "base", mailbox: "base" }))
 *   const channel = yield* Channel.Channel
 *   yield* channel.send({ from: "scout", to: "base", body: "I am lost", wake: "waking" })
 *   return yield* Effect.never
 * }).pipe(Effect.provide([MemorySessions.layer, Layer.provide(Channel.layer(), Storage.layerMemory)]))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Agent from "../core/Agent.ts"
import { AgentError } from "../core/AgentError.ts"
import * as Checkpoint from "../core/Checkpoint.ts"
import { IdGenerator } from "../core/IdGenerator.ts"
import { Journal } from "../core/Journal.ts"
import { stringify } from "../core/Json.ts"
import * as Message from "../core/Message.ts"
import { make as sessionError, type SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { source as tasksSource, tasks as tasksIn } from "../middleware/BackgroundSubagents.ts"
import { BackgroundTasks, isOpen } from "../middleware/BackgroundTasks.ts"
import { loadThread, makeJournal } from "../sessions/journal.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { oneLine, outside, quote } from "../support/text/untrusted.ts"
import { Channel, type ChannelError, type Envelope } from "./Channel.ts"
import * as shapes from "./internal/shapes.ts"
import { isCutOff, untilDecided } from "./internal/turns.ts"

/** The options of an attendant. */
export interface Options {
  /** The thread that is woken. */
  readonly threadId: string
  /** The mailbox of the thread, as `Channel.tools({ as })` names it. */
  readonly mailbox: string
}

/** The `source` of the messages that come from a mailbox. It marks them as text from outside, for `Taint` too. */
export const source = `${outside}channel`

/** The time between two looks at an idle thread. */
const pause = "1 second"

/** The most messages of a turn. So many quiet messages wake the thread, too. */
const most = 100

const idOf = ({ id, to }: Envelope): string => `channel/${encodeURIComponent(to)}/${id}`

const messageOf = (envelope: Envelope): Message.HumanMessage => {
  const { body, from } = envelope
  const text = typeof body === "string" ? body : stringify(body)
  return Message.human(`The agent ${oneLine(from)} says:\n${quote(text)}`, { id: idOf(envelope), source })
}

/** Reports whether a run failed because another one wrote to its thread. */
const isOvertaken = (error: unknown): boolean =>
  error instanceof AgentError &&
  error.reason._tag === "Thread" &&
  (error.reason.error.reason._tag === "Busy" || error.reason.error.reason._tag === "Conflict")

const refuse = makeEffectCheck("Attendant.attend", shapes.attendantAttend)

/**
 * Attends a thread for ever. While it is idle, a `waking` message in its mailbox begins a turn, which gets all messages
 * that wait. An `interrupting` one also ends the turn that the attendant has begun. With `BackgroundTasks` in the context,
 * a turn begins when a task of the thread ends that the model was not told of.
 *
 * Of all processes that attend a mailbox, one does so; another one goes on ten seconds after it is killed, and finishes the
 * turn that was cut off. Each message is in the thread once. A turn that waits for a decision is waited for. A turn that
 * fails ends the attendant: retry it by a schedule.
 */
export const attend = Effect.fnUntraced(function* <O, E, R>(
  agent: Agent.Agent<O, E, R>,
  options: Options
): Effect.fn.Return<never, E | AgentError | SessionError | ChannelError, Exclude<R, Journal> | Channel | SessionStore> {
  yield* refuse(options) ?? Effect.void
  const { mailbox, threadId } = options
  const [channel, store, makeId] = [yield* Channel, yield* SessionStore, yield* IdGenerator]
  const tasks = Option.getOrUndefined(yield* Effect.serviceOption(BackgroundTasks))
  const by = makeId()
  const journal = makeJournal(store)

  const load = Effect.catchIf(
    loadThread(store, threadId),
    ({ reason }) => reason._tag === "NotFound",
    () => Effect.succeed({ checkpoint: undefined, ended: undefined, leaf: { id: null, step: 0 } })
  )

  const acknowledge = (envelopes: ReadonlyArray<Envelope>) =>
    envelopes.length === 0
      ? Effect.void
      : channel.acknowledge(
          mailbox,
          envelopes.map(({ id }) => id)
        )

  /** Reports whether a task has ended that the model was not told of. */
  const hasNews = Effect.fnUntraced(function* (state: Checkpoint.Checkpoint["state"]) {
    if (tasks === undefined) return false
    for (const record of Result.getOrElse(tasksIn(state), () => [])) {
      if (!record.told) return true
      if (!isOpen(record.status)) continue
      const task = yield* Effect.option(tasks.check(record.key))
      if (Option.isNone(task) || task.value.status === "running") continue
      if (task.value.status !== record.status || task.value.turn !== record.turn) return true
    }
    return false
  })

  /** Runs a turn, if nobody has written to the thread since `step`. Its messages are acknowledged when they are stored. */
  const run = (input: Agent.Input, step: number, envelopes: ReadonlyArray<Envelope>) => {
    const ids = new Set(envelopes.map(idOf))
    const open: Journal["Service"]["open"] = (id) =>
      Effect.flatMap(journal.open(id), (thread) =>
        thread.step === step
          ? Effect.succeed({
              ...thread,
              append: (entries) =>
                Effect.tap(thread.append(entries), () =>
                  entries.some((entry) => entry._tag === "Message" && ids.has(entry.message.id))
                    ? Effect.ignore(acknowledge(envelopes))
                    : Effect.void
                )
            })
          : sessionError("open", id, { _tag: "Busy" })
      )
    return Effect.provideService(Agent.run(agent, input, { threadId }), Journal, { ...journal, open })
  }

  const untilInterrupted = (seen: ReadonlySet<string>) =>
    Effect.gen(function* () {
      const isNew = ({ id, wake }: Envelope) => wake === "interrupting" && !seen.has(id)
      do yield* Effect.sleep(pause)
      while (!(yield* channel.receive(mailbox, { most })).some(isNew))
    })

  /** Gives the thread one turn, if there is a reason for it. `isNew`: the attendant before may have been cut off. */
  const look = Effect.fnUntraced(function* (isNew: boolean) {
    if ((yield* load).checkpoint !== undefined) yield* untilDecided(store, threadId)
    const { checkpoint, ended, leaf } = yield* load
    const received = yield* channel.receive(mailbox, { most })
    const storedIds = new Set(checkpoint?.messages.map(({ id }) => id))
    yield* acknowledge(received.filter((one) => storedIds.has(idOf(one))))
    const fresh = received.filter((one) => !storedIds.has(idOf(one)))
    const begin = (input: Agent.Input, envelopes: ReadonlyArray<Envelope>) =>
      Effect.as(
        Effect.raceFirst(run(input, leaf.step, envelopes), untilInterrupted(new Set(received.map(({ id }) => id)))),
        true
      )
    // Somebody else runs a turn.
    if (checkpoint !== undefined && ended === undefined && !isNew) return false
    if (checkpoint !== undefined && isCutOff(ended) && isNew && !fresh.some(({ wake }) => wake === "interrupting"))
      return yield* begin(Checkpoint.resume(undefined), [])
    const isDue = fresh.some(({ wake = "quiet" }) => wake !== "quiet") || fresh.length === most
    if (isDue) return yield* begin(fresh.map(messageOf), fresh)
    if (checkpoint === undefined || !(yield* hasNews(checkpoint.state))) return false
    const news = Message.human("Tasks in the background have ended.", { source: tasksSource })
    return yield* begin([...fresh.map(messageOf), news], fresh)
  })

  const serve = Effect.gen(function* () {
    for (let isNew = true; ; isNew = false) {
      const hasRun = yield* Effect.catchIf(look(isNew), isOvertaken, () => Effect.succeed(false))
      if (!hasRun) yield* Effect.sleep(pause)
    }
  })
  const keep = Effect.gen(function* () {
    do yield* Effect.sleep("3 seconds")
    while (yield* channel.hold(mailbox, by))
  })
  return yield* Effect.gen(function* () {
    for (;;) {
      if (yield* channel.hold(mailbox, by)) yield* Effect.raceFirst(keep, serve)
      else yield* Effect.sleep(pause)
    }
  }).pipe(Effect.ensuring(Effect.ignore(channel.release(mailbox, by))))
})
