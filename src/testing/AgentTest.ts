/**
 * Views of a run for tests: all its events, and whether a provider would accept its conversation.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { AgentTest, TestChatModel } from "effect-deepagents/testing"
 *
 * const greeter = Agent.make({ name: "greeter", prompt: "Greet whoever writes." })
 *
 * const test = AgentTest.events(greeter, "I am Ada").pipe(
 *   Effect.map((events) => events.at(-1)?._tag === "RunFailed"),
 *   Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Authentication" })]))
 * )
 * ```
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import type { AgentEvent } from "../core/AgentEvent.ts"
import { callIds, type Message } from "../core/Message.ts"

/**
 * Runs an agent to its end and gives all of its events, and the error that it failed with if it did. A defect is not an
 * `error`: the last event, `RunFailed`, tells of it.
 */
export const collect = <O, E, R>(
  agent: Agent.Agent<O, E, R>,
  input: Agent.Input,
  options?: Agent.RunOptions
): Effect.Effect<
  { readonly events: ReadonlyArray<AgentEvent>; readonly error: E | AgentError | undefined },
  never,
  R
> =>
  Effect.suspend(() => {
    const events: Array<AgentEvent> = []
    return Agent.stream(agent, input, options).pipe(
      Stream.runForEachArray((arrived) =>
        Effect.sync(() => {
          events.push(...arrived)
        })
      ),
      Effect.exit,
      Effect.map((exit) => ({ events, error: Option.getOrUndefined(Exit.findErrorOption(exit)) }))
    )
  })

/** The events of {@link collect} alone. It does not fail: the last event says how the run ended. */
export const events = <O, E, R>(
  agent: Agent.Agent<O, E, R>,
  input: Agent.Input,
  options?: Agent.RunOptions
): Effect.Effect<ReadonlyArray<AgentEvent>, never, R> =>
  Effect.map(collect(agent, input, options), (collected) => collected.events)

/**
 * Lists what is wrong with the pairing of tool calls and tool messages, one line a problem: none, when each call is
 * answered once, by its id, in call order, before anything else is said.
 */
export const pairingProblems = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let open: Array<string> = []
  const settle = (before: string) => {
    for (const id of open) problems.push(`call ${id} is not answered before ${before}`)
    open = []
  }
  for (const [index, message] of messages.entries()) {
    const here = `message ${index} (${message.role})`
    if (message.role === "tool") {
      const id = message.toolCallId
      if (id === open[0]) open.shift()
      else if (open.includes(id)) {
        problems.push(`${here} answers call ${id} before call ${open[0]}`)
        open = open.filter((other) => other !== id)
      } else problems.push(`${here} answers call ${id}, which is not open`)
      continue
    }
    settle(here)
    if (message.role === "ai") open = [...callIds(message)]
  }
  settle("the end")
  return problems
}
