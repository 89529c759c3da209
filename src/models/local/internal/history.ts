/** A conversation as node-llama-cpp's chat wrappers know it: system, user and model items, results inside of calls. */
import type { ChatHistoryItem, ChatModelResponse } from "node-llama-cpp"
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import type { AiTurn, Turn } from "../../internal/turn/normalize.ts"
import { textOf } from "./codecs/chatml.ts"

type Response = ChatModelResponse["response"]

/** Answers to calls that could not be read: a wrapper knows results of calls only, so the user says them. */
const unread = (turn: AiTurn): ReadonlyArray<string> =>
  turn.calls.flatMap((call) => (call.raw === undefined ? [] : [textOf(call.answer.content)]))

const writeTurn = (turn: AiTurn, thoughts: boolean, tools: ReadonlyArray<ToolDefinition>): Response => [
  ...turn.content.flatMap((block): Response => {
    if (block.type === "text") return [block.text]
    return thoughts ? [{ type: "segment", segmentType: "thought", text: block.text, ended: true }] : []
  }),
  ...turn.calls
    .filter((call) => call.raw === undefined)
    .map((call, index): Response[number] => ({
      type: "functionCall",
      name: call.name,
      description: tools.find((tool) => tool.name === call.name)?.description ?? "",
      params: call.arguments,
      result: textOf(call.answer.content),
      startsNewChunk: index === 0
    })),
  ...turn.calls.flatMap((call) => (call.raw === undefined ? [] : [call.raw]))
]

/** The items of a conversation; the last one is the model's, which it goes on with. */
export const toHistory = (
  systemPrompt: string,
  turns: ReadonlyArray<Turn>,
  tools: ReadonlyArray<ToolDefinition>,
  thinks: boolean
): Array<ChatHistoryItem> => {
  const items: Array<ChatHistoryItem> = systemPrompt === "" ? [] : [{ type: "system", text: systemPrompt }]
  const lastHuman = turns.findLastIndex((turn) => turn.role === "human")
  turns.forEach((turn, index) => {
    if (turn.role !== "ai") {
      items.push({ type: "user", text: turn.role === "system" ? turn.text : textOf(turn.content) })
      return
    }
    const response = writeTurn(turn, thinks && index > lastHuman, tools)
    const last = items.at(-1)
    if (last?.type === "model") last.response.push(...response)
    else items.push({ type: "model", response })
    const answers = unread(turn)
    if (answers.length > 0) items.push({ type: "user", text: answers.join("\n") })
  })
  if (items.at(-1)?.type !== "model") items.push({ type: "model", response: [] })
  return items
}
