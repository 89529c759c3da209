/** The supervisor: starts, watches, limits and ends the tasks of this process. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as PubSub from "effect/PubSub"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { type Decision, problemOf as problemWith } from "../../../core/Approval.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import { fromUnknown } from "../../../core/ToolError.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import { defined } from "../../../support/json/defined.ts"
import { type Ask, type TaskEnd, type Reason, type Service, type Session, type Task, TaskError } from "./task.ts"

/** Limits of supervision. `maxDuration` is in milliseconds. */
interface Limits {
  readonly maxRunning: number
  readonly maxTotal: number
  readonly maxDuration: number
  readonly keep: number
}

/** Characters of a task's result that are kept. */
const maxText = 20_000

/** Time (milliseconds) for interrupted work to end. */
const windUp = 10_000

/** A task with its session. `done` completes at the end of the current turn. */
interface Entry {
  readonly session: Session
  /** Serialises changes. */
  readonly lock: Semaphore.Semaphore
  task: Task
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  done: Deferred.Deferred<void>
  isCancelled: boolean
}

const view = ({ session, task }: Entry): Task =>
  defined({ ...task, usage: session.usage() ?? task.usage, kept: session.kept() ?? task.kept })

const bounded = (text: string): string => ToolOutput.text(ToolOutput.truncate(ToolOutput.make(text), maxText))

/** Reports whether a task may have continued elsewhere. Then nobody here decides its requests. */
const isElsewhere = ({ pending, status }: Task): boolean =>
  status === "lost" || (status === "suspended" && pending.length === 0)

const fail = (reason: Reason) => Effect.fail(new TaskError({ reason }))

const notPossible = (problem: string) => fail({ _tag: "NotPossible", problem })

