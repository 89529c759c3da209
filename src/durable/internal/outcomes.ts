/** Outcomes read from what a thread says, for inputs that were settled before. */
import * as Effect from "effect/Effect"
import { AgentError } from "../../core/AgentError.ts"
import type { Request } from "../../core/Approval.ts"
import type { Checkpoint } from "../../core/Checkpoint.ts"
import { type Message, text as textOf } from "../../core/Message.ts"
import { fromSchema, readAgain } from "../../core/schema/answer.ts"
import type { StopReason } from "../../core/StopReason.ts"
import type { Outcome } from "../Outcome.ts"
import type { Codecs } from "./codecs.ts"

/** The last words of the model, if it said anything. */
const lastWords = (messages: ReadonlyArray<Message>): string => {
  const last = messages.findLast((message) => message.role === "ai" && textOf(message) !== "")
  return last === undefined ? "" : textOf(last)
}

/** The stop reasons of runs whose last message is the answer, be it the model's or a tool's. */
const answered: ReadonlySet<StopReason> = new Set(["completed", "refused", "length"])

/** The text of an answer; without one, what was said last. */
const answerText = (messages: ReadonlyArray<Message>, stopReason: StopReason): string => {
  const last = messages.at(-1)
  const isAnswer = last?.role === "ai" || (last?.role === "tool" && !last.isError)
  return isAnswer && answered.has(stopReason) ? textOf(last) : lastWords(messages)
}

/**
 * Reads the outcome of an input that was settled before from what is said in its thread, so that nothing is asked or
 * run again.
 */
export const settled = <O, E>(
  agent: string,
  { isText, output }: Codecs<O, E>,
  messages: ReadonlyArray<Message>,
  stopReason: StopReason,
  { rounds, usage }: Pick<Checkpoint, "rounds" | "usage">
): Effect.Effect<Outcome<O>, AgentError> => {
  const outcome = (value: unknown, text: string): Outcome<O> => ({
    // Decoded with the schema that the agent's type promised.
    output: value as O,
    text,
    stopReason,
    pending: [],
    usage,
    rounds
  })
  if (isText) {
    const text = answerText(messages, stopReason)
    return Effect.succeed(outcome(text, text))
  }
  const last = messages.findLast((message) => message.role === "ai")
  const read = last === undefined ? Effect.undefined : readAgain(fromSchema(output), last)
  return Effect.flatMap(read, (answer) => {
    if (answer?._tag === "Answer") return Effect.succeed(outcome(answer.output, answer.text))
    const { problem, raw } = answer?._tag === "Wrong" ? answer : { problem: "- there is none", raw: "" }
    const reason = { _tag: "InvalidOutput", raw, problem: `what is stored of the answer:\n${problem}` } as const
    return Effect.fail(new AgentError({ agent, reason }))
  })
}

/** The outcome of a thread that is suspended, or that a person stopped. */
export const unanswered = <O>(
  messages: ReadonlyArray<Message>,
  stopReason: "suspended" | "interrupted",
  pending: ReadonlyArray<Request>,
  { rounds, usage }: Pick<Checkpoint, "rounds" | "usage">
): Outcome<O> => {
  const last = messages.findLast((message) => message.role === "ai")
  return {
    // Outcomes without an answer are given only where the type says that there may be none.
    output: undefined as O,
    text: last === undefined ? "" : textOf(last),
    stopReason,
    pending,
    usage,
    rounds
  }
}
