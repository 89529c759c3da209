/** One recorded answer, decoded by the layer of its API and sent back. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as ChatModel from "../../src/core/ChatModel.ts"
import type { JsonObject } from "../../src/core/Json.ts"
import * as Message from "../../src/core/Message.ts"
import { isModelError } from "../../src/core/ModelError.ts"
import * as AnthropicChatModel from "../../src/models/AnthropicChatModel.ts"
import * as GeminiChatModel from "../../src/models/GeminiChatModel.ts"
import * as OpenAiChatModel from "../../src/models/OpenAiChatModel.ts"
import * as OpenAiCompatibleChatModel from "../../src/models/OpenAiCompatibleChatModel.ts"
import type { Api, Fixture } from "./fixtures.ts"
import { type Check, requestProblem, strangeIn } from "./openapi.ts"
import { argsOf, type Said, saidIn } from "./oracle.ts"
import { problemsIn } from "./requests.ts"

/** The end of a replay. A failure that the recording tells is right; `problems` are what is wrong. */
export interface Outcome {
  readonly fixture: Fixture
  readonly kind: "decoded" | "failure" | "unsupported"
  readonly isSent: boolean
  readonly why: string
  readonly problems: ReadonlyArray<string>
  /** What the answer has that OpenAI's document does not. */
  readonly strange?: string | undefined
}

const apiKey = Redacted.make("key-of-a-replay")

/** The server tools whose calls wait for the client, by the agent's tool that answers them. */
const serverTools: { readonly [tool: string]: JsonObject } = {
  shell: { type: "shell", environment: { type: "local" } },
  local_shell: { type: "local_shell" },
  apply_patch: { type: "apply_patch" },
  computer: { type: "computer" },
  tool_search: { type: "tool_search", execution: "client" }
}

const layers: Readonly<
  Record<Api, (model: string, fetch: typeof globalThis.fetch, said: Said) => Layer.Layer<ChatModel.ChatModel, unknown>>
> = {
  responses: (model, fetch, { calls }) =>
    OpenAiChatModel.layer({
      model,
      apiKey,
      fetch,
      serverTools: calls.map(({ name }) => serverTools[name]).filter((tool) => tool !== undefined)
    }),
  chat: (model, fetch) => OpenAiCompatibleChatModel.layer({ model, baseURL: "http://replay/v1", fetch }),
  anthropic: (model, fetch) => AnthropicChatModel.layer({ model, apiKey, fetch }),
  gemini: (model, fetch) => GeminiChatModel.layer({ model, apiKey, fetch })
}

// Recordings are looked into as they are.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

const modelIn = (events: ReadonlyArray<Any>): string => {
  const names = events.map(
    (event) => event.model ?? event.response?.model ?? event.message?.model ?? event.modelVersion
  )
  return names.find((name) => typeof name === "string" && name !== "") ?? "a-model"
}

const wireOf = ({ events, isStream }: Fixture): Response => {
  if (!isStream) return Response.json(events[0])
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")
  return new Response(text, { headers: { "content-type": "text/event-stream" } })
}

const toolsOf = ({ calls }: Said): ReadonlyArray<ChatModel.ToolDefinition> =>
  Array.from(new Set(calls.map(({ name }) => name)), (name) => ({
    name,
    description: "Does it.",
    parameters: { type: "object", properties: {} },
    annotations: {}
  }))

const requestOf = (
  messages: ReadonlyArray<Message.Message>,
  tools: ReadonlyArray<ChatModel.ToolDefinition>
): ChatModel.ModelRequest => ({
  messages,
  systemPrompt: "",
  tools,
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: ChatModel.turnPurpose
})

const answered = (message: Message.AiMessage): ReadonlyArray<Message.Message> => [
  Message.human("Hello?"),
  message,
  ...[...message.toolCalls, ...message.malformedToolCalls].map(({ id, name = "unknown" }) =>
    Message.tool("Done.", { toolCallId: id, toolName: name })
  ),
  // A person speaks when nothing waits.
  ...(message.toolCalls.length + message.malformedToolCalls.length === 0 ? [Message.human("And now?")] : [])
]

