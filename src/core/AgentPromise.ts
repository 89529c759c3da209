/**
 * Agents for code that works with promises: the same values, run with layers that are built once.
 *
 * ```ts
 * import { Agent, AgentPromise } from "effect-deepagents"
 * import { TestChatModel } from "effect-deepagents/testing"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 * const helper = AgentPromise.make(agent, TestChatModel.script(["Hello."]))
 *
 * const { text } = await helper.run("Hi")
 * await helper.dispose()
 * ```
 */
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { observed } from "../support/effect/observed.ts"
import { findLayerProblem } from "../support/options/layer.ts"
import * as Agent from "./Agent.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import type { AgentResult } from "./AgentResult.ts"
import { type Journal, status, type Status } from "./Journal.ts"

interface AbortSetting {
  /** Interrupts the run when it is aborted. The promise, or the iteration, then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** Options of one call. */
type CallOptions = Agent.RunOptions & AbortSetting

/** Options that continue a run, and its signal. */
type ResumeOptions = Agent.ResumeOptions & AbortSetting

/** Options that the layer can serve: without a `Journal` in it, there are no threads. */
type ServedOptions<Options, Provided> = [Journal] extends [Provided]
  ? Options
  : Options extends { readonly threadId: string }
    ? never
    : Omit<Options, "threadId"> & {
        /** Needs a `Journal` in the layer: `SessionStore.journal` over a store of threads. */
        readonly threadId?: undefined
      }

/**
 * An agent with its services. Promises reject with the tagged errors of the agent and its layer, such as `AgentError`
 * (`error._tag === "AgentError"`) or `ModelError`.
 */
export interface AgentPromise<out Output, in out Provided> extends AsyncDisposable {
  /** Runs the agent to its end. */
  readonly run: (input: Agent.Input, options?: ServedOptions<CallOptions, Provided>) => Promise<AgentResult<Output>>
  /** Runs the agent as its events. Leaving the loop interrupts the run; a slow reader slows it down. */
  readonly stream: (input: Agent.Input, options?: ServedOptions<CallOptions, Provided>) => AsyncIterable<AgentEvent>
  /** Continues a run that was suspended, interrupted or cut off by a crash. */
  readonly resume: (options: ServedOptions<ResumeOptions, Provided>) => Promise<AgentResult<Output>>
  /** Tells whether the last turn of a thread is done, waits for decisions (`pending`), or must be resumed. */
  readonly status: (threadId: [Journal] extends [Provided] ? string : never) => Promise<Status>
  /** Interrupts all runs, and releases the services. */
  readonly dispose: () => Promise<void>
}

/** Shows in the compiler's message which services a layer lacks. */
type Complete<R, Provided> = [Exclude<R, Provided>] extends [never]
  ? unknown
  : { readonly "The layer lacks these services": Exclude<R, Provided> }

/** Fails with the signal's reason when it is aborted. */
const untilAborted = (signal: AbortSignal): Effect.Effect<never, unknown> =>
  Effect.callback((resume) => {
    if (!(signal instanceof AbortSignal)) return resume(Effect.fail(new TypeError("signal must be an AbortSignal")))
    const abort = () => resume(Effect.fail(signal.reason))
    if (signal.aborted) return abort()
    signal.addEventListener("abort", abort, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", abort))
  })

/**
 * Makes an agent for code that works with promises. The layer is built at the first call, once for all calls; `dispose`
 * releases it. A layer that lacks a service of the agent does not compile.
 */
export const make = <O, E, R, Provided, E2>(
  agent: Agent.Agent<O, E, R>,
  layer: Layer.Layer<Provided, E2> & Complete<R, Provided>
): AgentPromise<O, Provided> => {
  const problem = findLayerProblem("AgentPromise.make", layer)
  // `Complete` checked that the layer gives all of R. Options with a thread need a journal, which `ServedOptions` checks.
  const complete = layer as Layer.Layer<R | Journal, E2>
  const runtime = ManagedRuntime.make(
    problem === undefined ? complete : Layer.effectContext(Effect.die(new Error(problem)))
  )
  const disposed = Deferred.makeUnsafe<never, Error>()
  /** Each interrupts a run and waits for its end. The services must outlive the runs. */
  const ends = new Set<Effect.Effect<void>>()
  const dispose = () => {
    Deferred.doneUnsafe(disposed, Effect.fail(new Error("The agent was disposed of, and can't run.")))
    return observed(
      Effect.runPromise(
        Effect.andThen(
          Effect.forEach(ends, (end) => end, { concurrency: "unbounded", discard: true }),
          runtime.disposeEffect
        )
      )
    )
  }
  const untilEnd = (signal: AbortSignal | undefined) =>
    signal === undefined ? Deferred.await(disposed) : Effect.raceFirst(Deferred.await(disposed), untilAborted(signal))
  const services = Effect.suspend((): Effect.Effect<Context.Context<R | Journal>, E2 | Error> =>
    Deferred.isDoneUnsafe(disposed) ? Deferred.await(disposed) : runtime.contextEffect
  )
  // The end comes first in the races: with an aborted signal, no work begins.
  const settle = <A>(work: Effect.Effect<A, unknown, R | Journal>, signal: AbortSignal | undefined): Promise<A> =>
    observed(
      Effect.runPromise(
        Effect.raceFirst(
          untilEnd(signal),
          Effect.flatMap(services, (context) =>
            Effect.flatMap(Effect.forkDetach(Effect.provideContext(work, context)), (fiber) => {
              const end = Fiber.interrupt(fiber)
              ends.add(end)
              return Effect.ensuring(
                Effect.onInterrupt(Fiber.join(fiber), () => end),
                Effect.sync(() => ends.delete(end))
              )
            })
          )
        )
      )
    )
  const pullEvents = Effect.fnUntraced(function* (
    events: Stream.Stream<AgentEvent, unknown, R | Journal>,
    signal: AbortSignal | undefined
  ) {
    const context = yield* services
    const scope = yield* Scope.make()
    const end = yield* Effect.cached(Scope.close(scope, Exit.void))
    ends.add(end)
    const pull = yield* Scope.provide(Stream.toPull(Stream.provideContext(events, context)), scope)
    // The run ends with the signal also while nobody reads.
    if (signal !== undefined) {
      yield* Effect.forkIn(Effect.andThen(Effect.exit(untilAborted(signal)), Effect.forkDetach(end)), scope)
    }
    const leave = Effect.andThen(
      end,
      Effect.sync(() => ends.delete(end))
    )
    return Stream.ensuring(Stream.fromPull(Effect.succeed(pull)), leave)
  })
  return {
    // Programs without types may give `null`.
    run: (input, options?: CallOptions | null) => {
      const { signal, ...rest } = options ?? {}
      return settle(Agent.run(agent, input, rest), signal)
    },
    stream: (input, options?: CallOptions | null) => {
      const { signal, ...rest } = options ?? {}
      const events = Stream.unwrap(pullEvents(Agent.stream(agent, input, rest), signal))
      return Stream.toAsyncIterable(Stream.interruptWhen(events, untilEnd(signal)))
    },
    resume: (options: ResumeOptions) => {
      const { signal, ...rest } = options ?? {}
      return settle(Agent.resume(agent, rest), signal)
    },
    status: (threadId) => settle(status(threadId), undefined),
    dispose,
    [Symbol.asyncDispose]: dispose
  }
}
