/**
 * Runs agents in tests: whole scenarios, all events of a run, and the validity of a conversation.
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
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import { type AgentEvent, transcript } from "../core/AgentEvent.ts"
import type { AgentResult } from "../core/AgentResult.ts"
import type { ChatModel, ModelRequest } from "../core/ChatModel.ts"
import type { JsonObject } from "../core/Json.ts"
import { callIds, type Message, text as textOf } from "../core/Message.ts"
import { difference, differences, type Expectation } from "./internal/differences.ts"
import type { Turn } from "./internal/turn.ts"
import { requests, script, type TestModel } from "./TestChatModel.ts"

/** Runs an agent to its end. */
const runToEnd = <O, E, R>(agent: Agent.Agent<O, E, R>, input: Agent.Input, options?: Agent.RunOptions) =>
  Effect.scoped(
    Effect.gen(function* () {
      const events: Array<AgentEvent> = []
      const run = yield* Agent.start(agent, input, options)
      yield* Stream.runForEachArray(run.events, (arrived) => Effect.sync(() => void events.push(...arrived)))
      const exit = yield* Effect.exit(run.await)
      return { events, exit }
    })
  )

/**
 * Runs an agent to its end, and returns all of its events and its error, if any. A defect is not an `error`: the last
 * event, `RunFailed`, describes it.
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
      Stream.runForEachArray((arrived) => Effect.sync(() => void events.push(...arrived))),
      Effect.exit,
      Effect.map((exit) => ({ events, error: Option.getOrUndefined(Exit.findErrorOption(exit)) }))
    )
  })

/** Returns only the events of {@link collect}. It never fails: the last event reports the outcome of the run. */
export const events = <O, E, R>(
  agent: Agent.Agent<O, E, R>,
  input: Agent.Input,
  options?: Agent.RunOptions
): Effect.Effect<ReadonlyArray<AgentEvent>, never, R> =>
  Effect.map(collect(agent, input, options), (collected) => collected.events)

/**
 * Lists the problems in the pairing of tool calls and tool messages, one line each. Each call needs one answer with its
 * id, in call order, before the next message.
 */
export const pairingProblems = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let open: Array<string> = []
  const closeCalls = (before: string) => {
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
    closeCalls(here)
    if (message.role === "ai") open = [...callIds(message)]
  }
  closeCalls("the end")
  return problems
}

/** A text, a pattern, or a predicate. */
type Text = string | RegExp | ((actual: string) => boolean)

type ExpectedEvent<Event extends AgentEvent> = Event extends AgentEvent
  ? { readonly _tag: Event["_tag"] } & { readonly [Key in Exclude<keyof Event, "_tag">]?: Expectation<Event[Key]> }
  : never

/** A run to check: its input, the turns of its model, and the expected outcome. */
export interface Scenario<O, E, R> {
  /** The agent that runs. */
  readonly agent: Agent.Agent<O, E, R>
  /** The turns of the model, as of `TestChatModel.script`, or a model of `TestChatModel`. */
  readonly model: ReadonlyArray<Turn> | Layer.Layer<ChatModel | TestModel>
  /** The input of the run. */
  readonly input: Agent.Input
  /** Options of the run: `history`, `state`, `threadId`. Default: none. */
  readonly options?: Agent.RunOptions | undefined
  /** Moves the `TestClock` by this time while the run waits. Default: none. */
  readonly adjust?: Duration.Input | undefined
  /** Only the fields that are present are checked. Further fields are those of `AgentResult`. */
  readonly expect: Omit<{ readonly [Key in keyof AgentResult<O>]?: Expectation<AgentResult<O>[Key]> }, "messages"> & {
    /** Role and text of every message of the run. */
    readonly messages?: ReadonlyArray<readonly [role: Message["role"], text: Text]> | undefined
    /** Every tool call of the model in order: its name, or its name with arguments and result. */
    readonly calls?:
      | ReadonlyArray<
          | string
          | {
              readonly name: string
              readonly arguments?: Expectation<JsonObject> | undefined
              readonly result?: Text | undefined
              readonly isError?: boolean | undefined
            }
        >
      | undefined
    /** Events in order. The list must contain every event of its tags. */
    readonly events?: ReadonlyArray<AgentEvent["_tag"] | ExpectedEvent<AgentEvent>> | undefined
    /** Tags of events that must not occur. */
    readonly absent?: ReadonlyArray<AgentEvent["_tag"]> | undefined
    /** The tag or fields of the error that the run must fail with. Without it the run must succeed. */
    readonly failure?: string | Expectation<E | AgentError> | undefined
  }
}

