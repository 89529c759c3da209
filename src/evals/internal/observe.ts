/** Runs an agent, and keeps its calls, usage and time, also for a run that fails. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Agent from "../../core/Agent.ts"
import type { AgentError } from "../../core/AgentError.ts"
import { type AgentEvent, isTerminal as isEnd } from "../../core/AgentEvent.ts"
import type { AgentResult } from "../../core/AgentResult.ts"
import type { JsonObject } from "../../core/Json.ts"
import type { Message } from "../../core/Message.ts"
import { isModelError } from "../../core/ModelError.ts"
import { type Usage, zero } from "../../core/Usage.ts"

/**
 * Adds usage of a scorer to the trial that it scores, and to the suite. Outside of a suite nobody counts it. A model that
 * can't have prices needs none.
 */
export const Judging = Context.Reference<(usage: Usage, needsPrices: boolean) => void>(
  "effect-deepagents/evals/Judging",
  {
    defaultValue: () => () => {}
  }
)

/** A finished run: its result or its failure, and the facts from its events. */
export interface ObservedRun<O, E> {
  readonly exit: Exit.Exit<AgentResult<O>, E | AgentError>
  readonly calls: ReadonlyArray<{ readonly name: string; readonly arguments: JsonObject; readonly isError: boolean }>
  readonly usage: Usage
  readonly rounds: number
  readonly time: number
}

interface Tally {
  readonly calls: Map<string, { name: string; arguments: JsonObject; isError: boolean }>
  usage: Usage
  rounds: number
}

const tallyEvent = (tally: Tally, event: AgentEvent): void => {
  // Sub-agents count in the usage of the run that asked them.
  if (event.path.length > 1) return
  if (event._tag === "ToolCalled") {
    tally.calls.set(event.callId, { name: event.toolName, arguments: event.arguments, isError: false })
  } else if (event._tag === "ToolFailed") {
    const call = tally.calls.get(event.callId)
    if (call === undefined) tally.calls.set(event.callId, { name: event.toolName, arguments: {}, isError: true })
    else call.isError = true
  } else if (isEnd(event)) {
    tally.usage = event.usage
    tally.rounds = event.rounds
  }
}

/** Runs an agent to its end. */
export const observeRun = Effect.fnUntraced(function* <O, E, R>(
  agent: Agent.Agent<O, E, R>,
  input: Agent.Input,
  history: ReadonlyArray<Message> = []
) {
  const began = yield* Clock.currentTimeMillis
  const tally: Tally = { calls: new Map(), usage: zero, rounds: 0 }
  const exit: Exit.Exit<AgentResult<O>, E | AgentError> = yield* Effect.scoped(
    Effect.gen(function* () {
      const run = yield* Agent.start(agent, input, { history })
      yield* Stream.runForEachArray(run.events, (events) =>
        Effect.sync(() => events.forEach((one) => tallyEvent(tally, one)))
      )
      return yield* run.await
    })
  ).pipe(Effect.exit)
  const time = (yield* Clock.currentTimeMillis) - began
  const observed: ObservedRun<O, E> = {
    exit,
    calls: [...tally.calls.values()],
    usage: tally.usage,
    rounds: tally.rounds,
    time
  }
  return observed
})

/** The failure of a run, as a sentence. */
export const describeFailure = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** True for a failure that every further run would have, until somebody acts. */
export const isTerminal = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  return isModelError(error) && error.isTerminal
}
