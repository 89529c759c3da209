/** What is wrong with the request that sends an answer back. */
import * as Message from "../../src/core/Message.ts"
import type { Api, Fixture } from "./fixtures.ts"

// Requests and recordings are looked into as they are.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

const text = (value: unknown): string => JSON.stringify(value).slice(0, 160)

/** Finds calls without exactly one answer behind them, answers without a call, and calls of one id. */
const unpaired = (calls: ReadonlyArray<string>, answers: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...calls.flatMap((id) =>
    answers.filter((one) => one === id).length === 1 ? [] : [`the call ${id} has no one answer`]
  ),
  ...answers.flatMap((id) => (calls.includes(id) ? [] : [`the answer ${id} has no call`])),
  ...(new Set(calls).size === calls.length ? [] : ["two calls have one id"])
]

/** Fields that a server sets, and does not want back. */
const own = new Set(["status", "created_by", "parsed_arguments", "internal_chat_message_metadata_passthrough"])

/** The text of an item without the fields that a server sets. */
export const comparable = (item: Any): string =>
  JSON.stringify(
    Object.entries(item)
      .filter(([key, value]) => !own.has(key) && value !== null)
      .sort(([left], [right]) => (left < right ? -1 : 1))
  )

/** The items of an answer of the Responses API. */
export const itemsOf = (events: ReadonlyArray<Any>): ReadonlyArray<Any> => {
  const last = events.findLast(({ object, response }) => object === "response" || Array.isArray(response?.output))
  const listed = last?.output ?? last?.response?.output ?? []
  return listed.length > 0
    ? listed
    : events.flatMap(({ item, type }) => (String(type).endsWith("item.done") ? [item] : []))
}

const responses = (events: ReadonlyArray<Any>, message: Message.AiMessage, { input }: Any): ReadonlyArray<string> => {
  const calls = input.filter(({ type }: Any) => type?.endsWith("_call") === true && type !== "mcp_call")
  const outputs = input.filter(({ type }: Any) => type?.endsWith("_call_output") === true)
  const idsOf = (list: ReadonlyArray<Any>, type: string) =>
    list.filter((one) => one.type === type).map((one) => one.call_id)
  const kinds = new Set<string>(calls.map(({ type }: Any) => type))
  const pairs = [...kinds].flatMap((type) => {
    const answers = idsOf(outputs, `${type}_output`)
    // The provider answers its own calls, in the same item or in another one.
    return type === "function_call" || answers.length > 0 ? unpaired(idsOf(calls, type), answers) : []
  })
  const sentAlone = new Set(["message", "function_call", "reasoning"])
  const lost = itemsOf(events)
    .filter(({ type }) => !sentAlone.has(type))
    .filter((item) => !input.some((one: Any) => comparable(one) === comparable(item)))
    .map((item) => `an item was lost or changed: ${text(item)}`)
  const thoughts = itemsOf(events).filter((item) => item.type === "reasoning" && item.encrypted_content)
  const leading = thoughts.filter((item) => itemsOf(events).at(-1) !== item)
  const forgotten = leading
    .filter((item) => !input.some((one: Any) => one.encrypted_content === item.encrypted_content))
    .map(({ id }) => `the reasoning ${id} was lost`)
  const trailing = input.flatMap((item: Any, at: number) =>
    item.type === "reasoning" && (input[at + 1] === undefined || input[at + 1].role === "user")
      ? ["reasoning leads to nothing"]
      : []
  )
  const said = input
    .filter(({ role }: Any) => role === "assistant")
    .map(({ content }: Any) => (typeof content === "string" ? content : content.map((part: Any) => part.text).join("")))
    .join("")
  const squeezed = (value: string) => value.replace(/\s+/g, "")
  const isSaid = squeezed(said) === squeezed(Message.text(message))
  return [...pairs, ...lost, ...forgotten, ...trailing, ...(isSaid ? [] : [`the text was sent as ${text(said)}`])]
}

const chat = (_: ReadonlyArray<Any>, message: Message.AiMessage, { messages }: Any): ReadonlyArray<string> => {
  const assistants = messages.filter(({ role }: Any) => role === "assistant")
  const calls = assistants.flatMap((one: Any) => one.tool_calls ?? [])
  const answers = messages.flatMap((one: Any) => (one.role === "tool" ? [one.tool_call_id] : []))
  const roles = messages.map(({ role }: Any) => role).join()
  const said = assistants
    .flatMap(({ content }: Any) =>
      Array.isArray(content) ? content.map((part: Any) => part.text ?? "") : [content ?? ""]
    )
    .join("")
  const isSaid = said === Message.text(message) || Message.text(message).trim() === ""
  return [
    ...unpaired(
      calls.map(({ id }: Any) => id),
      answers
    ),
    ...calls.flatMap((call: Any) => {
      const { arguments: args } = call.function
      return typeof args === "string" && args.startsWith("{") ? [] : [`arguments are no object: ${text(args)}`]
    }),
    ...(/user,user|assistant,assistant/.test(roles) ? [`the roles are ${roles}`] : []),
    ...(isSaid ? [] : [`the text was sent as ${text(said)}`])
  ]
}

