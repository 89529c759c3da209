/**
 * Asks for an answer in a schema, reads it and has it repaired.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { AgentError } from "../AgentError.ts"
import type { ModelRequest, ToolDefinition } from "../ChatModel.ts"
import { lenient } from "../internal/arguments.ts"
import { type Decoded, type Decoding, toEffect } from "../internal/decoding.ts"
import { withFiniteNumbers } from "../internal/finiteNumbers.ts"
import { jsonSchemaOf } from "../internal/jsonSchema.ts"
import * as standard from "../internal/standard.ts"
import { isObject, isTooDeep, Json, type JsonObject, maxDepth } from "../Json.ts"
import * as Message from "../Message.ts"
import type { StandardSchema } from "../StandardSchema.ts"
import { finalAnswer } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import { make as say } from "../ToolOutput.ts"
import type { Output } from "./definition.ts"
import { append, type Live } from "./live.ts"
import { decline } from "./tools.ts"

/** The number of times that an answer which does not decode is sent back. */
const repairLimit = 2

/** A tool's arguments, and a provider's JSON mode, want an object: what is none is put under this key. */
const wrapKey = "value"

const parseJson = Schema.decodeUnknownResult(Schema.fromJsonString(Json))

const fence = "```"

/** The content of a Markdown fence, where that is all of a text. */
const unfenced = (text: string): string => {
  const trimmed = text.trim()
  const line = trimmed.indexOf("\n")
  const isFenced = line > 0 && ["", "json"].includes(trimmed.slice(fence.length, line).trim())
  return isFenced && trimmed.startsWith(fence) && trimmed.endsWith(fence)
    ? trimmed.slice(line + 1, -fence.length)
    : trimmed
}