/** Makes the operations that start and end the turns of tasks. */
const makeTurns = (limits: Limits, scope: Scope.Scope, onEnd: (task: Task) => void) => {
  const entries = new Map<string, Entry>()

  const running = (group?: string): number => {
    let count = 0
    for (const { task } of entries.values()) {
      if (task.status === "running" && (group === undefined || task.group === group)) count++
    }
    return count
  }

  /** The reached limit, if another task is too many. */
  const tooMany = (group: string): number | undefined => {
    if (running(group) >= limits.maxRunning) return limits.maxRunning
    return running() >= limits.maxTotal ? limits.maxTotal : undefined
  }

  /** Drops the oldest tasks that do not run; tasks that wait for a decision last. */
  const prune = (): void => {
    const waits = ({ status }: Task) => (status === "suspended" ? 1 : 0)
    const over = [...entries].filter(([, { task }]) => task.status !== "running")
    over.sort(
      ([, { task: left }], [, { task: right }]) => waits(left) - waits(right) || left.updatedAt - right.updatedAt
    )
    for (const [key] of over.slice(0, Math.max(0, over.length - limits.keep))) entries.delete(key)
  }

  const end = Effect.fnUntraced(function* (entry: Entry, ending: TaskEnd) {
    const updatedAt = yield* Clock.currentTimeMillis
    const { pending = [], status, text } = ending
    entry.task = { ...entry.task, status, text: bounded(text), pending, updatedAt }
    entry.fiber = undefined
    Deferred.doneUnsafe(entry.done, Effect.void)
    onEnd(view(entry))
    prune()
  })

  const longest = ({ session: { maxDuration } }: Entry): number =>
    maxDuration === undefined ? limits.maxDuration : Duration.toMillis(Duration.fromInputUnsafe(maxDuration))

  const endingOf = Effect.fnUntraced(function* (
    entry: Entry,
    exit: Exit.Exit<Option.Option<TaskEnd>, TaskError>
  ): Effect.fn.Return<TaskEnd> {
    if (Exit.isSuccess(exit)) {
      if (Option.isSome(exit.value)) return exit.value.value
      yield* Effect.ignore(entry.session.cancel)
      const seconds = Math.round(longest(entry) / 1000)
      return { status: "failed", text: `It was stopped: it took longer than ${seconds} seconds.` }
    }
    if (Cause.hasInterrupts(exit.cause)) {
      return entry.isCancelled
        ? { status: "cancelled", text: "It was cancelled." }
        : { status: "lost", text: "It was interrupted by something else than cancel_task." }
    }
    if (Cause.hasDies(exit.cause)) yield* Effect.logError("A task in the background died", exit.cause)
    const error = Cause.squash(exit.cause)
    return { status: "failed", text: fromUnknown(error).message }
  })

  /** Waits for the end of a turn in the background. */
  const supervise = Effect.fnUntraced(function* (entry: Entry, work: Effect.Effect<TaskEnd, TaskError>) {
    const { turn } = entry.task
    entry.fiber = yield* work.pipe(
      Effect.timeoutOption(longest(entry)),
      Effect.onExit((exit) =>
        // The end of an earlier turn is irrelevant after a later one started.
        entry.task.turn === turn ? Effect.flatMap(endingOf(entry, exit), (ending) => end(entry, ending)) : Effect.void
      ),
      Effect.forkIn(scope, { startImmediately: true })
    )
    // The turn may have ended immediately.
    if (entry.task.status !== "running") entry.fiber = undefined
  })

  /**
   * Starts the next turn of a task. The task counts as running from here on, and returns to its former status if that
   * fails.
   */
  const nextTurn = (entry: Entry, ask: Ask): Effect.Effect<Task, TaskError> =>
    Effect.uninterruptibleMask(
      Effect.fnUntraced(function* (restore) {
        const max = entry.task.status === "running" ? undefined : tooMany(entry.task.group)
        if (max !== undefined) return yield* fail({ _tag: "TooMany", max })
        const before = entry.task
        if (before.status !== "running") {
          entry.done = Deferred.makeUnsafe()
          entry.task = { ...before, status: "running" }
        }
        const work = yield* Effect.onError(restore(entry.session.begin(ask)), () =>
          Effect.sync(() => {
            if (before.status === "running") return
            entry.task = before
            Deferred.doneUnsafe(entry.done, Effect.void)
          })
        )
        const updatedAt = yield* Clock.currentTimeMillis
        const earlier = entry.fiber
        entry.isCancelled = false
        if (entry.task.status !== "running") entry.done = Deferred.makeUnsafe()
        entry.task = { ...entry.task, status: "running", turn: before.turn + 1, text: "", pending: [], updatedAt }
        yield* supervise(entry, work)
        if (earlier !== undefined) yield* Effect.forkIn(Fiber.interrupt(earlier), scope)
        return view(entry)
      })
    )

  const enter = (task: Task, session: Session): Entry => {
    const entry: Entry = {
      session,
      lock: Semaphore.makeUnsafe(1),
      task,
      fiber: undefined,
      done: Deferred.makeUnsafe(),
      isCancelled: false
    }
    entries.set(task.key, entry)
    return entry
  }

  /** Starts a task's first turn in this supervisor. A task that does not start is removed. */
  const launch = (task: Task, session: Session, ask: Ask): Effect.Effect<Task, TaskError> =>
    Effect.uninterruptibleMask(
      Effect.fnUntraced(function* (restore) {
        const max = tooMany(task.group)
        if (max !== undefined) return yield* fail({ _tag: "TooMany", max })
        const entry = enter(task, session)
        const work = yield* Effect.onError(restore(session.begin(ask)), () =>
          Effect.sync(() => {
            entries.delete(task.key)
            Deferred.doneUnsafe(entry.done, Effect.void)
          })
        )
        yield* supervise(entry, work)
        return view(entry)
      })
    )

  return { end, entries, launch, nextTurn }
}

