/**
 * What every chat model must satisfy, as a list of checks to hold a layer of your own against.
 *
 * A subject is a way to make the model answer as a scenario says: by a local server that speaks the provider's wire
 * format, or directly. Each check brings its scenarios and looks at what comes out of the layer.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import type { Layer } from "effect"
 * import type { ChatModel } from "effect-deepagents"
 * import { ChatModelConformance } from "effect-deepagents/testing"
 *
 * declare const layer: (scenarios: ReadonlyArray<ChatModelConformance.Scenario>) => Layer.Layer<ChatModel.ChatModel>
 *
 * for (const check of ChatModelConformance.suite({ layer })) it.live(check.name, () => check.run)
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Agent from "../core/Agent.ts"
import { ChatModel, type ModelRequest, open, type TurnPart } from "../core/ChatModel.ts"
import { canonical, type JsonObject } from "../core/Json.ts"
import * as Message from "../core/Message.ts"
import type { ModelError, Reason } from "../core/ModelError.ts"
import * as Tool from "../core/Tool.ts"
import * as AgentTest from "./AgentTest.ts"

/**
 * How the model answers one request. `Text` is streamed in these pieces, `ToolCalls` in one turn. `LengthInArguments`
 * reaches the output limit in the middle of a call's arguments. `Cut` closes the connection after a text, before the
 * turn is complete; `Hang` keeps it open and says no more. `Status` is an HTTP status in the provider's error format,
 * with a `Retry-After` in seconds; a subject without HTTP fails with the error that it would have made of it.
 */
export type Scenario =
  | { readonly _tag: "Text"; readonly pieces: ReadonlyArray<string> }
  | {
      readonly _tag: "ToolCalls"
      readonly calls: ReadonlyArray<{ readonly name: string; readonly arguments: JsonObject }>
    }
  | { readonly _tag: "LengthInArguments"; readonly name: string; readonly partial: string }
  | { readonly _tag: "Empty" }
  | { readonly _tag: "Cut"; readonly text: string }
  | { readonly _tag: "Hang"; readonly text: string }
  | { readonly _tag: "Status"; readonly status: number; readonly retryAfter?: number | undefined }

/** A model under test. `layer` answers the n-th request by the n-th scenario; it is built anew for each check. */
export interface Subject<out E, out R> {
  readonly layer: (scenarios: ReadonlyArray<Scenario>) => Layer.Layer<ChatModel, E, R>
  /** Says whether the other side has seen the connection close; asked within a second of an interruption. */
  readonly closed?: Effect.Effect<boolean> | undefined
}

/** One check: run it under any test runner. It needs a live clock where the subject does. */
export interface Check<out E, out R> {
  readonly name: string
  readonly run: Effect.Effect<void, E | ModelError | NotConformant, R>
}

/** A rule that the model broke. */
export class NotConformant extends Schema.TaggedError<NotConformant>()("NotConformant", {
  rule: Schema.String,
  found: Schema.String
}) {
  override get message(): string {
    return `${this.rule}; found ${this.found}`
  }
}

const hold = (holds: boolean, rule: string, found: unknown): Effect.Effect<void, NotConformant> =>
  holds
    ? Effect.void
    : Effect.fail(new NotConformant({ rule, found: (JSON.stringify(found) ?? "nothing").slice(0, 400) }))

const calculator = Tool.make("add", {
  description: "Adds two numbers",
  parameters: { left: Schema.Finite, right: Schema.Finite },
  execute: ({ left, right }) => Effect.succeed(String(left + right))
})

const note = Tool.make("note", {
  description: "Keeps a note",
  parameters: { text: Schema.String },
  execute: ({ text }) => Effect.succeed(`${text.length} characters`)
})

const request = (messages: ReadonlyArray<Message.Message>): ModelRequest => ({
  messages,
  systemPrompt: "You are being tested.",
  tools: [calculator, note].map(({ annotations, description, name, parameters }) => ({
    name,
    description,
    parameters,
    annotations
  })),
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: "turn"
})

const hello = [Message.human("Hello")]

