import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Agent from "../../core/Agent.ts"
import { AgentError } from "../../core/AgentError.ts"
import { Journal } from "../../core/Journal.ts"
import type { HumanMessage } from "../../core/Message.ts"
import type { Service } from "../../core/SessionStore.ts"
import { NotRunning } from "../NotRunning.ts"
import { fromResult, type Outcome } from "../Outcome.ts"
import * as Feed from "./feed.ts"
import { fenced } from "./fence.ts"
import { markStopped, plan, type Push } from "./plan.ts"
import type { Answer, Codecs } from "./terms.ts"

/** A thread that a runner has in its hands: the run that goes on, and what is seen of it. */
export interface Thread<O, E, R> {
  readonly feed: Feed.Feed
  /** Brings the thread on; one push at a time. */
  readonly turn: (push: Push) => Effect.Effect<Outcome<Answer<O> | undefined>, E | AgentError, R>
  readonly steer: (message: HumanMessage) => Effect.Effect<void, NotRunning>
  /** Ends the run that goes on. Says whether there was one. */
  readonly interrupt: Effect.Effect<boolean>
}

/** Takes a thread into one's hands. `mine` says whether this runner still has it. */
export const make = <O, E, R>(
  store: Service,
  agent: Agent.Agent<O, E, R>,
  codecs: Codecs<O, E>,
  threadId: string,
  mine: () => boolean
): Thread<O, E, R> => {
  const feed = Feed.make(store, threadId)
  let current: Agent.Handle<O, E | AgentError> | undefined
  let isStopped = false

  const run = (input: Agent.Input, journal: Journal["Service"]) =>
    Effect.gen(function* () {
      const handle = yield* Effect.provideService(Agent.start(agent, input, { threadId }), Journal, feed.told(journal))
      const told = yield* feed.follow(handle)
      isStopped = false
      current = handle
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          current = undefined
        })
      )
      const exit = yield* Effect.exit(handle.await)
      yield* told
      return exit
    }).pipe(Effect.scoped)

  const isInterrupted = (cause: Cause.Cause<unknown>) => cause.reasons.every((reason) => reason._tag === "Interrupt")

  const once: (push: Push) => Effect.Effect<Outcome<Answer<O> | undefined>, E | AgentError, R> = Effect.fnUntraced(
    function* (push: Push): Effect.fn.Return<Outcome<Answer<O> | undefined>, E | AgentError, R> {
      // `O` is its answers, and `undefined` or not.
      type Known = Outcome<Answer<O> | undefined>
      const todo = yield* plan(store, agent, codecs, threadId, push)
      if (todo._tag === "Settled") return todo.outcome as Known
      const exit = yield* run(todo.input, todo.journal)
      if (Exit.isSuccess(exit)) return fromResult<unknown>(exit.value) as Known
      if (!isStopped || !isInterrupted(exit.cause)) return yield* Effect.failCause(exit.cause)
      // It is over, and not gone on with; that is read from the thread, as it would be after a crash.
      yield* Effect.mapError(
        markStopped(store, threadId),
        (error) => new AgentError({ agent: agent.name, reason: { _tag: "Thread", error } })
      )
      return yield* once(push)
    }
  )

  return {
    feed,
    turn: (push) => fenced(once(push), mine),
    steer: (message) =>
      Effect.suspend(() =>
        current === undefined
          ? Effect.fail(new NotRunning({ threadId }))
          : Effect.mapError(current.steer(message), () => new NotRunning({ threadId }))
      ),
    interrupt: Effect.suspend(() => {
      if (current === undefined) return Effect.succeed(false)
      isStopped = true
      return Effect.as(current.interrupt, true)
    })
  }
}