const outputOf = (root: JsonObject, decode: (json: Json) => Decoding<Decoded<unknown>, string>): Output => {
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
export const fromSchema = (given: Schema.ConstraintCodec<unknown, unknown> | StandardSchema): Output => {
  if (standard.isCodec(given)) {
    const schema = withFiniteNumbers(given)
    const root = jsonSchemaOf(schema)
    return outputOf(root, lenient(root, Schema.toCodecJson(schema), "the answer"))
  }
  return Result.match(standard.jsonSchemaOf(given), {
    onSuccess: (root) => outputOf(root, standard.lenient(root, given, "the answer")),
    onFailure: (problem) => ({ problem, jsonSchema: {}, decode: () => Effect.fail(problem) })
  })
}

/** True if the model is asked by its JSON-schema mode. */
const isNative = (live: Live): boolean => live.run.model.structuredOutput === "native"

const answerTool = (output: Output): ToolDefinition => ({
  name: finalAnswer,
  description: "Gives the final answer and ends the task. Call it once, when you are done, and nothing beside it.",
  parameters: output.jsonSchema,
  annotations: {}
})

/** The tools of an agent, with the answer tool where the model has no JSON-schema mode. */
export const withAnswerTool = (live: Live, tools: ReadonlyArray<ToolDefinition>): ReadonlyArray<ToolDefinition> => {
  const { output } = live.compiled.definition
  return output === undefined || isNative(live) ? tools : [...tools, answerTool(output)]
}

/** The schema that a request asks an answer in. */
export const requestSchema = (live: Live): JsonObject | undefined => {
  const { output } = live.compiled.definition
  return output !== undefined && isNative(live) ? output.jsonSchema : undefined
}

/**
 * The last request of a run: no tools but the one that takes the answer. The notice is the last message of
 * the request and not of the history; the system prompt stays as it was, so that a provider's cache still fits.
 */
export const finalRequest = (live: Live): Pick<ModelRequest, "tools" | "toolChoice" | "messages"> => {
  const { output } = live.compiled.definition
  const byTool = output !== undefined && !isNative(live)
  const notice = byTool
    ? `You can use no more tools. Call ${finalAnswer} now with what you know.`
    : "You can use no more tools. Answer now, in full, with what you know."
  return {
    messages: [...live.run.messages, Message.human(notice, { id: live.makeId(), source: "final-answer" })],
    tools: byTool ? [answerTool(output)] : [],
    toolChoice: byTool ? { tool: finalAnswer } : "none"
  }
}

/** The structured answer of a turn. `None` is a turn that is none and need not be one. */
export type Answer =
  | { readonly _tag: "Answer"; readonly output: unknown; readonly text: string }
  | { readonly _tag: "Wrong"; readonly problem: string; readonly raw: string }
  | { readonly _tag: "None" }

const parseText = (text: string): Result.Result<Json, string> =>
  Result.filterOrFail(
    Result.mapError(parseJson(unfenced(text)), () => "- the answer is not JSON"),
    (json) => !isTooDeep(json),
    () => `- the answer lies more than ${maxDepth} arrays and objects deep`
  )

const answerOf = (decoded: Effect.Effect<unknown, string>, raw: string): Effect.Effect<Answer> =>
  Effect.match(decoded, {
    onSuccess: (output): Answer => ({ _tag: "Answer", output, text: raw }),
    onFailure: (problem): Answer => ({ _tag: "Wrong", problem, raw })
  })

const answerCall = (message: Message.AiMessage) => message.toolCalls.find((one) => one.name === finalAnswer)

const readText = (output: Output, message: Message.AiMessage): Effect.Effect<Answer> => {
  const raw = Message.text(message)
  return answerOf(Effect.flatMap(Effect.fromResult(parseText(raw)), output.decode), raw)
}

const readCall = (output: Output, { arguments: args }: ToolCall): Effect.Effect<Answer> =>
  answerOf(output.decode(args), JSON.stringify(args))

/** Reads the answer of a turn: the call of the answer tool, or the text of a turn without calls. */
export const read = (live: Live, output: Output, message: Message.AiMessage): Effect.Effect<Answer> => {
  const call = answerCall(message)
  if (call !== undefined && !isNative(live)) return readCall(output, call)
  const isText = message.toolCalls.length + message.malformedToolCalls.length === 0
  return isText ? readText(output, message) : Effect.succeed({ _tag: "None" })
}

/** Reads the answer again from the last turn of a run that ended with it, whichever way it was asked for. */
export const readAgain = (output: Output, message: Message.AiMessage): Effect.Effect<Answer> => {
  const call = answerCall(message)
  return call === undefined ? readText(output, message) : readCall(output, call)
}

/** Answers the calls of a turn that gave (or tried to give) the final answer. */
export const answerCalls = (live: Live, problem: string | undefined): Effect.Effect<void> =>
  decline(live, ({ name }) => {
    if (name !== finalAnswer) {
      return say(`Not executed: ${finalAnswer} was called beside it.`, { isError: true })
    }
    return problem === undefined
      ? say("The answer was accepted.")
      : say(`The answer is not valid. Correct it and call ${finalAnswer} again:\n${problem}`, { isError: true })
  })

/** Fails a run that can't have an output of the promised type. */
export const noOutput = (live: Live, raw: string, problem: string): Effect.Effect<never, AgentError> =>
  Effect.fail(new AgentError({ agent: live.run.agent, reason: { _tag: "InvalidOutput", raw, problem } }))

/**
 * Sends a wrong answer back with what is wrong with it, or fails when that was done often enough. Says how often it was
 * done by now.
 */
export const repair = Effect.fnUntraced(function* (
  live: Live,
  message: Message.AiMessage,
  wrong: Extract<Answer, { readonly _tag: "Wrong" }>,
  repairs: number
) {
  const called = message.toolCalls.length + message.malformedToolCalls.length > 0
  if (called) yield* answerCalls(live, wrong.problem)
  if (repairs >= repairLimit) {
    return yield* noOutput(live, wrong.raw, `after ${repairLimit} repairs:\n${wrong.problem}`)
  }
  if (!called) {
    const how = isNative(live)
      ? "Answer again, with JSON that fits the schema and nothing else."
      : `Give the answer by calling ${finalAnswer}.`
    yield* append(
      live,
      Message.human(`Your answer is not valid:\n${wrong.problem}\n${how}`, {
        id: live.makeId(),
        source: "output-repair"
      })
    )
  }
  return repairs + 1
})
