import { Effect, Exit, Fiber, Stream } from "effect"
import { Agent, AgentEvent, type Middleware } from "effect-deepagents"

/** The message of the tests of this folder to an agent. */
export const prompt = "hello"

/** An agent with nothing but this middleware. */
export const agentWith = <const Stack extends ReadonlyArray<Middleware.Middleware<unknown, unknown>>>(
  ...stack: Stack
) => Agent.make({ name: "agent", prompt: "You are tested.", middleware: stack })

/** Runs an agent with its events kept, however it ends. */
export const watch = <E, R>(agent: Agent.Agent<string, E, R>) =>
  Effect.gen(function* () {
    const events: Array<AgentEvent.AgentEvent> = []
    const exit = yield* Effect.exit(
      Stream.runForEach(Agent.stream(agent, prompt), (event) => Effect.sync(() => void events.push(event)))
    )
    return { events, exit }
  })

/** The events about a turn's text, restarts and warnings, one word each. */
export const story = (events: ReadonlyArray<AgentEvent.AgentEvent>): ReadonlyArray<string> =>
  events.flatMap((event) => {
    if (event._tag === "TextDelta") return [event.text]
    if (event._tag === "TurnRestarted") return ["<restarted>"]
    if (event._tag === "Warning") return [`<${event.code}>`]
    return AgentEvent.isTerminal(event) ? [`<${event._tag}>`] : []
  })

/** The failure of an exit, if it failed with one. */
export const failureOf = <A, E>(exit: Exit.Exit<A, E>): E | undefined => {
  const found = Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => reason._tag === "Fail") : undefined
  return found?._tag === "Fail" ? found.error : undefined
}

/** Starts in the background, so that the test can turn the clock. */
export const inBackground = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.forkChild(effect, { startImmediately: true }), (fiber) => ({
    fiber,
    isDone: Effect.sync(() => fiber.pollUnsafe() !== undefined),
    result: Fiber.join(fiber)
  }))