const differences = (said: Said, message: Message.AiMessage): ReadonlyArray<string> => {
  const problems: Array<string> = []
  // Servers write thoughts in tags at the beginning of a text.
  const plain = said.text.replace(/^\s*<(think|thought)>[\s\S]*?<\/\1>/, "")
  // Parts of a text are set apart.
  const squeezed = (value: string) => value.replace(/\s+/g, "")
  const isSame = [plain, said.final ?? plain].some((text) => squeezed(Message.text(message)) === squeezed(text))
  if (!isSame) {
    problems.push(
      `the text is ${JSON.stringify(Message.text(message).slice(0, 200))}, not ${JSON.stringify(plain.slice(0, 200))}`
    )
  }
  const calls = [
    ...message.toolCalls.map(({ arguments: args, name }) => ({ name, args: argsOf(args) })),
    ...message.malformedToolCalls.map(({ name = "", raw }) => ({ name, args: argsOf(raw) }))
  ]
  const vague = new Set(said.calls.flatMap(({ args, name }) => (args === "?" ? [name] : [])))
  const written = (all: Said["calls"]) =>
    JSON.stringify(all.map(({ args, name }) => `${name} ${vague.has(name) ? "?" : args}`).sort())
  if (written(calls) !== written(said.calls))
    problems.push(`the calls are ${written(calls)}, not ${written(said.calls)}`)
  const output = message.usage?.outputTokens
  if (said.output !== undefined && output !== undefined && output < said.output) {
    problems.push(`${output} tokens of output, not ${said.output}`)
  }
  return problems
}

/** Groq's failure to read a call holds the call, which the model is asked to repeat. */
const isFailedCall = ({ events }: Fixture): boolean => JSON.stringify(events).includes("failed_generation")

/** Holds the answer and the requests to OpenAI's document. */
const documentProblems = (check: Check, fixture: Fixture, sent: ReadonlyArray<Any>) => ({
  strange: strangeIn(check, fixture),
  problems: sent
    .flatMap((body) => requestProblem(check, fixture, body) ?? [])
    .map((problem) => `a request is not of OpenAI's document: ${problem}`)
})

/** Replays an answer, and holds it and the requests to OpenAI's document, if there is one. */
export const replayWith =
  (check: Check | undefined) =>
  (fixture: Fixture): Effect.Effect<Outcome> =>
    Effect.gen(function* () {
      const said = saidIn(fixture)
      const tools = toolsOf(said)
      const sent: Array<Any> = []
      const fetch: typeof globalThis.fetch = async (_, init) => {
        sent.push(JSON.parse(typeof init?.body === "string" ? init.body : "{}"))
        return wireOf(fixture)
      }
      const turns = Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        const first = yield* Stream.runCollect(session.nextTurn(requestOf([Message.human("Hello?")], tools)))
        const last = first.at(-1)
        const message = last?._tag === "TurnDone" ? last.message : Message.ai("")
        const streamed = first.flatMap((part) => (part._tag === "TextDelta" ? [part.text] : [])).join("")
        yield* Effect.exit(Stream.runDrain(session.nextTurn(requestOf(answered(message), tools))))
        return { message, streamed }
      }).pipe(Effect.scoped, Effect.provide(layers[fixture.api](modelIn(fixture.events), fetch, said)))
      const exit = yield* Effect.exit(turns)
      const held = check === undefined ? { strange: undefined, problems: [] } : documentProblems(check, fixture, sent)
      const { strange } = held
      if (Exit.isSuccess(exit)) {
        const { message } = exit.value
        const second = sent[1]
        const problems = [
          ...held.problems,
          ...(isFailedCall(fixture)
            ? []
            : said.ends
              ? differences(said, message)
              : ["a recording without an end was taken for an answer"]),
          ...(second === undefined ? ["no second request was sent"] : problemsIn(fixture, message, second))
        ]
        return { fixture, kind: "decoded", isSent: second !== undefined, why: "", problems, strange } satisfies Outcome
      }
      const error = Cause.squash(exit.cause)
      const why = error instanceof Error ? error.message : String(error)
      const isUnsupported = isModelError(error) && error.reason._tag === "Unsupported"
      const isTyped = isModelError(error)
      const refused = !isTyped
        ? [`a defect: ${why}`]
        : said.ends && !isUnsupported
          ? [`an answer was refused: ${why}`]
          : []
      const problems = [...held.problems, ...refused]
      const kind = isUnsupported ? "unsupported" : "failure"
      return { fixture, kind, isSent: false, why, problems, strange } satisfies Outcome
    })

/** Replays an answer. */
export const replay = replayWith(undefined)