const callsOf = (messages: ReadonlyArray<Message>) =>
  messages.flatMap((message) => {
    if (message.role !== "ai") return []
    return message.toolCalls.map(({ arguments: args, id, name }) => {
      const answer = messages.find((other) => other.role === "tool" && other.toolCallId === id)
      return {
        name,
        arguments: args,
        result: answer === undefined ? undefined : textOf(answer),
        isError: answer?.role === "tool" && answer.isError
      }
    })
  })

const eventDifferences = (
  expected: ReadonlyArray<AgentEvent["_tag"] | ExpectedEvent<AgentEvent>>,
  actual: ReadonlyArray<AgentEvent>
): ReadonlyArray<string> => {
  const wanted = expected.map((one) => (typeof one === "string" ? { _tag: one } : one))
  const tags = new Set(wanted.map(({ _tag }) => _tag))
  return differences(
    "events",
    wanted,
    actual.filter(({ _tag }) => tags.has(_tag))
  )
}

/**
 * Runs an agent against a scripted model and checks the run. A run that differs from `expect` is a defect whose message
 * lists the path, the expected and the actual value of each difference. The result contains the events, requests and
 * outcome for further assertions. An unexpected failure of the run is the failure of this effect.
 */
export const scenario = <O, E, R>(
  options: Scenario<O, E, R>
): Effect.Effect<
  {
    readonly events: ReadonlyArray<AgentEvent>
    readonly requests: ReadonlyArray<ModelRequest>
    readonly result: AgentResult<O> | undefined
    readonly error: E | AgentError | undefined
  },
  E | AgentError,
  Exclude<R, ChatModel | TestModel>
> => {
  const { absent, calls, events: expectedEvents, failure, messages, ...fields } = options.expect
  const { adjust, agent, input, model } = options
  const check = Effect.gen(function* () {
    const running = yield* Effect.forkChild(runToEnd(agent, input, options.options), { startImmediately: true })
    if (adjust !== undefined) yield* TestClock.adjust(adjust)
    const { events, exit } = yield* Fiber.join(running)
    const error = Option.getOrUndefined(Exit.findErrorOption(exit))
    const isUnexpected = failure === undefined || error === undefined
    if (Exit.isFailure(exit) && isUnexpected) return yield* Effect.failCause(exit.cause)
    const result = Exit.isSuccess(exit) ? exit.value : undefined
    const transcriptMessages = transcript(events)
    const problems = [
      ...differences("failure", typeof failure === "string" ? { _tag: failure } : failure, error),
      ...Object.entries(fields).flatMap(([key, expected]) =>
        differences(key, expected, Predicate.hasProperty(result, key) ? result[key] : undefined)
      ),
      ...differences(
        "messages",
        messages,
        transcriptMessages.map((message) => [message.role, textOf(message)])
      ),
      ...differences(
        "calls",
        calls?.map((call) => (typeof call === "string" ? { name: call } : call)),
        callsOf(transcriptMessages)
      ),
      ...eventDifferences(expectedEvents ?? [], events),
      ...(absent ?? []).flatMap((tag) => {
        const event = events.find(({ _tag }) => _tag === tag)
        return event === undefined ? [] : [difference("absent", `no ${tag}`, event)]
      })
    ]
    if (problems.length > 0) return yield* Effect.die(new Error(`the scenario differs:\n${problems.join("\n")}`))
    return { events, requests: yield* requests, result, error }
  })
  return Effect.provide(check, "length" in model ? script(model) : model)
}
