/** Asks for an answer in a schema, and has it repaired. */
import * as Effect from "effect/Effect"
import { AgentError } from "../AgentError.ts"
import type { ModelRequest, ToolDefinition } from "../ChatModel.ts"
import type { JsonObject } from "../Json.ts"
import * as Message from "../Message.ts"
import { type Answer, answerCall, type Output, readCall, readText } from "../schema/answer.ts"
import type { StopReason } from "../StopReason.ts"
import { finalAnswer } from "../Tool.ts"
import { make as say } from "../ToolOutput.ts"
import { decline } from "./calls/tools.ts"
import type { Live } from "./live.ts"
import { record, settle } from "./records/journal.ts"

/** The number of times that an answer which does not decode is sent back. */
const repairLimit = 2

/** True if the model is asked by its JSON-schema mode. */
const isNative = (live: Live): boolean => live.run.model?.structuredOutput === "native"

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

export const requestSchema = (live: Live): JsonObject | undefined => {
  const { output } = live.compiled.definition
  return output !== undefined && isNative(live) ? output.jsonSchema : undefined
}

/**
 * The request of a round in which a wrong answer is given again: the model is made to give it, and nothing else. One
 * that gives it by its JSON-schema mode is kept from calling tools, and is held to the schema then if it can be at all.
 */
export const repairRequest = (live: Live): Pick<ModelRequest, "toolChoice"> => ({
  toolChoice: isNative(live) ? "none" : { tool: finalAnswer }
})

/**
 * The last request of a run: no tools but the answer tool. The notice is in the request alone, not in the history. The
 * system prompt stays, so that the provider's cache still fits.
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

/** Reads the answer of a turn: the call of the answer tool, or the text of a turn without calls. */
export const readAnswer = (live: Live, output: Output, message: Message.AiMessage): Effect.Effect<Answer> => {
  const call = answerCall(message)
  if (call !== undefined && !isNative(live)) return readCall(output, call)
  const isText = message.toolCalls.length + message.malformedToolCalls.length === 0
  return isText ? readText(output, message) : Effect.succeed({ _tag: "None" })
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

/** Fails a run that a middleware ended before it had an output. */
export const noAnswer = (live: Live, stopReason: StopReason, text: string): Effect.Effect<never, AgentError> =>
  Effect.fail(new AgentError({ agent: live.run.agent, reason: { _tag: "NoAnswer", stopReason, text } }))

/**
 * Sends a wrong answer back with its problem; fails after `repairLimit` repairs. Returns the number of repairs so far.
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
    record(
      live,
      Message.human(`Your answer is not valid:\n${wrong.problem}\n${how}`, {
        id: live.makeId(),
        source: "output-repair"
      })
    )
    yield* settle(live)
  }
  return repairs + 1
})
