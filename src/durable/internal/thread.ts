/** A thread on the runner that has it: one push at a time, steered and stopped from outside. */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Agent from "../../core/Agent.ts"
import { AgentError } from "../../core/AgentError.ts"
import { Journal } from "../../core/Journal.ts"
import type { HumanMessage } from "../../core/Message.ts"
import type { Service } from "../../core/SessionStore.ts"
import type { Conflict } from "../Conflict.ts"
import { NotRunning } from "../NotRunning.ts"
import { fromResult, type Outcome } from "../Outcome.ts"
import type { Answer, Codecs } from "./codecs.ts"
import * as Feed from "./eventFeed.ts"
import { markStopped, plan, type Push } from "./plan.ts"
import { owned } from "./retries.ts"

/** A thread that a runner has: its current run, and the events of it. */
export interface Thread<O, E, R> {
  readonly feed: Feed.Feed
  /** Brings the thread on; one push at a time. */
  readonly turn: (push: Push) => Effect.Effect<Outcome<Answer<O> | undefined>, E | AgentError | Conflict, R>
  readonly steer: (message: HumanMessage) => Effect.Effect<void, NotRunning>
  /** Ends the run that is at work, or about to begin. `false` if there was none. */
  readonly interrupt: Effect.Effect<boolean>
}

/** The work on a push, from when it is taken. `stopped` becomes `true` if a person ended its run. */
interface Turn<O, E> {
  handle: Agent.Handle<O, E | AgentError> | undefined
  isStopped: boolean
  readonly stopped: Deferred.Deferred<boolean>
}

/** Takes a thread into one's hands. `isMine` says whether this runner still has it. */
export const make = <O, E, R>(
  store: Service,
  agent: Agent.Agent<O, E, R>,
  codecs: Codecs<O, E>,
  threadId: string,
  isMine: () => boolean
): Thread<O, E, R> => {
  const feed = Feed.make(store, threadId)
  let current: Turn<O, E> | undefined

  const run = (turn: Turn<O, E>, input: Agent.Input, journal: Journal["Service"]) =>
    Effect.gen(function* () {
      const handle = yield* Effect.provideService(
        Agent.start(agent, input, { threadId }),
        Journal,
        feed.announced(journal)
      )
      turn.handle = handle
      if (turn.isStopped) yield* handle.interrupt
      const relayed = yield* feed.follow(handle)
      const exit = yield* Effect.exit(handle.await)
      yield* relayed
      return exit
    }).pipe(Effect.scoped)

  // `O` is its answers, and `undefined` or not.
  type Known = Outcome<Answer<O> | undefined>

  const once = Effect.fnUntraced(function* (
    turn: Turn<O, E>,
    push: Push
  ): Effect.fn.Return<Known, E | AgentError | Conflict, R> {
    const todo = yield* plan(store, agent, codecs, threadId, push)
    if (todo._tag === "Settled") return todo.outcome as Known
    if (!turn.isStopped) {
      const exit = yield* run(turn, todo.input, todo.journal)
      turn.handle = undefined
      if (Exit.isSuccess(exit)) return fromResult<unknown>(exit.value) as Known
      if (!turn.isStopped || !Cause.hasInterruptsOnly(exit.cause)) return yield* Effect.failCause(exit.cause)
    }
    // The outcome is read from the thread, as it would be after a crash.
    yield* Effect.mapError(
      markStopped(store, agent.name, threadId, push),
      (error) => new AgentError({ agent: agent.name, reason: { _tag: "Thread", error } })
    )
    yield* Deferred.succeed(turn.stopped, true)
    return yield* once(turn, push)
  })

  return {
    feed,
    turn: (push) =>
      Effect.suspend(() => {
        const turn: Turn<O, E> = { handle: undefined, isStopped: false, stopped: Deferred.makeUnsafe() }
        current = turn
        return Effect.onExit(owned(once(turn, push), isMine), (exit) => {
          if (current === turn) current = undefined
          // Another runner resumes it, and is asked again whether there is something to stop.
          return Exit.hasInterrupts(exit) ? Deferred.interrupt(turn.stopped) : Deferred.succeed(turn.stopped, false)
        })
      }),
    steer: (message) =>
      Effect.suspend(() =>
        current?.handle === undefined
          ? Effect.fail(new NotRunning({ threadId }))
          : Effect.mapError(current.handle.steer(message), () => new NotRunning({ threadId }))
      ),
    interrupt: Effect.suspend(() => {
      if (current === undefined) return Effect.succeed(false)
      const { handle, stopped } = current
      current.isStopped = true
      return Effect.andThen(handle === undefined ? Effect.void : handle.interrupt, Deferred.await(stopped))
    })
  }
}
