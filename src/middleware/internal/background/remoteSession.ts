/** A task on a server as a session of the supervisor. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Json } from "../../../core/Json.ts"
import { type Usage, zero } from "../../../core/Usage.ts"
import type { UsedUp } from "../ledger.ts"
import type { Client, Failure, RemoteRun } from "./remoteClient.ts"
import { answerOf, askedOf, errorOf, Id, type RunAnswer, type ThreadAnswer, usageOf } from "./remoteWire.ts"
import { type Ask, type TaskEnd, type Reason, type Session, TaskError } from "./task.ts"

/** Data for another process to resume a task: its place on its server, and whether it waited for a person. */
const Kept = Schema.Struct({ threadId: Id, runId: Id, wasAsked: Schema.Boolean })
export type SessionRecord = typeof Kept.Type

const decode = Schema.decodeUnknownResult(Kept)

/** Decodes the stored data, if it is valid. */
export const decodeKept = (json: Json): SessionRecord | undefined => {
  const result = decode(json)
  return Result.isSuccess(result) ? result.success : undefined
}

/** The most consecutive failures of requests before a task is lost. */
const maxFailures = 10

const unavailable = ({ problem }: Failure): TaskError => new TaskError({ reason: { _tag: "Unavailable", problem } })

const notPossible = (problem: string) => {
  const reason: Reason = { _tag: "NotPossible", problem }
  return Effect.fail(new TaskError({ reason }))
}

/** The use of a remote task by its server's last report, and a check of the remaining budget. */
export interface Account {
  readonly spent: { usage: Usage }
  readonly usedUp: UsedUp
}

/** One task on a server: a thread there, and its current run. */
export const makeSession = (
  client: Client,
  pollInterval: number,
  record: SessionRecord | undefined,
  { spent, usedUp }: Account
): Session => {
  let run: RemoteRun | undefined = record
  /** True if the run may still be running there. */
  let isOpen = record !== undefined
  /** True if the run waited for a person there. */
  let wasAsked = record?.wasAsked === true
  /** True while another run replaces this one. */
  let isReplacing = false

  /** Retries a poll as long as its failures may be transient. */
  const retryPoll = <A>(look: Effect.Effect<A, Failure>): Effect.Effect<A, Failure> =>
    Effect.gen(function* () {
      for (let failures = 1; ; failures++) {
        const result = yield* Effect.result(look)
        if (Result.isSuccess(result)) return result.success
        if (!result.failure.isPassing || failures >= maxFailures) return yield* Effect.fail(result.failure)
        yield* Effect.sleep(pollInterval)
      }
    })

  /** Reads a thread with its usage. */
  const threadOf = (threadId: string): Effect.Effect<typeof ThreadAnswer.Type, Failure> =>
    Effect.tap(retryPoll(client.getThread(threadId)), (thread) =>
      Effect.sync(() => {
        spent.usage = usageOf(thread) ?? spent.usage
      })
    )

  /**
   * Reads the state of a thread with an interrupted run: it waits for a person, was resumed by a decision, or was
   * stopped.
   */
  const interruptedIn = Effect.fnUntraced(function* (threadId: string): Effect.fn.Return<TaskEnd, Failure> {
    for (;;) {
      const thread = yield* threadOf(threadId)
      const question = askedOf(thread)
      if (question !== undefined) {
        wasAsked = true
        return { status: "suspended", text: `It waits for a person, who has to decide on its server:\n${question}` }
      }
      if (!wasAsked) return { status: "cancelled", text: "It was stopped on its server." }
      if (thread.status === "error") return { status: "failed", text: "It failed on its server." }
      if (thread.status !== "busy") return { status: "completed", text: answerOf(thread) }
      yield* Effect.sleep(pollInterval)
    }
  })

  const endingOf = Effect.fnUntraced(function* (
    { threadId }: RemoteRun,
    answer: typeof RunAnswer.Type
  ): Effect.fn.Return<TaskEnd, Failure> {
    if (answer.status === "success") {
      return { status: "completed", text: answerOf(yield* threadOf(threadId)) }
    }
    if (answer.status === "interrupted") return yield* interruptedIn(threadId)
    return answer.status === "cancelled"
      ? { status: "cancelled", text: "It was stopped on its server." }
      : { status: "failed", text: errorOf(answer) }
  })

  /** Polls a run until it ends. */
  const poll = (mine: RemoteRun): Effect.Effect<TaskEnd> =>
    Effect.gen(function* () {
      for (;;) {
        const answer = yield* retryPoll(client.getRun(mine))
        // The end of a replaced run does not count.
        if (isReplacing || run?.runId !== mine.runId) yield* Effect.sleep(pollInterval)
        else if (answer.status === "pending" || answer.status === "running") yield* Effect.sleep(pollInterval)
        else {
          isOpen = false
          return yield* endingOf(mine, answer)
        }
      }
    }).pipe(
      Effect.catch(({ isPassing, problem }) =>
        Effect.succeed<TaskEnd>(
          isPassing
            ? { status: "lost", text: `${problem} Whether it came to an end there is not known.` }
            : { status: "failed", text: problem }
        )
      )
    )

  const say = Effect.fnUntraced(function* (threadId: string, message: string, replaces: string | undefined) {
    isReplacing = replaces !== undefined
    const newRun = yield* Effect.ensuring(
      client.createRun(threadId, message, replaces),
      Effect.sync(() => {
        isReplacing = false
      })
    )
    run = newRun
    isOpen = true
    return poll(newRun)
  })

  const begin = (ask: Ask): Effect.Effect<Effect.Effect<TaskEnd>, TaskError> => {
    switch (ask._tag) {
      case "Start":
        return client.createThread.pipe(
          Effect.flatMap((threadId) => say(threadId, ask.description, undefined)),
          Effect.mapError(unavailable)
        )
      case "Message":
        return run === undefined
          ? notPossible("It was not begun.")
          : Effect.mapError(say(run.threadId, ask.text, isOpen ? run.runId : undefined), unavailable)
      case "Decisions":
        return notPossible("It has to be decided on at its server.")
      case "Resume":
        return run === undefined ? notPossible("It was not begun.") : Effect.succeed(poll(run))
    }
  }

  return {
    begin: (ask) =>
      Effect.flatMap(ask._tag === "Resume" ? Effect.undefined : usedUp, (problem) =>
        problem === undefined ? begin(ask) : notPossible(`It was not begun: ${problem}.`)
      ),
    steer: () => Effect.succeed("begin"),
    cancel: Effect.suspend(() =>
      run === undefined ? Effect.void : Effect.mapError(client.cancelRun(run), unavailable)
    ),
    usage: () => (spent.usage === zero ? undefined : spent.usage),
    kept: () => (run === undefined ? undefined : { threadId: run.threadId, runId: run.runId, wasAsked })
  }
}
