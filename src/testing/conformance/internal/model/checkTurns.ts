/** Checks successful turns: texts, tool calls, foreign histories, a whole run. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Agent from "../../../../core/Agent.ts"
import * as Message from "../../../../core/Message.ts"
import { canonical } from "../../../../core/schema/jsonTree.ts"
import * as AgentTest from "../../../AgentTest.ts"
import { assert } from "../assert.ts"
import { calculator, readDone, type Rule, readStreamed, type Scenario, text, runTurn, words } from "./common.ts"

type Calls = Extract<Scenario, { readonly _tag: "ToolCalls" }>["calls"]

/** A foreign history: reasoning of another provider, orphans, open calls, images, empty messages. */
const damagedHistory: ReadonlyArray<Message.Message> = [
  Message.tool("nobody asked", { toolCallId: "gone", toolName: "add" }),
  Message.system("Be brief."),
  Message.human("What is 1 + 2?"),
  Message.ai([{ type: "reasoning", text: "easy", providerData: { elsewhere: { signature: "xyz" } } }], {
    toolCalls: [{ id: "other:1/é", name: "add", arguments: { left: 1, right: 2 } }],
    malformedToolCalls: [{ id: "other:2", name: "add", raw: '{"left": ', problem: "the JSON ends early" }],
    model: "somebody-else"
  }),
  Message.tool("3", { toolCallId: "other:1/é", toolName: "add" }),
  Message.ai("", { stopReason: "interrupted" }),
  Message.human(""),
  Message.human("And this?", { images: [{ base64: "iVBORw0KGgo=", mimeType: "image/png" }] }),
  Message.ai("", { toolCalls: [{ id: "open", name: "note", arguments: { text: "never answered" } }] }),
  Message.human("Go on")
]

const streams = Effect.fnUntraced(function* (pieces: ReadonlyArray<string>) {
  const parts = yield* runTurn()
  const message = yield* readDone(parts)
  const whole = pieces.join("")
  yield* assert(readStreamed(parts) === whole, "the deltas are the text", readStreamed(parts))
  yield* assert(Message.text(message) === whole, "the message has the text", Message.text(message))
  yield* assert(message.stopReason === "stop", "an answer stops with `stop`", message.stopReason)
  yield* assert(
    parts.filter((part) => part._tag === "TurnDone").length === 1,
    "there is one TurnDone",
    parts.map((part) => part._tag)
  )
})

const callsTools = Effect.fnUntraced(function* (calls: Calls) {
  const parts = yield* runTurn()
  const message = yield* readDone(parts)
  const toolCalls = message.toolCalls
  yield* assert(
    canonical(toolCalls.map((call) => [call.name, call.arguments])) ===
      canonical(calls.map((call) => [call.name, call.arguments])),
    "the calls are the model's, in its order",
    toolCalls
  )
  yield* assert(
    new Set(toolCalls.map((call) => call.id)).size === calls.length,
    "every call has an id of its own",
    toolCalls
  )
  yield* assert(message.stopReason === "toolCalls", "a turn of calls stops with `toolCalls`", message.stopReason)
  const started = new Set(parts.flatMap((part) => (part._tag === "ToolCallStart" ? [part.id] : [])))
  yield* assert(
    toolCalls.every((call) => started.has(call.id)),
    "each call is announced by a ToolCallStart",
    [...started]
  )
  const strays = parts.filter((part) => part._tag === "ToolCallDelta" && !started.has(part.id))
  yield* assert(strays.length === 0, "a delta of arguments belongs to a call that started", strays)
})

const runsAgent = Effect.gen(function* () {
  const agent = Agent.make({ name: "conformance", prompt: "You are being tested.", tools: [calculator] })
  const { error, events } = yield* AgentTest.collect(agent, "What is 2 + 3?", { history: damagedHistory })
  yield* assert(error === undefined, "an agent runs on the model", String(error))
  const last = events.at(-1)
  yield* assert(last?._tag === "RunCompleted" && last.stopReason === "completed", "its run is completed", last)
})

const unicode = [
  "é",
  "日本語",
  "\u{1F600}",
  "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}",
  "e\u0301",
  "\u2028",
  '\\u0041"\n'
]

const add = { name: "add", arguments: { left: 2, right: 3 } }
const huge = { name: "note", arguments: { text: 'x"\\é'.repeat(40_000) } }

const calls = (name: string, ...toolCalls: Calls): Rule => [
  name,
  [{ _tag: "ToolCalls", calls: toolCalls }],
  callsTools(toolCalls)
]

/** Checks of successful turns. */
export const turnRules: ReadonlyArray<Rule> = [
  ["streams a text in order, then the whole message", text(words), streams(words)],
  ["keeps unicode whole, however it is cut", text(unicode), streams(unicode)],
  calls("calls one tool", add),
  calls("calls several tools in one turn", add, { name: "note", arguments: { text: unicode.join("") } }, add),
  calls("keeps huge tool arguments", huge),
  [
    "an empty turn is a turn, or a failure, and never a made-up answer",
    [{ _tag: "Empty" }],
    Effect.flatMap(Effect.option(runTurn()), (parts) =>
      Option.isNone(parts)
        ? Effect.void
        : assert(readStreamed(parts.value) === "", "nothing was said", readStreamed(parts.value))
    )
  ],
  [
    "a history worn by another provider, interruptions and vision is accepted",
    text(words),
    Effect.flatMap(runTurn(damagedHistory), (parts) => Effect.asVoid(readDone(parts)))
  ],
  ["runs an agent with a tool", [{ _tag: "ToolCalls", calls: [add] }, ...text(words)], runsAgent]
]
