/**
 * The rules of the Messages API that requests of this library could break, from its documentation and its errors.
 */

import type { Json } from "effect-deepagents"
import { ToolSchema } from "effect-deepagents/models"
import { halves } from "../internal/halves.ts"

type Part = Readonly<Record<string, unknown>>

const isPart = (value: unknown): value is Part => typeof value === "object" && value !== null && !Array.isArray(value)

const list = (value: unknown): ReadonlyArray<Part> => (Array.isArray(value) ? value.filter(isPart) : [])

const known = new Set([
  "model",
  "max_tokens",
  "messages",
  "stream",
  "system",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "stop_sequences",
  "temperature",
  "top_p",
  "top_k",
  "service_tier",
  "metadata",
  "container",
  "context_management",
  "anthropic_version",
  "anthropic_beta"
])

const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"]

const serverBlock =
  /^(server_tool_use|mcp_tool_use|container_upload|compaction|fallback|(?!tool_result$)\w+_tool_result)$/

/** Models that can be offered tools, not made to use one. */
const unforced = /(fable|mythos)-5-1|(opus|sonnet)-5-5/

const checkSource = (part: Part, at: string, remote: boolean): ReadonlyArray<string> => {
  const source = isPart(part["source"]) ? part["source"] : {}
  const { type } = source
  const types = part["type"] === "image" ? imageTypes : ["application/pdf"]
  if (type === "base64") {
    const fits =
      types.includes(String(source["media_type"])) &&
      /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/.test(String(source["data"]))
    return fits ? [] : [`${at}: bad base64 source`]
  }
  if (type === "text") return source["data"] === "" ? [`${at}: empty document`] : []
  if (!remote) return [`${at}: source ${String(type)} is not supported here`]
  if (type === "url") return /^https?:\/\//.test(String(source["url"])) ? [] : [`${at}: bad url`]
  return type === "file" && source["file_id"] !== "" ? [] : [`${at}: bad source`]
}

const checkPart = (part: Part, role: string, at: string, remote: boolean): ReadonlyArray<string> => {
  const type = String(part["type"])
  switch (type) {
    case "text":
      return String(part["text"]).trim() === "" ? [`${at}: text content blocks must contain non-whitespace text`] : []
    case "image":
    case "document":
      return role === "assistant" ? [`${at}: ${type} in an assistant message`] : checkSource(part, at, remote)
    case "thinking":
      return [
        ...(role === "assistant" ? [] : [`${at}: thinking of a user`]),
        ...(typeof part["signature"] === "string" && part["signature"] !== ""
          ? []
          : [`${at}: thinking without signature`]),
        ...("cache_control" in part ? [`${at}: cache_control on thinking`] : [])
      ]
    case "redacted_thinking":
      return typeof part["data"] === "string" && part["data"] !== "" && !("cache_control" in part)
        ? []
        : [`${at}: bad redacted_thinking`]
    case "tool_use":
      return [
        ...(role === "assistant" ? [] : [`${at}: tool_use of a user`]),
        ...(/^[a-zA-Z0-9_-]+$/.test(String(part["id"])) ? [] : [`${at}: bad tool_use id`]),
        ...(/^[a-zA-Z0-9_-]{1,128}$/.test(String(part["name"])) ? [] : [`${at}: bad tool name`]),
        ...(isPart(part["input"]) ? [] : [`${at}: input is not an object`])
      ]
    case "tool_result": {
      const content = list(part["content"])
      return [
        ...(role === "user" ? [] : [`${at}: tool_result of the assistant`]),
        ...(content.length > 0 || (typeof part["content"] === "string" && part["content"] !== "")
          ? []
          : [`${at}: empty tool_result`]),
        ...(part["is_error"] === true && content.some((one) => one["type"] !== "text")
          ? [`${at}: all content must be type "text" if "is_error" is true`]
          : []),
        ...content.flatMap((one, index) => checkPart(one, "user", `${at}.content.${index}`, remote))
      ]
    }
    default:
      return role === "assistant" && serverBlock.test(type) ? [] : [`${at}: unexpected ${type}`]
  }
}

