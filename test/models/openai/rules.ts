/** The refusals of OpenAI's APIs, as far as their documentation and their error messages say so. Each function lists the problems of a request. */
import { ToolSchema } from "effect-deepagents/models"
import { halves } from "../internal/halves.ts"

const name = /^[a-zA-Z0-9_-]{1,64}$/

// A client's request is inspected as it is.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

const isText = (value: unknown): boolean => typeof value === "string" && value.trim() !== ""

const isObjectText = (value: unknown): boolean => {
  if (typeof value !== "string") return false
  try {
    const parsed: unknown = JSON.parse(value)
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
  } catch {
    return false
  }
}

const pictureUrl =
  /^(?:https?:\/\/|data:image\/(?:png|jpe?g|gif|webp);base64,(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$)/

/** The rules of strict schemas. */
export const strictSchema = (schema: Any, path = "$"): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const allowed = new Set([
    "type",
    "description",
    "enum",
    "properties",
    "required",
    "items",
    "anyOf",
    "$defs",
    "$ref",
    "additionalProperties",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems"
  ])
  for (const key of Object.keys(schema)) if (!allowed.has(key)) wrong.push(`${path}: ${key} is not permitted`)
  if (path === "$" && (schema.type !== "object" || "anyOf" in schema)) wrong.push("the root must be an object")
  if ("$ref" in schema) return Object.keys(schema).length === 1 ? wrong : [...wrong, `${path}: $ref has company`]
  if (!("type" in schema || "anyOf" in schema || "enum" in schema)) wrong.push(`${path}: no type`)
  if (schema.type === "object") {
    const keys = Object.keys(schema.properties ?? {})
    if (schema.additionalProperties !== false) wrong.push(`${path}: additionalProperties must be false`)
    const required = new Set(schema.required)
    if (required.size !== keys.length || keys.some((key) => !required.has(key))) {
      wrong.push(`${path}: not every property is required`)
    }
    for (const key of keys) wrong.push(...strictSchema(schema.properties[key], `${path}.${key}`))
  }
  if (schema.type === "array")
    wrong.push(...(schema.items ? strictSchema(schema.items, `${path}[]`) : [`${path}: no items`]))
  for (const member of schema.anyOf ?? []) wrong.push(...strictSchema(member, `${path}|`))
  for (const key of Object.keys(schema.$defs ?? {})) wrong.push(...strictSchema(schema.$defs[key], `$defs.${key}`))
  return wrong
}

const toolSchema = (schema: Any): ReadonlyArray<string> => ToolSchema.check(schema ?? {})

/** The problems that the Responses API would refuse. */
export const responsesProblems = (body: Any): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const must = (fine: boolean, problem: string): void => void (fine || wrong.push(problem))
  wrong.push(...halves(body))
  must(body.stream === true && isText(body.model), "no model, or not streamed")
  must(body.instructions === undefined || isText(body.instructions), "empty instructions")
  must(Array.isArray(body.input) && body.input.length > 0, "no input")
  const calls = new Set<string>()
  let open: Array<string> = []
  let afterReasoning = false
  const content = (parts: Any, place: string): void => {
    if (typeof parts === "string") return must(isText(parts), `${place}: empty text`)
    must(Array.isArray(parts) && parts.length > 0, `${place}: empty content`)
    for (const part of parts ?? []) {
      switch (part.type) {
        case "input_text":
          must(isText(part.text), `${place}: empty text part`)
          break
        case "input_image":
          must((part.image_url === undefined) !== (part.file_id === undefined), `${place}: image without one source`)
          must(
            part.image_url === undefined || pictureUrl.test(part.image_url),
            `${place}: not a picture: ${part.image_url}`
          )
          must(isText(part.detail), `${place}: image without detail`)
          break
        case "input_file":
          must(
            [part.file_url, part.file_id, part.file_data].filter((one) => one !== undefined).length === 1,
            `${place}: file without one source`
          )
          must(part.file_data === undefined || isText(part.filename), `${place}: file without a name`)
          break
        default:
          wrong.push(`${place}: unknown part ${part.type}`)
      }
    }
  }
  for (const [index, item] of (body.input ?? []).entries()) {
    const type = item.type ?? "message"
    if (afterReasoning && type !== "reasoning")
      must(
        type !== "function_call_output" && item.role !== "user",
        `${index}: reasoning without the item that it led to`
      )
    afterReasoning = type === "reasoning"
    if (
      !["function_call_output", "function_call", "reasoning", "web_search_call"].includes(type) &&
      !type.endsWith("_call")
    ) {
      must(open.length === 0 || item.role === "assistant", `${index}: calls without an answer: ${open.join()}`)
    }
    switch (type) {
      case "message":
        must(["user", "assistant", "system", "developer"].includes(item.role), `${index}: role ${item.role}`)
        must(
          item.role !== "assistant" ||
            item.id !== undefined ||
            body.store !== true ||
            body.input[index - 1]?.type !== "reasoning",
          `${index}: reasoning was provided without its required following item`
        )
        if (item.role === "assistant" && item.id !== undefined) {
          must(body.store === true && item.id.startsWith("msg_"), `${index}: an id that is stored nowhere`)
          must(
            item.content.length > 0 &&
              item.content.every((part: Any) => part.type === "output_text" && isText(part.text) && part.annotations),
            `${index}: empty answer`
          )
        } else if (item.role === "assistant") must(isText(item.content), `${index}: empty answer`)
        else content(item.content, `${index}`)
        break
      case "reasoning":
        must(isText(item.id) && Array.isArray(item.summary) && item.status === undefined, `${index}: reasoning`)
        must(body.store === true || isText(item.encrypted_content), `${index}: reasoning that is stored nowhere`)
        break
      case "function_call":
        must(
          isText(item.call_id) && item.call_id.length <= 64 && !calls.has(item.call_id),
          `${index}: call id ${item.call_id}`
        )
        must(name.test(item.name), `${index}: name ${item.name}`)
        must(isObjectText(item.arguments), `${index}: arguments`)
        calls.add(item.call_id)
        open.push(item.call_id)
        break
      case "function_call_output":
        must(open.includes(item.call_id), `${index}: answer to ${item.call_id}, open: ${open.join()}`)
        open = open.filter((id) => id !== item.call_id)
        content(item.output, `${index}`)
        break
      default:
        must(/^(?:[a-z_]+_call|mcp_list_tools)$/.test(type), `${index}: unknown item ${type}`)
    }
  }
  must(!afterReasoning, "reasoning at the end")
  must(open.length === 0, `calls without an answer: ${open.join()}`)
  must(body.tools === undefined || body.tools.length > 0, "empty tools")
  for (const tool of body.tools ?? []) {
    if (tool.type !== "function") continue
    must(name.test(tool.name) && "strict" in tool, `tool ${tool.name}`)
    wrong.push(...toolSchema(tool.parameters))
  }
  must(
    new Set((body.tools ?? []).map((tool: Any) => tool.name)).size === (body.tools ?? []).length,
    "two tools of one name"
  )
  if (body.text?.format?.strict === true) wrong.push(...strictSchema(body.text.format.schema))
  return wrong
}

