/** Reads the outcomes of settled inputs from the messages of a thread. */
import * as Effect from "effect/Effect"
import { AgentError } from "../../core/AgentError.ts"
import type { Request } from "../../core/Approval.ts"
import type { Checkpoint } from "../../core/Checkpoint.ts"
import { type Message, text as textOf } from "../../core/Message.ts"
import { fromSchema, readAgain } from "../../core/schema/answer.ts"
import type { StopReason } from "../../core/StopReason.ts"
import type { Outcome } from "../Outcome.ts"
import type { Codecs } from "./codecs.ts"

/** The last text of the model. */
const lastTextOf = (messages: ReadonlyArray<Message>): string => {
  const last = messages.findLast((message) => message.role === "ai" && textOf(message) !== "")
  return last === undefined ? "" : textOf(last)
}

/** The stop reasons of runs that end with the answer of the model or a tool. */
const answered: ReadonlySet<StopReason> = new Set(["completed", "refused", "length"])

/** The text of an answer, or else the last text of the model. */
const answerText = (messages: ReadonlyArray<Message>, stopReason: StopReason): string => {
  const last = messages.at(-1)
  const isAnswer = last?.role === "ai" || (last?.role === "tool" && !last.isError)
  return isAnswer && answered.has(stopReason) ? textOf(last) : lastTextOf(messages)
}

/** Reads the outcome of a settled input from its messages, so that nothing runs again. */
export const readSettled = <O, E>(
  agent: string,
  { isText, output }: Codecs<O, E>,
  messages: ReadonlyArray<Message>,
  stopReason: StopReason,
  { rounds, usage }: Pick<Checkpoint, "rounds" | "usage">
): Effect.Effect<Outcome<O>, AgentError> => {
  const outcome = (value: unknown, text: string): Outcome<O> => ({
    // The schema of the agent decoded it.
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
  const decodeAnswer = last === undefined ? Effect.undefined : readAgain(fromSchema(output), last)
  return Effect.flatMap(decodeAnswer, (answer) => {
    if (answer?._tag === "Answer") return Effect.succeed(outcome(answer.output, answer.text))
    const { problem, raw } = answer?._tag === "Wrong" ? answer : { problem: "- there is none", raw: "" }
    const reason = { _tag: "InvalidOutput", raw, problem: `what is stored of the answer:\n${problem}` } as const
    return Effect.fail(new AgentError({ agent, reason }))
  })
}

/** Makes the outcome of a suspended or interrupted thread. */
export const makeUnanswered = <O>(
  messages: ReadonlyArray<Message>,
  stopReason: "suspended" | "interrupted",
  pending: ReadonlyArray<Request>,
  { rounds, usage }: Pick<Checkpoint, "rounds" | "usage">
): Outcome<O> => {
  const last = messages.findLast((message) => message.role === "ai")
  return {
    // Callers give outcomes without an answer only where the type allows them.
    output: undefined as O,
    text: last === undefined ? "" : textOf(last),
    stopReason,
    pending,
    usage,
    rounds
  }
}
