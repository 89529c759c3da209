import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { AgentError } from "../../core/AgentError.ts"
import type { Request } from "../../core/Approval.ts"
import type { Checkpoint } from "../../core/Checkpoint.ts"
import { isObject } from "../../core/Json.ts"
import { type Message, text as textOf } from "../../core/Message.ts"
import type { StopReason } from "../../core/StopReason.ts"
import { finalAnswer } from "../../core/Tool.ts"
import type { Outcome } from "../Outcome.ts"
import type { Codecs } from "./terms.ts"

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))

const fence = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?```\s*$/

/** The last thing that was said; the result of a tool, if that was the answer. */
const lastText = (messages: ReadonlyArray<Message>): string => {
  const last = messages.at(-1)
  if (last?.role === "tool" && !last.isError && last.toolName !== finalAnswer) return textOf(last)
  const said = messages.findLast((message) => message.role === "ai" && textOf(message) !== "")
  return said === undefined ? "" : textOf(said)
}

/** The answer as the model wrote it: the arguments of the tool that takes it, or text. */
const written = (messages: ReadonlyArray<Message>): Result.Result<unknown, unknown> => {
  const last = messages.findLast((message) => message.role === "ai")
  const call = last?.role === "ai" ? last.toolCalls.find(({ name }) => name === finalAnswer) : undefined
  if (call !== undefined) return Result.succeed(call.arguments)
  const text = last === undefined ? "" : textOf(last)
  return parse(fence.exec(text)?.[1] ?? text)
}

/**
 * What came of an input that was settled before: read from what is said in its thread, so that nothing is asked or run
 * again.
 */
export const settled = <O, E>(
  agent: string,
  { isText, output }: Codecs<O, E>,
  messages: ReadonlyArray<Message>,
  stopReason: StopReason,
  { rounds, usage }: Pick<Checkpoint, "rounds" | "usage">
): Effect.Effect<Outcome<O>, AgentError> => {
  const text = lastText(messages)
  const outcome = (value: unknown, shown: string): Outcome<O> => ({
    // Decoded with the schema that the agent's type promised.
    output: value as O,
    text: shown,
    stopReason,
    pending: [],
    usage,
    rounds
  })
  if (isText) return Effect.succeed(outcome(text, text))
  const decode = Schema.decodeUnknownResult(Schema.toCodecJson(output))
  return Effect.mapBoth(
    Effect.fromResult(
      Result.flatMap(written(messages), (json) => {
        const whole = decode(json)
        const value = isObject(json) && Object.keys(json).length === 1 ? json["value"] : undefined
        return Result.isFailure(whole) && value !== undefined ? decode(value) : whole
      })
    ),
    {
      onSuccess: (value) => outcome(value, text),
      onFailure: () =>
        new AgentError({
          agent,
          reason: { _tag: "InvalidOutput", raw: text, problem: "what is stored of the answer does not decode" }
        })
    }
  )
}

/** What a thread came to that stands still, or that a person stopped. */
export const unanswered = <O>(
  messages: ReadonlyArray<Message>,
  stopReason: "suspended" | "interrupted",
  pending: ReadonlyArray<Request>,
  { rounds, usage }: Pick<Checkpoint, "rounds" | "usage">
): Outcome<O> => {
  const last = messages.findLast((message) => message.role === "ai")
  return {
    // Outcomes without an answer are told only where the type says that there may be none.
    output: undefined as O,
    text: last === undefined ? "" : textOf(last),
    stopReason,
    pending,
    usage,
    rounds
  }
}