/** The problems that OpenAI, and the chat templates of open models, would refuse in a chat completion. */
export const chatProblems = (body: Any): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const must = (fine: boolean, problem: string): void => void (fine || wrong.push(problem))
  wrong.push(...halves(body))
  must(body.stream === true && isText(body.model), "no model, or not streamed")
  must(Array.isArray(body.messages) && body.messages.some((message: Any) => message.role !== "system"), "no messages")
  const calls = new Set<string>()
  let open: Array<string> = []
  let before: string | undefined
  for (const [index, message] of (body.messages ?? []).entries()) {
    if (message.role !== "tool") must(open.length === 0, `${index}: calls without an answer: ${open.join()}`)
    switch (message.role) {
      case "system":
        must(index === 0 && isText(message.content), `${index}: system message`)
        break
      case "user":
        must(before !== "user", `${index}: two user messages`)
        if (typeof message.content === "string") must(isText(message.content), `${index}: empty text`)
        else {
          must(message.content.length > 0, `${index}: empty content`)
          for (const part of message.content) {
            if (part.type === "text") must(isText(part.text), `${index}: empty part`)
            else if (part.type === "image_url")
              must(pictureUrl.test(part.image_url.url), `${index}: ${part.image_url.url}`)
            else if (part.type === "input_audio")
              must(isText(part.input_audio.data) && ["wav", "mp3"].includes(part.input_audio.format), `${index}: audio`)
            else if (part.type === "file") {
              must((part.file.file_id === undefined) !== (part.file.file_data === undefined), `${index}: file`)
              must(part.file.file_data === undefined || isText(part.file.filename), `${index}: file without a name`)
            } else wrong.push(`${index}: unknown part ${part.type}`)
          }
        }
        break
      case "assistant":
        must(before !== "assistant", `${index}: two assistant messages`)
        must(message.tool_calls === undefined || message.tool_calls.length > 0, `${index}: empty tool_calls`)
        must(
          isText(message.content) ||
            (message.content === null && (message.tool_calls !== undefined || isText(message.audio?.id))),
          `${index}: empty answer`
        )
        for (const call of message.tool_calls ?? []) {
          must(isText(call.id) && call.id.length <= 40 && !calls.has(call.id), `${index}: call id ${call.id}`)
          must(call.type === "function" && name.test(call.function.name), `${index}: name ${call.function.name}`)
          must(isObjectText(call.function.arguments), `${index}: arguments`)
          calls.add(call.id)
          open.push(call.id)
        }
        break
      case "tool":
        must(open[0] === message.tool_call_id, `${index}: answer to ${message.tool_call_id}, open: ${open.join()}`)
        open = open.filter((id) => id !== message.tool_call_id)
        must(isText(message.content), `${index}: empty result`)
        break
      default:
        wrong.push(`${index}: role ${message.role}`)
    }
    before = message.role
  }
  must(open.length === 0, `calls without an answer: ${open.join()}`)
  must(body.tools === undefined || body.tools.length > 0, "empty tools")
  for (const tool of body.tools ?? []) {
    must(tool.type === "function" && name.test(tool.function.name), `tool ${tool.function.name}`)
    wrong.push(...toolSchema(tool.function.parameters))
  }
  const format = body.response_format?.json_schema
  if (format?.strict === true) wrong.push(...strictSchema(format.schema))
  return wrong
}