/** A history as a long life leaves it: another provider's thoughts, orphans, open calls, images, empty messages. */
const worn: ReadonlyArray<Message.Message> = [
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

type Turn = Effect.Effect<ReadonlyArray<TurnPart>, ModelError, ChatModel | Scope.Scope>

const turn = (messages: ReadonlyArray<Message.Message> = hello): Turn =>
  Effect.gen(function* () {
    const session = yield* open(yield* ChatModel)
    return yield* Stream.runCollect(session.nextTurn(request(messages)))
  })

const doneOf = (parts: ReadonlyArray<TurnPart>): Effect.Effect<Message.AiMessage, NotConformant> => {
  const last = parts.at(-1)
  return last?._tag === "TurnDone"
    ? Effect.succeed(last.message)
    : Effect.fail(new NotConformant({ rule: "a turn ends in TurnDone", found: last?._tag ?? "nothing" }))
}

const said = (parts: ReadonlyArray<TurnPart>): string =>
  parts.flatMap((part) => (part._tag === "TextDelta" ? [part.text] : [])).join("")

const streams = Effect.fnUntraced(function* (pieces: ReadonlyArray<string>) {
  const parts = yield* turn()
  const message = yield* doneOf(parts)
  const whole = pieces.join("")
  yield* hold(said(parts) === whole, "the deltas are the text", said(parts))
  yield* hold(Message.text(message) === whole, "the message has the text", Message.text(message))
  yield* hold(message.stopReason === "stop", "an answer stops with `stop`", message.stopReason)
  yield* hold(
    parts.filter((part) => part._tag === "TurnDone").length === 1,
    "there is one TurnDone",
    parts.map((part) => part._tag)
  )
})

const callsTools = Effect.fnUntraced(function* (calls: Extract<Scenario, { readonly _tag: "ToolCalls" }>["calls"]) {
  const parts = yield* turn()
  const message = yield* doneOf(parts)
  const got = message.toolCalls
  yield* hold(
    canonical(got.map((call) => [call.name, call.arguments])) ===
      canonical(calls.map((call) => [call.name, call.arguments])),
    "the calls are the model's, in its order",
    got
  )
  yield* hold(new Set(got.map((call) => call.id)).size === calls.length, "every call has an id of its own", got)
  yield* hold(message.stopReason === "toolCalls", "a turn of calls stops with `toolCalls`", message.stopReason)
  const started = new Set(parts.flatMap((part) => (part._tag === "ToolCallStart" ? [part.id] : [])))
  yield* hold(
    got.every((call) => started.has(call.id)),
    "each call is announced by a ToolCallStart",
    [...started]
  )
  const strays = parts.filter((part) => part._tag === "ToolCallDelta" && !started.has(part.id))
  yield* hold(strays.length === 0, "a delta of arguments belongs to a call that started", strays)
})

const fails = Effect.fnUntraced(function* (rule: string, accepts: (error: ModelError) => boolean) {
  const error = yield* Effect.flip(turn()).pipe(
    Effect.mapError((parts) => new NotConformant({ rule, found: JSON.stringify(parts).slice(0, 400) }))
  )
  yield* hold(accepts(error), rule, { reason: error.reason._tag, detail: error.detail })
})

const reasons =
  (...tags: ReadonlyArray<Reason["_tag"]>) =>
  (error: ModelError): boolean =>
    tags.includes(error.reason._tag)

const interrupted = Effect.fnUntraced(function* (closed: Effect.Effect<boolean> | undefined) {
  const session = yield* open(yield* ChatModel)
  const seen = yield* Effect.forkScoped(Stream.runHead(session.nextTurn(request(hello))))
  const first = yield* Fiber.join(seen)
  yield* hold(Option.isSome(first), "what came before the silence is streamed at once", "nothing")
  const reading = yield* Effect.forkScoped(
    Stream.runDrain(Stream.unwrap(Effect.succeed(session.nextTurn(request(hello)))))
  )
  yield* Effect.sleep("50 millis")
  yield* Effect.timeoutOrElse(Fiber.interrupt(reading), {
    duration: "1 second",
    orElse: () => Effect.fail(new NotConformant({ rule: "an interruption returns at once", found: "it did not" }))
  })
  if (closed === undefined) return
  let gone = false
  for (let tries = 0; !gone && tries < 20; tries++) {
    yield* Effect.sleep("50 millis")
    gone = yield* closed
  }
  yield* hold(gone, "an interruption closes the connection within a second", "it is still open")
})

const runsAgent = Effect.gen(function* () {
  const agent = Agent.make({ name: "conformance", prompt: "You are being tested.", tools: [calculator] })
  const { error, events } = yield* AgentTest.collect(agent, "What is 2 + 3?", { history: worn })
  yield* hold(error === undefined, "an agent runs on the model", String(error))
  const last = events.at(-1)
  yield* hold(last?._tag === "RunCompleted" && last.stopReason === "completed", "its run is completed", last)
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

/** The checks, to be run one by one. */
export const suite = <E, R>(subject: Subject<E, R>): ReadonlyArray<Check<E, R>> => {
  const check = (
    name: string,
    scenarios: ReadonlyArray<Scenario>,
    run: Effect.Effect<void, ModelError | NotConformant, ChatModel | Scope.Scope>
  ): Check<E, R> => ({ name, run: Effect.provide(Effect.scoped(run), subject.layer(scenarios)) })

  const text = (pieces: ReadonlyArray<string>): ReadonlyArray<Scenario> => [{ _tag: "Text", pieces }]
  const calls = (...made: Extract<Scenario, { readonly _tag: "ToolCalls" }>["calls"]): ReadonlyArray<Scenario> => [
    { _tag: "ToolCalls", calls: made }
  ]
  const add = { name: "add", arguments: { left: 2, right: 3 } }
  const parallel = [add, { name: "note", arguments: { text: unicode.join("") } }, add]
  const huge = { name: "note", arguments: { text: 'x"\\é'.repeat(40_000) } }
  const words = ["Once", " upon", " a", " time"]

  return [
    check("streams a text in order, then the whole message", text(words), streams(words)),
    check("keeps unicode whole, however it is cut", text(unicode), streams(unicode)),
    check("calls one tool", calls(add), callsTools([add])),
    check("calls several tools in one turn", calls(...parallel), callsTools(parallel)),
    check("keeps huge tool arguments", calls(huge), callsTools([huge])),
    check(
      "an empty turn is a turn, or a failure, and never a made-up answer",
      [{ _tag: "Empty" }],
      Effect.flatMap(Effect.option(turn()), (parts) =>
        Option.isNone(parts) ? Effect.void : hold(said(parts.value) === "", "nothing was said", said(parts.value))
      )
    ),
    check(
      "arguments cut by the output limit are malformed, not executable",
      [{ _tag: "LengthInArguments", name: "note", partial: '{"text": "half a no' }],
      Effect.flatMap(Effect.flatMap(turn(), doneOf), (message) =>
        hold(
          message.toolCalls.length === 0 && message.stopReason === "length",
          "a cut call is not in toolCalls, and the stop reason is `length`",
          message
        )
      )
    ),
    check(
      "a connection that is cut is a failure that may be retried",
      [{ _tag: "Cut", text: "I was going to say" }],
      fails("a cut stream fails with BadResponse or Transport", reasons("BadResponse", "Transport"))
    ),
    check(
      "429 is RateLimited, with the wait that was asked for",
      [{ _tag: "Status", status: 429, retryAfter: 7 }],
      fails(
        "429 is RateLimited with retryAfter of 7 s",
        (error) => reasons("RateLimited")(error) && Duration.toMillis(error.retryAfter ?? Duration.zero) === 7000
      )
    ),
    check("401 is Authentication", [{ _tag: "Status", status: 401 }], fails("401", reasons("Authentication"))),
    check("403 is Permission", [{ _tag: "Status", status: 403 }], fails("403", reasons("Permission"))),
    check("400 is InvalidRequest", [{ _tag: "Status", status: 400 }], fails("400", reasons("InvalidRequest"))),
    ...[500, 503, 529].map((status) =>
      check(
        `${status} may be retried`,
        [{ _tag: "Status", status }],
        fails(`${status} is retryable`, (error) => error.isRetryable)
      )
    ),
    check(
      "an interruption ends the request",
      [
        { _tag: "Hang", text: "Well" },
        { _tag: "Hang", text: "Well" }
      ],
      interrupted(subject.closed)
    ),
    check(
      "a history worn by another provider, interruptions and vision is accepted",
      text(words),
      Effect.flatMap(turn(worn), (parts) => Effect.asVoid(doneOf(parts)))
    ),
    check("runs an agent with a tool", [...calls(add), ...text(words)], runsAgent)
  ]
}