/** Makes the supervisor of a scope. */
export const make = Effect.fnUntraced(function* (limits: Limits) {
  const ended = yield* PubSub.unbounded<Task>()
  const tell = (task: Task): void => {
    PubSub.publishUnsafe(ended, task)
  }
  const { end, entries, launch, nextTurn } = makeTurns(limits, yield* Effect.scope, tell)

  const find = (key: string): Effect.Effect<Entry, TaskError> =>
    Effect.suspend(() => {
      const entry = entries.get(key)
      return entry === undefined ? fail({ _tag: "NotFound" }) : Effect.succeed(entry)
    })

  const start: Service["start"] = Effect.fn("BackgroundTasks.start")(function* ({
    agent,
    description,
    group,
    session
  }) {
    const now = yield* Clock.currentTimeMillis
    const makeId = yield* IdGenerator
    const task: Task = {
      key: makeId(),
      group,
      agent,
      description,
      status: "running",
      turn: 1,
      startedAt: now,
      updatedAt: now,
      text: "",
      pending: []
    }
    return yield* launch(task, session, { _tag: "Start", description })
  })

  const adopt: Service["adopt"] = Effect.fn("BackgroundTasks.adopt")(function* (task, session) {
    const entry = entries.get(task.key)
    if (entry === undefined) {
      return yield* launch({ ...task, status: "running", text: "", pending: [] }, session, { _tag: "Resume" })
    }
    return yield* entry.lock.withPermits(1)(
      Effect.suspend(() =>
        isElsewhere(entry.task) ? nextTurn(entry, { _tag: "Resume" }) : Effect.succeed(view(entry))
      )
    )
  })

  const check: Service["check"] = Effect.fn("BackgroundTasks.check")(function* (key, wait = 0) {
    const entry = yield* find(key)
    if (entry.task.status === "running" && wait > 0) {
      yield* Effect.timeoutOption(Deferred.await(entry.done), wait)
    }
    return view(entry)
  })

  const update: Service["update"] = Effect.fn("BackgroundTasks.update")(function* (key, message) {
    const entry = yield* find(key)
    return yield* entry.lock.withPermits(1)(
      Effect.gen(function* () {
        if (entry.task.status === "running") {
          const how = yield* entry.session.steer(message)
          if (how === "told") {
            entry.task = { ...entry.task, updatedAt: yield* Clock.currentTimeMillis }
            return view(entry)
          }
          if (how === "begin") return yield* nextTurn(entry, { _tag: "Message", text: message })
          yield* Deferred.await(entry.done)
        }
        const { status } = entry.task
        if (status === "suspended") return yield* notPossible("It waits for a decision of a person, not for a message.")
        const canContinue = status === "completed" || (status === "failed" && entry.session.keepsWork === true)
        if (!canContinue) return yield* notPossible(`It is ${status} and can't go on. Start a new one.`)
        return yield* nextTurn(entry, { _tag: "Message", text: message })
      })
    )
  })

  const cancel: Service["cancel"] = Effect.fn("BackgroundTasks.cancel")(function* (key) {
    const entry = yield* find(key)
    return yield* entry.lock.withPermits(1)(
      Effect.gen(function* () {
        const { status } = entry.task
        if (status !== "running" && status !== "suspended") {
          return yield* notPossible(`It is ${status} already; there is nothing to cancel.`)
        }
        yield* entry.session.cancel
        if (entry.fiber === undefined) yield* end(entry, { status: "cancelled", text: "It was cancelled." })
        else {
          entry.isCancelled = true
          yield* Effect.timeoutOption(Fiber.interrupt(entry.fiber), windUp)
        }
        return view(entry)
      })
    )
  })

  /** Finds a problem in the decisions on a task's pending requests. */
  const problemOf = ({ pending }: Task, decisions: ReadonlyArray<Decision>): string | undefined => {
    if (decisions.length === 0) return "There is no decision among these."
    for (const decision of decisions) {
      const request = pending.find(({ id }) => id === decision.id)
      if (request === undefined) return `Nothing waits for a decision with the id "${decision.id}".`
      const problem = problemWith(request, decision)
      if (problem !== undefined) return `${problem}.`
    }
    return undefined
  }

  const decide: Service["decide"] = Effect.fn("BackgroundTasks.decide")(function* (key, decisions) {
    const entry = yield* find(key)
    return yield* entry.lock.withPermits(1)(
      Effect.suspend(() => {
        const { status } = entry.task
        if (status !== "suspended") return notPossible(`It is ${status}: it waits for no decision.`)
        const problem = problemOf(entry.task, decisions)
        return problem === undefined ? nextTurn(entry, { _tag: "Decisions", decisions }) : notPossible(problem)
      })
    )
  })

  const list: Service["list"] = (group) =>
    Effect.sync(() =>
      [...entries.values()]
        .filter(({ task }) => group === undefined || task.group === group)
        .map((entry) => view(entry))
    )

  return {
    start,
    adopt,
    check,
    update,
    cancel,
    decide,
    list,
    ended: Stream.fromPubSub(ended)
  } satisfies Service
})
