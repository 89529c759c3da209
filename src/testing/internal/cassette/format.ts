/** The file format of cassettes: JSON lines for the model, turns, and values. A value is stored once, by its hash. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Json, JsonObject } from "../../../core/Json.ts"
import { AiMessage } from "../../../core/Message.ts"

const ModelLine = Schema.Struct({
  type: Schema.Literal("model"),
  v: Schema.Literal(1),
  provider: Schema.String,
  modelId: Schema.String,
  supportsVision: Schema.Boolean,
  contextWindowTokens: Schema.optionalKey(Schema.Finite),
  structuredOutput: Schema.optionalKey(Schema.Literals(["native", "tool"])),
  prices: Schema.optionalKey(
    Schema.Struct({
      input: Schema.Finite,
      output: Schema.Finite,
      cacheRead: Schema.optional(Schema.Finite),
      cacheWrite: Schema.optional(Schema.Finite)
    })
  )
})
export type ModelLine = typeof ModelLine.Type

const ValueLine = Schema.Struct({ type: Schema.Literal("value"), hash: Schema.String, value: Json })

const Address = Schema.Struct({
  scope: Schema.optionalKey(Schema.String),
  systemPrompt: Schema.String,
  tools: Schema.Array(Schema.String),
  toolChoice: Schema.Union([
    Schema.Literals(["auto", "none", "required"]),
    Schema.Struct({ tool: Schema.String }),
    Schema.Struct({
      oneOf: Schema.Array(Schema.String),
      mode: Schema.optionalKey(Schema.Literals(["auto", "required"]))
    })
  ]),
  outputSchema: Schema.NullOr(Schema.String),
  parameters: Schema.String,
  messages: Schema.Array(Schema.String)
})
/** The parts of a request, by hash. */
export type Address = typeof Address.Type

const Part = Schema.Union([
  Schema.TaggedStruct("TextDelta", { text: Schema.String }),
  Schema.TaggedStruct("ReasoningDelta", { text: Schema.String }),
  Schema.TaggedStruct("ToolCallStart", {
    id: Schema.String,
    name: Schema.String,
    providerExecuted: Schema.optionalKey(Schema.Boolean)
  }),
  Schema.TaggedStruct("ToolCallDelta", { id: Schema.String, delta: Schema.String }),
  Schema.TaggedStruct("TurnRestarted", { reason: Schema.String }),
  Schema.TaggedStruct("TurnAccepted", { resume: JsonObject }),
  Schema.TaggedStruct("Warning", { code: Schema.String, message: Schema.String }),
  Schema.TaggedStruct("TurnDone", { message: AiMessage })
])

const TurnLine = Schema.Struct({
  type: Schema.Literal("turn"),
  key: Schema.String,
  request: Address,
  parts: Schema.Array(Part)
})
export type TurnLine = typeof TurnLine.Type

const Line = Schema.Union([ModelLine, ValueLine, TurnLine])
export type Line = typeof Line.Type

/** The contents of a cassette. */
export interface CassetteContents {
  readonly model: ModelLine
  readonly values: ReadonlyMap<string, Json>
  readonly turns: ReadonlyArray<TurnLine>
}

const decodeLine = Schema.decodeUnknownEffect(Schema.fromJsonString(Line))

/** Renders lines, each with its end. */
export const render = (lines: ReadonlyArray<Line>): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("")

/** Finds the end of the last complete line. An interrupted append may leave a partial line. */
export const wholeLength = (text: string): number => text.lastIndexOf("\n") + 1

/** Parses a cassette. The failure names the invalid line. */
export const parse = (text: string): Effect.Effect<CassetteContents, string> =>
  Effect.gen(function* () {
    const values = new Map<string, Json>()
    const turns: Array<TurnLine> = []
    let model: ModelLine | undefined
    const lines = text.slice(0, wholeLength(text)).split("\n")
    for (const [index, raw] of lines.entries()) {
      if (raw.trim() === "") continue
      const line = yield* Effect.mapError(
        decodeLine(raw),
        (error) => `line ${index + 1} is not one of a cassette: ${error.message}`
      )
      if (line.type === "model") model = line
      else if (line.type === "value") values.set(line.hash, line.value)
      else turns.push(line)
    }
    return model === undefined
      ? yield* Effect.fail("it has no line that describes the model")
      : { model, values, turns }
  })