const isResult = (part: Part): boolean => part["type"] === "tool_result"

const checkMessages = (messages: ReadonlyArray<Part>, remote: boolean): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const ids = new Set<unknown>()
  if (messages.length === 0) problems.push("messages: at least one message is required")
  messages.forEach((message, index) => {
    const at = `messages.${index}`
    const role = String(message["role"])
    const content = list(message["content"])
    const expected = index % 2 === 0 ? "user" : "assistant"
    if (role !== expected) problems.push(`${at}: role ${role}, expected ${expected}`)
    if (content.length === 0) problems.push(`${at}: empty content`)
    content.forEach((part, block) => problems.push(...checkPart(part, role, `${at}.content.${block}`, remote)))
    const calls = content.filter((part) => part["type"] === "tool_use")
    for (const { id } of calls) {
      if (ids.has(id)) problems.push(`${at}: \`tool_use\` ids must be unique`)
      ids.add(id)
    }
    const asked = content.filter(({ type }) => type === "server_tool_use" || type === "mcp_tool_use")
    for (const { id } of asked) {
      const isRunning = index >= messages.length - 2
      const later = messages.slice(index).flatMap((one) => list(one["content"]))
      if (!isRunning && !later.some((part) => part["tool_use_id"] === id && part["type"] !== "tool_result")) {
        problems.push(`${at}: \`server_tool_use\` ${String(id)} without a result`)
      }
    }
    const next = list(messages[index + 1]?.["content"])
    const answers = next.filter(isResult)
    if (calls.length > 0) {
      const wanted = calls.map(({ id }) => id)
      const given = answers.map((part) => part["tool_use_id"])
      if (JSON.stringify(wanted) !== JSON.stringify(given))
        problems.push(`${at}: calls ${wanted.join()} answered ${given.join()}`)
      if (!next.slice(0, wanted.length).every(isResult))
        problems.push(`${at}: results are not first in the next message`)
    } else if (answers.length > 0) problems.push(`${at}: unexpected \`tool_use_id\` in the next message`)
    if (index === 0 && content.some(isResult)) problems.push(`${at}: a result at the very beginning`)
  })
  const last = messages.at(-1)
  if (last?.["role"] === "assistant" && !list(last["content"]).some((part) => serverBlock.test(String(part["type"])))) {
    problems.push("This model does not support assistant message prefill.")
  }
  return problems
}

const checkTools = (body: Part): ReadonlyArray<string> => {
  const tools = list(body["tools"])
  const names = tools.map((tool) => tool["name"])
  const choice = isPart(body["tool_choice"]) ? body["tool_choice"] : undefined
  const thinking = isPart(body["thinking"]) ? body["thinking"] : {}
  const forced = choice?.["type"] === "any" || choice?.["type"] === "tool"
  return [
    ...(body["tools"] !== undefined && tools.length === 0 ? ["tools: empty"] : []),
    ...(new Set(names).size === names.length ? [] : ["tools: Tool names must be unique."]),
    ...tools.flatMap((tool, index) => {
      if (tool["type"] !== undefined) return []
      const schema = isPart(tool["input_schema"]) ? tool["input_schema"] : {}
      return [
        ...(/^[a-zA-Z0-9_-]{1,128}$/.test(String(tool["name"])) ? [] : [`tools.${index}: bad name`]),
        ...ToolSchema.check(schema as Json.JsonObject, "anthropic").map(
          (problem) => `tools.${index}.input_schema: ${problem}`
        )
      ]
    }),
    ...(choice?.["type"] === "none" && tools.length > 0 && tools.every((tool) => tool["type"] !== undefined)
      ? ["tools that can't be called: all are Anthropic's own, and the choice is none"]
      : []),
    ...(choice !== undefined && tools.length === 0 ? ["tool_choice without tools"] : []),
    ...(choice?.["type"] === "tool" && !names.includes(choice["name"]) ? ["tool_choice of an unknown tool"] : []),
    ...(forced && thinking["type"] === "enabled"
      ? ["Thinking may not be enabled when tool_choice forces tool use."]
      : []),
    ...(forced && unforced.test(String(body["model"]))
      ? ['tool_choice: type "tool" and "any" are not supported for this model.']
      : [])
  ]
}

