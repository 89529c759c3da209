import { Effect, Schema } from "effect"
import { Agent, type AgentEvent, AgentState, type ChatModel, Message, type Middleware, Tool } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"

/** A text of about so many characters that names its source. */
export const filler = (about: string, length: number): string =>
  `${about}: ${"lorem ipsum dolor sit amet ".repeat(Math.ceil(length / 27))}`.slice(0, length)

/** Reads so many characters of a file. */
export const reads = (length: number) =>
  Tool.make("read_file", {
    description: "Reads a file",
    parameters: { path: Schema.String },
    annotations: { readOnly: true },
    execute: ({ path }) => Effect.succeed(filler(`contents of ${path}`, length))
  })

/** Says that it wrote; fails for files under `/locked`. */
export const writeFile = Tool.make("write_file", {
  description: "Writes a file",
  parameters: { path: Schema.String, content: Schema.String },
  execute: ({ path }) => (path.startsWith("/locked") ? Effect.fail("it is locked") : Effect.succeed("written"))
})

export const readCall = (n: number) => TestChatModel.calls([{ name: "read_file", arguments: { path: `/file-${n}` } }])

export const writeCall = (n: number, content: string, path = `/file-${n}`) =>
  TestChatModel.calls([{ name: "write_file", arguments: { path, content } }])

export const isSummary = (request: ChatModel.ModelRequest): boolean => request.purpose === "summary"

/** A model that plays these turns, and answers requests for summaries by `summary`. */
export const model = (
  turn: (n: number) => TestChatModel.Turn,
  options: TestChatModel.Options & {
    readonly summary?: (n: number, request: ChatModel.ModelRequest) => TestChatModel.Turn
  } = {}
) => {
  let turns = 0
  let summaries = 0
  const { summary = (n) => `Summary ${n}.`, ...rest } = options
  return TestChatModel.reactive((request) => (isSummary(request) ? summary(++summaries, request) : turn(++turns)), rest)
}

/** Reads so many files, one a round, and is done. */
export const reader = (rounds: number) => (n: number) => (n <= rounds ? readCall(n) : "done")

export const agentWith = <E, R>(
  middleware: Middleware.Middleware<E, R>,
  tools: ReadonlyArray<Tool.Tool> = [reads(700), writeFile]
) => Agent.make({ name: "agent", prompt: "You are tested.", tools, middleware: [middleware], maxRounds: 500 })

/** The model's requests in the conversation, and for summaries. */
export const asked = Effect.map(TestChatModel.requests, (requests) => ({
  turns: requests.filter((request) => request.purpose === "turn"),
  summaries: requests.filter(isSummary)
}))

/** The message about the folded messages. */
export const summaryIn = (request: ChatModel.ModelRequest | undefined): Message.Message | undefined =>
  request?.messages.find((message) => message.source === "summarization")

export const textOf = (message: Message.Message | undefined): string =>
  message === undefined ? "" : Message.text(message)

/** All that a request shows of its messages. */
export const showRequest = (request: ChatModel.ModelRequest | undefined): string =>
  JSON.stringify(request?.messages ?? [])

export const eventsOf = <Tag extends AgentEvent.AgentEvent["_tag"]>(
  events: ReadonlyArray<AgentEvent.AgentEvent>,
  tag: Tag
) => events.filter((event): event is AgentEvent.Of<Tag> => event._tag === tag)

export const codes = (events: ReadonlyArray<AgentEvent.AgentEvent>): ReadonlyArray<string> =>
  eventsOf(events, "Warning").map((event) => event.code)

/** The context window of the model in most tests, in tokens. */
export const window = 4_000

/** The size of a request by the default counter, give or take the frame of messages. */
export const tokensOf = (messages: ReadonlyArray<Message.Message>): number =>
  messages.reduce((sum, message) => sum + Summarization.defaultCounter.text(JSON.stringify(message.content)), 0)

export const recordOf = (state: AgentState.Snapshot) => Effect.fromResult(AgentState.read(state, Summarization.record))
