/** What a recorded answer says, read from its own words, without the code under test. */
import type { Api, Fixture } from "./fixtures.ts"

// Recordings are looked into as they are.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

/** Texts in one, and calls of the client's tools with their arguments. `ends` is false for a failure and a cut one. */
export interface Said {
  readonly text: string
  /** Another form of the text: the end of a stream may say it anew. */
  readonly final?: string | undefined
  readonly calls: ReadonlyArray<{ readonly name: string; readonly args: string }>
  readonly output: number | undefined
  readonly ends: boolean
}

const canonical = (value: Any): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  const keys = Object.keys(value).sort()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`
}

/** Arguments in one form. Text that is no JSON stays as it is. */
export const argsOf = (text: Any): string => {
  if (typeof text !== "string") return canonical(text ?? {})
  try {
    return canonical(JSON.parse(text.trim() === "" ? "{}" : text))
  } catch {
    return text
  }
}

/** A call of OpenAI's that waits for the client, as the agent's tool gets it. Its arguments are not compared. */
const hostedCall = (item: Any, items: ReadonlyArray<Any>): Said["calls"] => {
  const named = (name: string): Said["calls"] => [{ name, args: "?" }]
  const isAnswered = items.some(({ call_id: id, type }) => id === item.call_id && type === `${item.type}_output`)
  if (item.type === "shell_call") return isAnswered ? [] : named("shell")
  if (item.type === "custom_tool_call") return named(item.name)
  if (item.type === "computer_call") return named("computer")
  if (item.type === "local_shell_call") return named("local_shell")
  if (item.type === "apply_patch_call") return isAnswered ? [] : named("apply_patch")
  if (item.type === "mcp_approval_request") return named("mcp_approval")
  return item.type === "tool_search_call" && item.execution === "client" ? named("tool_search") : []
}

const responses = (events: ReadonlyArray<Any>): Said => {
  const last = events.findLast(({ object, type }) => object === "response" || /completed$|incomplete$/.test(type ?? ""))
  const response = last?.object === "response" ? last : last?.response
  const done = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item)
  const listed: ReadonlyArray<Any> = response?.output ?? []
  const items: ReadonlyArray<Any> = listed.length > 0 ? listed : done
  const parts = items.filter(({ type }) => type === "message").flatMap(({ content }) => content ?? [])
  const streamed = events.flatMap(({ delta, type }) => (/(?:output_text|refusal)\.delta$/.test(type) ? [delta] : []))
  const final = parts.map((part) => part.text ?? part.refusal ?? "").join("")
  return {
    text: streamed.length > 0 ? streamed.join("") : final,
    final,
    calls: items.flatMap((item) => {
      const hosted = hostedCall(item, items)
      return item.type === "function_call" ? [{ name: item.name, args: argsOf(item.arguments) }] : hosted
    }),
    output: response?.usage?.output_tokens,
    ends: response !== undefined && /completed|incomplete/.test(response.status ?? "")
  }
}

const chat = (events: ReadonlyArray<Any>): Said => {
  let text = ""
  let ends = false
  let output: number | undefined
  const calls = new Map<string, { name: string; args: string }>()
  let latest = ""
  for (const event of events) {
    if (event.error) return { text, calls: [], output, ends: false }
    output = event.usage?.completion_tokens ?? event.x_groq?.usage?.completion_tokens ?? output
    const choice = event.choices?.find((one: Any) => (one.index ?? 0) === 0)
    if (choice === undefined) continue
    ends ||= typeof choice.finish_reason === "string" && !/error|abort/.test(choice.finish_reason)
    const delta = choice.delta ?? choice.message ?? {}
    const { content } = delta
    if (typeof content === "string") text += content
    else for (const part of content ?? []) text += part.text ?? ""
    text += delta.refusal ?? ""
    for (const [at, piece] of (delta.tool_calls ?? []).entries()) {
      const own: string = `${piece.index ?? at} ${piece.id ?? ""}`
      const key = (piece.id ?? "") === "" && latest.startsWith(`${piece.index ?? at} `) ? latest : own
      const call = calls.get(key) ?? { name: "", args: "" }
      const { arguments: args = "", name = "" } = piece.function ?? {}
      if (name !== call.name) call.name += name ?? ""
      call.args += typeof args === "string" ? args : JSON.stringify(args ?? {})
      calls.set(key, call)
      latest = key
    }
  }
  return { text, calls: Array.from(calls.values(), ({ args, name }) => ({ name, args: argsOf(args) })), output, ends }
}

const anthropic = (events: ReadonlyArray<Any>): Said => {
  const blocks: Array<Any> = []
  let ends = false
  let output: number | undefined
  for (const event of events) {
    if (event.type === "message") {
      blocks.push(...event.content)
      output = event.usage?.output_tokens
      ends = typeof event.stop_reason === "string"
    }
    if (event.type === "content_block_start") blocks[event.index] = { ...event.content_block, json: "" }
    const { delta } = event
    const block = blocks[event.index]
    if (event.type === "content_block_delta" && block !== undefined) {
      if (delta.type === "text_delta") block.text += delta.text
      if (delta.type === "input_json_delta") block.json += delta.partial_json
    }
    if (event.type === "message_delta") output = event.usage?.output_tokens ?? output
    ends ||= event.type === "message_delta" && typeof delta?.stop_reason === "string"
  }
  return {
    text: blocks.flatMap((block) => (block?.type === "text" ? [block.text] : [])).join(""),
    calls: blocks
      .filter((block) => block?.type === "tool_use")
      .map(({ input, json, name }) => ({ name, args: argsOf(json === undefined || json === "" ? input : json) })),
    output,
    ends
  }
}

const gemini = (events: ReadonlyArray<Any>): Said => {
  const candidates = events.flatMap(({ candidates: all }) => all?.slice(0, 1) ?? [])
  const parts = candidates.flatMap(({ content }) => content?.parts ?? [])
  // Arguments in parts are assembled by paths: the names alone are compared.
  const isStreamed = parts.some(
    ({ functionCall }) => functionCall?.partialArgs !== undefined || functionCall?.willContinue
  )
  const usage = events.findLast(({ usageMetadata }) => usageMetadata !== undefined)?.usageMetadata
  const counts = [usage?.candidatesTokenCount, usage?.thoughtsTokenCount].filter((one) => typeof one === "number")
  return {
    text: parts.flatMap(({ text = "", thought }) => (thought === true ? [] : [text])).join(""),
    calls: parts
      .filter(({ functionCall }) => typeof functionCall?.name === "string")
      .map(({ functionCall: { args, name } }) => ({ name, args: isStreamed ? "?" : argsOf(args) })),
    output: counts.length === 0 ? undefined : counts.reduce((sum: number, one: number) => sum + one, 0),
    ends: candidates.some(({ finishReason }) => typeof finishReason === "string")
  }
}

const readers: Readonly<Record<Api, (events: ReadonlyArray<Any>) => Said>> = { responses, chat, anthropic, gemini }

/** Reads what an answer says. */
export const saidIn = ({ api, events }: Fixture): Said => readers[api](events)