const blocksOf = (events: ReadonlyArray<Any>): ReadonlyArray<Any> => {
  const whole = events.find(({ type }) => type === "message")
  if (whole !== undefined) return whole.content
  const blocks: Array<Any> = []
  for (const { content_block: block, delta, index, type } of events) {
    if (type === "content_block_start") blocks[index] = { ...block }
    const it = blocks[index]
    if (type !== "content_block_delta" || it === undefined) continue
    if (delta.type === "text_delta") it.text = (it.text ?? "") + delta.text
    if (delta.type === "signature_delta") it.signature = (it.signature ?? "") + delta.signature
  }
  return blocks.filter((block) => block !== undefined)
}

/** What of a block has to come back as it was. */
const markOf = (block: Any): string =>
  [
    block.type,
    block.id ?? block.tool_use_id ?? "",
    block.signature ?? block.data ?? "",
    block.type === "text" ? block.text : ""
  ].join(" ")

const anthropic = (events: ReadonlyArray<Any>, _: Message.AiMessage, { messages }: Any): ReadonlyArray<string> => {
  const assistant = messages.filter(({ role }: Any) => role === "assistant").flatMap(({ content }: Any) => content)
  const user = messages.filter(({ role }: Any) => role === "user").flatMap(({ content }: Any) => content)
  const idsOf = (list: ReadonlyArray<Any>, type: string, key: string) =>
    list.filter((block) => block.type === type).map((block) => block[key])
  const isSent = (block: Any) =>
    (block.type !== "text" || block.text.trim() !== "") && (block.type !== "thinking" || Boolean(block.signature))
  const blocks = blocksOf(events)
  const asked = new Set(blocks.map(({ id }) => id))
  const told = new Set(blocks.map(({ tool_use_id: id }) => id))
  const last = blocks.at(-1)
  // A tool of Anthropic's that was asked for beside calls is answered after them.
  const isCalling = blocks.some(({ type }) => type === "tool_use")
  // Half of a pair is in another answer: alone, the API refuses it.
  const isWhole = ({ id, tool_use_id: of, type }: Any) =>
    (of === undefined || asked.has(of)) &&
    (!/^(?:server|mcp)_tool_use$/.test(type) || told.has(id) || id === last?.id || isCalling)
  const wanted = blocks.filter((block) => isSent(block) && isWhole(block)).map(markOf)
  const given = assistant.map(markOf)
  const isPaused = events.some(({ delta, stop_reason }) => (delta?.stop_reason ?? stop_reason) === "pause_turn")
  const roles = messages.map(({ role }: Any) => role).join()
  return [
    ...unpaired(idsOf(assistant, "tool_use", "id"), idsOf(user, "tool_result", "tool_use_id")),
    ...(isPaused || wanted.join("\n") === given.join("\n")
      ? []
      : [
          `sent without ${text(wanted.filter((one) => !given.includes(one)))}, and with ${text(given.filter((one: string) => !wanted.includes(one)))}`
        ]),
    ...(/user,user|assistant,assistant/.test(roles) ? [`the roles are ${roles}`] : [])
  ]
}

const gemini = (events: ReadonlyArray<Any>, _: Message.AiMessage, { contents }: Any): ReadonlyArray<string> => {
  const parts = contents.filter(({ role }: Any) => role === "model").flatMap((one: Any) => one.parts)
  const results = contents.flatMap((one: Any) => one.parts.filter(({ functionResponse }: Any) => functionResponse))
  const calls = parts.filter(({ functionCall }: Any) => functionCall !== undefined)
  const said = events.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
  const pictures = said.filter(({ inlineData }) => inlineData !== undefined)
  const lost = said
    .flatMap(({ inlineData, thoughtSignature }) =>
      inlineData === undefined && thoughtSignature ? [thoughtSignature] : []
    )
    .filter((signature) => pictures.length === 0 && !parts.some((part: Any) => part.thoughtSignature === signature))
  return [
    ...(calls.length === results.length ? [] : [`${calls.length} calls have ${results.length} results`]),
    ...lost.map((signature) => `the signature ${text(signature)} was lost`)
  ]
}

const checks: Readonly<
  Record<Api, (events: ReadonlyArray<Any>, message: Message.AiMessage, body: Any) => ReadonlyArray<string>>
> = { responses, chat, anthropic, gemini }

/** Lists what is wrong with a request. */
export const problemsIn = (
  { api, events }: Fixture,
  message: Message.AiMessage,
  body: unknown
): ReadonlyArray<string> => checks[api](events, message, body)
