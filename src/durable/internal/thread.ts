/** A thread on its runner. It processes one push at a time. */
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
import type { Outcome } from "../Outcome.ts"
import type { Answer, Codecs } from "./codecs.ts"
import * as Feed from "./eventFeed.ts"
import { fromResult } from "./outcome.ts"
import { markStopped, plan, type Push } from "./plan.ts"
import { whileOwned } from "./retries.ts"

/** A thread of this runner. */
export interface Thread<O, E, R> {
  readonly feed: Feed.Feed
  /** Processes a push. */
  readonly turn: (push: Push) => Effect.Effect<Outcome<Answer<O> | undefined>, E | AgentError | Conflict, R>
  readonly steer: (message: HumanMessage) => Effect.Effect<void, NotRunning>
  /** Ends the current run. `false`: no run is at work. */
  readonly interrupt: Effect.Effect<boolean>
}

/** The work on a push. `stopped` becomes `true` if a person ended its run. */
interface Turn<O, E> {
  handle: Agent.Handle<O, E | AgentError> | undefined
  isStopped: boolean
  readonly stopped: Deferred.Deferred<boolean>
}

/** Makes a thread of this runner. `isMine` reports whether the runner still has it. */
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

  // `O` may include `undefined`.
  type Known = Outcome<Answer<O> | undefined>

  const process = Effect.fnUntraced(function* (
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
    // The next attempt reads the outcome from the thread, as after a crash.
    yield* Effect.mapError(
      markStopped(store, agent.name, threadId, push),
      (error) => new AgentError({ agent: agent.name, reason: { _tag: "Thread", error } })
    )
    yield* Deferred.succeed(turn.stopped, true)
    return yield* process(turn, push)
  })

  return {
    feed,
    turn: (push) =>
      Effect.suspend(() => {
        const turn: Turn<O, E> = { handle: undefined, isStopped: false, stopped: Deferred.makeUnsafe() }
        current = turn
        return Effect.onExit(whileOwned(process(turn, push), isMine), (exit) => {
          if (current === turn) current = undefined
          // Another runner resumes the thread, and the client asks it to stop again.
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
