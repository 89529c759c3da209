/** Helpers for checks of chat models. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ChatModel, type ModelRequest, open, type TurnPart } from "../../../../core/ChatModel.ts"
import type { JsonObject } from "../../../../core/Json.ts"
import * as Message from "../../../../core/Message.ts"
import type { ModelError } from "../../../../core/ModelError.ts"
import * as Tool from "../../../../core/Tool.ts"
import { failCheck, type NotConformant } from "../assert.ts"

/**
 * The answer to one request. `Text` streams its pieces, `ToolCalls` come in one turn. `LengthInArguments` reaches the
 * output limit inside of the arguments of a call. `Cut` closes the connection after a text; `Hang` keeps it open. `Status`
 * is an HTTP status in the error format of the provider, with `Retry-After` in seconds; a subject without HTTP fails with
 * the equivalent error.
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

/** A check with its scenarios. */
export type Rule = readonly [
  name: string,
  scenarios: ReadonlyArray<Scenario>,
  body: Effect.Effect<void, ModelError | NotConformant, ChatModel | Scope.Scope>
]

export const calculator = Tool.make("add", {
  description: "Adds two numbers",
  parameters: { left: Schema.Finite, right: Schema.Finite },
  execute: ({ left, right }) => Effect.succeed(String(left + right))
})

const note = Tool.make("note", {
  description: "Keeps a note",
  parameters: { text: Schema.String },
  execute: ({ text }) => Effect.succeed(`${text.length} characters`)
})

export const makeRequest = (messages: ReadonlyArray<Message.Message>): ModelRequest => ({
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

export const hello = [Message.human("Hello")]

/** Runs one turn, and returns its parts. */
export const runTurn = (
  messages: ReadonlyArray<Message.Message> = hello
): Effect.Effect<ReadonlyArray<TurnPart>, ModelError, ChatModel | Scope.Scope> =>
  Effect.gen(function* () {
    const session = yield* open(yield* ChatModel)
    return yield* Stream.runCollect(session.nextTurn(makeRequest(messages)))
  })

/** Returns the final message of a turn. */
export const readDone = (parts: ReadonlyArray<TurnPart>): Effect.Effect<Message.AiMessage, NotConformant> => {
  const last = parts.at(-1)
  return last?._tag === "TurnDone"
    ? Effect.succeed(last.message)
    : failCheck("a turn ends in TurnDone", last?._tag ?? "nothing")
}

/** Returns the streamed text of a turn. */
export const readStreamed = (parts: ReadonlyArray<TurnPart>): string =>
  parts.flatMap((part) => (part._tag === "TextDelta" ? [part.text] : [])).join("")

export const text = (pieces: ReadonlyArray<string>): ReadonlyArray<Scenario> => [{ _tag: "Text", pieces }]

export const words = ["Once", " upon", " a", " time"]