/** Code that runs and called a tool waits for the result in its container. */
const checkContainer = (body: Part): ReadonlyArray<string> => {
  const messages = list(body["messages"])
  const said = list(messages.at(-2)?.["content"])
  const ended = new Set(said.map((part) => part["tool_use_id"]))
  const runs = new Set(
    said.flatMap((part) => (part["type"] === "server_tool_use" && !ended.has(part["id"]) ? [part["id"]] : []))
  )
  const asked = said.some(
    (part) => part["type"] === "tool_use" && isPart(part["caller"]) && runs.has(part["caller"]["tool_id"])
  )
  const container = isPart(body["container"]) ? body["container"]["id"] : body["container"]
  return asked && typeof container !== "string"
    ? ["container_id is required when there are pending tool uses generated by code execution with tools"]
    : []
}

const breakpoints = (value: unknown): number => {
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + breakpoints(one), 0)
  if (!isPart(value)) return 0
  const own = isPart(value["cache_control"]) ? 1 : 0
  return (
    own +
    breakpoints(Object.entries(value).flatMap(([key, one]) => (key === "input" || key === "input_schema" ? [] : [one])))
  )
}

const checkThinking = (body: Part): ReadonlyArray<string> => {
  const thinking = isPart(body["thinking"]) ? body["thinking"] : {}
  if (thinking["type"] !== "enabled") return []
  const budget = Number(thinking["budget_tokens"])
  const last = list(body["messages"]).findLast((message) => message["role"] === "assistant")
  const content = list(last?.["content"])
  const first = content[0]?.["type"]
  const inLoop = content.some((part) => part["type"] === "tool_use")
  return [
    ...(budget >= 1024 && budget < Number(body["max_tokens"])
      ? []
      : ["`max_tokens` must be greater than `thinking.budget_tokens`"]),
    ...(inLoop && first !== "thinking" && first !== "redacted_thinking"
      ? [`Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first)}\`.`]
      : [])
  ]
}

/** The problems of a request's body. `remote`: whether the platform fetches URLs and has files. */
export const bodyViolations = (body: Part, remote = true): ReadonlyArray<string> => [
  ...halves(body),
  ...Object.keys(body).flatMap((key) => (known.has(key) ? [] : [`${key}: Extra inputs are not permitted`])),
  ...checkMessages(list(body["messages"]), remote),
  ...list(body["system"]).flatMap((part, index) => checkPart(part, "user", `system.${index}`, remote)),
  ...checkTools(body),
  ...checkThinking(body),
  ...checkContainer(body),
  ...(breakpoints(body) <= 4 ? [] : ["A maximum of 4 blocks with cache_control may be provided."])
]

/** The problems of a request to Anthropic's own API. */
export const violations = (request: {
  readonly url: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: unknown
}): ReadonlyArray<string> => {
  const body = isPart(request.body) ? request.body : {}
  const sampling = ["temperature", "top_p", "top_k"].filter((key) => key in body)
  const version = request.headers["anthropic-version"]
  if (request.url === "/v1/messages/count_tokens") {
    const extra = ["max_tokens", "stream", "stop_sequences", "metadata", "service_tier"].filter((key) => key in body)
    return [...extra.map((key) => `${key}: Extra inputs are not permitted`), ...bodyViolations(body)]
  }
  return [
    ...(request.url === "/v1/messages" ? [] : [`no such path: ${request.url}`]),
    ...(typeof body["model"] === "string" ? [] : ["model: Field required"]),
    ...(Number(body["max_tokens"]) >= 1 ? [] : ["max_tokens: Field required"]),
    ...(version === "2026-10-21" && sampling.length > 0
      ? [`${sampling.join()} is not supported in this API version`]
      : []),
    ...bodyViolations(body)
  ]
}
