/** Answers in a schema: the JSON Schema for the model, and the reader of its answer. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isObject, type Json, type JsonObject } from "../Json.ts"
import * as Message from "../Message.ts"
import { json as findJson } from "../Parse.ts"
import { finalAnswer } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import { lenient } from "./arguments.ts"
import { type DecodedValue, type Decoding, toEffect } from "./decoding.ts"
import { withFiniteNumbers } from "./finiteNumbers.ts"
import { jsonSchemaOf } from "./jsonSchema.ts"
import * as standard from "./standard.ts"
import type { StandardSchema } from "./standard.ts"
import { parseText } from "./textCodec.ts"

/**
 * A schema of answers, as the loop uses it: the JSON Schema of an object, a decoder, and the reason that it can't be used.
 */
export interface Output {
  readonly jsonSchema: JsonObject
  readonly problem: string | undefined
  readonly decode: (json: Json) => Effect.Effect<unknown, string>
}

const parsed = (text: string) => parseText(text, "the answer")

/** Decodes an answer: the whole text as JSON, or else the JSON that stands in it, if that fits. */
export const decodeText = (output: Output, text: string): Effect.Effect<unknown, string> => {
  const whole = parsed(text)
  if (Result.isSuccess(whole)) return output.decode(whole.success)
  const jsonPart = findJson(text)
  return Result.isFailure(jsonPart)
    ? Effect.fail(whole.failure)
    : Effect.mapError(output.decode(jsonPart.success.value), () => whole.failure)
}

/** Providers want an object as the root: other schemas are wrapped under this key. */
const wrapKey = "value"

const outputOf = (root: JsonObject, decode: (json: Json) => Decoding<DecodedValue<unknown>, string>): Output => {
  const wrapped = root["type"] !== "object"
  const { $defs, ...plain } = root
  return {
    problem: undefined,
    jsonSchema: wrapped
      ? {
          type: "object",
          properties: { [wrapKey]: plain },
          required: [wrapKey],
          additionalProperties: false,
          ...($defs === undefined ? {} : { $defs })
        }
      : root,
    decode: (json) => {
      const value = wrapped && isObject(json) && Object.hasOwn(json, wrapKey) ? json[wrapKey] : json
      return Effect.map(
        Effect.suspend(() => toEffect(decode(value ?? null))),
        (decoded) => decoded.value
      )
    }
  }
}

/** The answer that an agent asks of its model, by a schema of Effect's or of another library. */
export const fromSchema = (source: Schema.ConstraintCodec<unknown, unknown> | StandardSchema): Output => {
  if (standard.isCodec(source)) {
    const schema = withFiniteNumbers(source)
    const root = jsonSchemaOf(schema)
    return outputOf(root, lenient(root, Schema.toCodecJson(schema), "the answer"))
  }
  return Result.match(standard.jsonSchemaOf(source), {
    onSuccess: (root) => outputOf(root, standard.lenient(root, source, "the answer")),
    onFailure: (problem) => ({ problem, jsonSchema: {}, decode: () => Effect.fail(problem) })
  })
}

/** The structured answer of a turn. `None` is a turn without an answer, and without a need for one. */
export type Answer =
  | { readonly _tag: "Answer"; readonly output: unknown; readonly text: string }
  | { readonly _tag: "Wrong"; readonly problem: string; readonly raw: string }
  | { readonly _tag: "None" }

const answerOf = (decoded: Effect.Effect<unknown, string>, raw: string): Effect.Effect<Answer> =>
  Effect.match(decoded, {
    onSuccess: (output): Answer => ({ _tag: "Answer", output, text: raw }),
    onFailure: (problem): Answer => ({ _tag: "Wrong", problem, raw })
  })

export const answerCall = (message: Message.AiMessage) => message.toolCalls.find((one) => one.name === finalAnswer)

/**
 * Reads an answer from the text of a turn: all text, or else its last block, since a model may announce its answer
 * first.
 */
export const readText = (output: Output, message: Message.AiMessage): Effect.Effect<Answer> => {
  const raw = Message.text(message)
  const texts = message.content.filter((block) => block.type === "text")
  const last = texts.length > 1 && Result.isFailure(parsed(raw)) ? texts.at(-1) : undefined
  return answerOf(decodeText(output, last === undefined || Result.isFailure(parsed(last.text)) ? raw : last.text), raw)
}

export const readCall = (output: Output, { arguments: args }: ToolCall): Effect.Effect<Answer> =>
  answerOf(output.decode(args), JSON.stringify(args))

/** Reads the answer again from the last turn of a run that ended with it, whichever way it was asked for. */
export const readAgain = (output: Output, message: Message.AiMessage): Effect.Effect<Answer> => {
  const call = answerCall(message)
  return call === undefined ? readText(output, message) : readCall(output, call)
}
