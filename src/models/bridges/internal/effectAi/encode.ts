/** Messages of ours as an `effect/ai` prompt. */
import * as AiPrompt from "effect/ai/Prompt"
import type { ReasoningBlock, TextBlock } from "../../../../core/Content.ts"
import * as Content from "../../../../core/Content.ts"
import type { JsonObject } from "../../../../core/Json.ts"
import type { Message } from "../../../../core/Message.ts"
import type { Dialect } from "../../../internal/turn/dialect.ts"
import { type AiTurn, type AnsweredCall, makeNormalizer, type Turn } from "../../../internal/turn/normalize.ts"
import { wellFormed } from "../../../internal/turn/wellFormed.ts"
import { arrange } from "./layout.ts"
import { filePart, shownParts } from "./media.ts"
import { optionsOf, provider } from "./metadata.ts"

/**
 * The dialect that any provider behind `effect/ai` takes. Media of tool results go behind them, since not every
 * provider reads them inside.
 */
const dialect: Omit<Dialect, "humanFirst" | "humanLast" | "systemMessages"> = {
  provider,
  reasoning: "own",
  media: (block) => filePart(block) !== undefined,
  toolMedia: "after",
  callIdLength: 64
}

/**
 * The dialect of a conversation for a provider. System messages inside the history become turns unless the provider is
 * known to accept them.
 */
export const wire = (systemInside: boolean): Dialect => ({
  ...dialect,
  systemMessages: systemInside ? "keep" : "fold",
  humanFirst: true,
  humanLast: true
})

/** The dialect of an unchanged conversation, for any recipient. */
const plain: Dialect = { ...dialect, systemMessages: "keep", humanFirst: false, humanLast: false }

/** The key that shows a model its own malformed arguments. */
export const malformedKey = "INVALID_JSON"

const own = (data: JsonObject | undefined) => (data === undefined ? {} : { options: optionsOf({ [provider]: data }) })

const saidPart = (block: TextBlock | ReasoningBlock): AiPrompt.TextPart | AiPrompt.ReasoningPart => {
  const params = { text: block.text, options: optionsOf(block.providerData) }
  return block.type === "text" ? AiPrompt.textPart(params) : AiPrompt.reasoningPart(params)
}

const callPart = (call: AnsweredCall): AiPrompt.ToolCallPart =>
  AiPrompt.toolCallPart({
    id: call.id,
    name: call.name,
    params: call.raw === undefined ? call.arguments : { [malformedKey]: call.raw },
    providerExecuted: false,
    ...own(call.data)
  })

const resultPart = ({ answer, id, name }: AnsweredCall): AiPrompt.ToolResultPart =>
  AiPrompt.toolResultPart({
    id,
    name,
    isFailure: answer.isError,
    result: Content.toText(answer.content),
    modelOutput: shownParts(answer.content),
    providerExecuted: false
  })

const aiMessages = (turn: AiTurn): ReadonlyArray<AiPrompt.Message> => {
  const content = arrange(turn.data, turn.content.map(saidPart), turn.calls.map(callPart))
  // A turn that was paused before it said anything.
  if (content.length === 0) return []
  const message = AiPrompt.assistantMessage({ content })
  return turn.calls.length === 0 ? [message] : [message, AiPrompt.toolMessage({ content: turn.calls.map(resultPart) })]
}

const messagesOf = (turn: Turn): ReadonlyArray<AiPrompt.Message> => {
  switch (turn.role) {
    case "system":
      return [AiPrompt.systemMessage({ content: turn.text })]
    case "human":
      return [AiPrompt.userMessage({ content: shownParts(turn.content) })]
    case "ai":
      return aiMessages(turn)
  }
}

const sameItems = <A>(left: ReadonlyArray<A>, right: ReadonlyArray<A>): boolean =>
  left.length === right.length && left.every((item, index) => item === right[index])

const sameCall = (left: AnsweredCall, right: AnsweredCall | undefined): boolean =>
  left.id === right?.id &&
  left.name === right.name &&
  left.data === right.data &&
  left.arguments === right.arguments &&
  left.raw === right.raw &&
  left.answer.isError === right.answer.isError &&
  sameItems(left.answer.content, right.answer.content)

/** Reports whether two turns were made of the same messages. */
const sameTurn = (left: Turn, right: Turn): boolean => {
  if (left === right) return true
  if (left.role === "system") return right.role === "system" && left.text === right.text
  if (left.role === "human") return right.role === "human" && sameItems(left.content, right.content)
  return (
    right.role === "ai" &&
    left.data === right.data &&
    sameItems(left.content, right.content) &&
    left.calls.length === right.calls.length &&
    left.calls.every((call, index) => sameCall(call, right.calls[index]))
  )
}

/**
 * Messages as they are. A provider wants to be asked something, and a conversation that is not sent to one need not.
 */
export const encode = (history: ReadonlyArray<Message>): ReadonlyArray<AiPrompt.Message> => {
  const { turns } = makeNormalizer(plain)(history)
  const saysNothing = turns.every((turn) => turn.role === "system" || turn.index === -1)
  return turns.filter((turn) => !saysNothing || turn.role === "system").flatMap(messagesOf)
}

/**
 * Makes an encoder for one session. It caches turns: a message of the history is the same object in each prompt, and
 * `effect/ai` recognises already sent messages by their identity.
 */
export const makeEncoder = (to: Dialect) => {
  const normalize = makeNormalizer(to)
  /** The last prompt: its turns, and the ends of their messages in it. */
  const encodedTurns: Array<{ readonly turn: Turn; readonly end: number }> = []
  const messages: Array<AiPrompt.Message> = []
  let system: AiPrompt.SystemMessage | undefined

  const isMade = (turn: Turn | undefined, index: number): boolean => {
    const one = encodedTurns[index]
    return one !== undefined && turn !== undefined && sameTurn(one.turn, turn)
  }

  return (systemPrompt: string, history: ReadonlyArray<Message>): AiPrompt.Prompt => {
    const normalized = normalize(history)
    const { turns } = normalized
    let same = 0
    while (isMade(turns[same], same)) same++
    encodedTurns.length = same
    messages.length = encodedTurns[same - 1]?.end ?? 0
    for (const turn of turns.slice(same)) {
      messages.push(...messagesOf(turn))
      encodedTurns.push({ turn, end: messages.length })
    }
    const text = [wellFormed(systemPrompt), ...normalized.system].filter((part) => part !== "").join("\n\n")
    if (text === "") return AiPrompt.fromMessages(messages.slice())
    if (system?.content !== text) system = AiPrompt.systemMessage({ content: text })
    return AiPrompt.fromMessages([system, ...messages])
  }
}
