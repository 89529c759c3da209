/** The special refusals of each server with Chat Completions, from its documentation and from errors that people report. Each function lists the problems of a request. */
import { chatProblems } from "../openai/rules.ts"

// A client's request is inspected as it is.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

export type Rules = (body: Any) => ReadonlyArray<string>

const assistants = (body: Any): ReadonlyArray<Any> =>
  body.messages.filter((message: Any) => message.role === "assistant")

const partsOf = (body: Any): ReadonlyArray<Any> =>
  body.messages.flatMap((message: Any) => (Array.isArray(message.content) ? message.content : []))

const only =
  (...types: ReadonlyArray<string>): Rules =>
  (body) =>
    partsOf(body).flatMap((part) => (types.includes(part.type) ? [] : [`a part of type ${part.type}`]))

/** Fields that any server may get without refusing the request. */
const common = [
  "model",
  "messages",
  "stream",
  "tools",
  "tool_choice",
  "temperature",
  "top_p",
  "response_format",
  "stop"
]

const fields =
  (...more: ReadonlyArray<string>): Rules =>
  (body) =>
    Object.keys(body).flatMap((key) => ([...common, ...more].includes(key) ? [] : [`extra_forbidden: ${key}`]))

const mistralIds: Rules = (body) =>
  [
    ...assistants(body).flatMap((message) => (message.tool_calls ?? []).map((call: Any) => call.id)),
    ...body.messages.flatMap((message: Any) => message.tool_call_id ?? [])
  ].flatMap((id) =>
    /^[a-zA-Z0-9]{9}$/.test(id) ? [] : [`Tool call id was ${id} but must be a-z, A-Z, 0-9, of length 9`]
  )

const noHumanAfterTool: Rules = (body) =>
  body.messages.flatMap((message: Any, index: number) =>
    message.role === "user" && body.messages[index - 1]?.role === "tool"
      ? ["Unexpected role 'user' after role 'tool'"]
      : []
  )

const signatures: Rules = (body) =>
  /gemini-[12]\./.test(body.model)
    ? []
    : assistants(body).flatMap((message) => {
        const [first] = message.tool_calls ?? []
        if (first === undefined) return []
        const { thought_signature } = first.extra_content?.google ?? {}
        return typeof thought_signature === "string" && thought_signature !== ""
          ? []
          : [`Function call ${first.function.name} is missing a thought_signature`]
      })

const reasoningInEach: Rules = (body) =>
  assistants(body).flatMap((message) =>
    typeof message.reasoning_content === "string"
      ? []
      : ["The `reasoning_content` in the thinking mode must be passed back to the API."]
  )

const noForcedTools: Rules = (body) =>
  body.tool_choice === undefined || typeof body.tool_choice === "string" ? [] : ["this tool_choice is not supported"]

const noForeignReasoning =
  (...known: ReadonlyArray<string>): Rules =>
  (body) =>
    assistants(body).flatMap((message) =>
      Object.keys(message).flatMap((key) =>
        ["role", "content", "tool_calls", ...known].includes(key) ? [] : [`'messages' has the property '${key}'`]
      )
    )

const all =
  (...rules: ReadonlyArray<Rules>): Rules =>
  (body) =>
    rules.flatMap((rule) => rule(body))

/** OpenAI's own rules look at the content of assistants as text, and know no documents of Mistral's. */
const generic: Rules = (body) =>
  chatProblems({
    ...body,
    messages: body.messages.map((message: Any) =>
      message.role === "assistant" && Array.isArray(message.content)
        ? { ...message, content: message.content.map((part: Any) => part.text ?? part.thinking?.[0]?.text).join("") }
        : Array.isArray(message.content)
          ? {
              ...message,
              content: message.content.map((part: Any) =>
                part.type === "document_url" ? { type: "text", text: part.document_url } : part
              )
            }
          : message
    )
  })

/** Gateways to Claude take marks on texts, at most four, and none on an empty one. Without them, all is as elsewhere. */
const marked =
  (rules: Rules): Rules =>
  (body) => {
    const marks = partsOf(body).filter((part) => part.cache_control !== undefined)
    const plain = (content: Any): Any => {
      if (!Array.isArray(content)) return content
      const parts = content.map(({ cache_control: _, ...part }: Any) => part)
      return parts.length === 1 && parts[0].type === "text" ? parts[0].text : parts
    }
    const messages = body.messages.map((message: Any) => ({ ...message, content: plain(message.content) }))
    return [
      ...(marks.length > 4 ? ["A maximum of 4 blocks with cache_control may be provided"] : []),
      ...marks.flatMap(({ text, type }) =>
        type === "text" && text !== "" ? [] : ["cache_control cannot be set for empty text blocks"]
      ),
      ...rules({ ...body, messages })
    ]
  }

const pictures = only("text", "image_url")

const usage = "stream_options"

/** The rules of each server, by its name. */
export const rules: Readonly<Record<string, Rules>> = {
  gemini: all(
    generic,
    signatures,
    only("text", "image_url", "input_audio"),
    fields(usage, "max_tokens", "reasoning_effort", "extra_body")
  ),
  xai: all(generic, pictures, fields(usage, "max_tokens", "reasoning_effort")),
  mistral: all(
    generic,
    mistralIds,
    noHumanAfterTool,
    noForeignReasoning(),
    only("text", "image_url", "document_url", "thinking"),
    fields("max_tokens", "reasoning_effort")
  ),
  deepseek: all(
    generic,
    reasoningInEach,
    noForcedTools,
    pictures,
    fields(usage, "max_tokens", "reasoning_effort", "thinking")
  ),
  groq: all(
    generic,
    noForeignReasoning("reasoning"),
    pictures,
    fields(usage, "max_completion_tokens", "reasoning_effort")
  ),
  together: all(generic, pictures, fields(usage, "max_tokens", "reasoning_effort", "reasoning")),
  fireworks: all(generic, pictures, fields(usage, "max_tokens", "reasoning_effort")),
  cerebras: all(
    generic,
    pictures,
    noForeignReasoning("reasoning"),
    fields(usage, "max_completion_tokens", "reasoning_effort")
  ),
  openrouter: marked(
    all(generic, only("text", "image_url", "file", "input_audio"), fields(usage, "max_tokens", "reasoning"))
  ),
  litellm: marked(
    all(generic, only("text", "image_url", "file", "input_audio"), fields(usage, "max_tokens", "reasoning_effort"))
  ),
  "lm-studio": all(generic, pictures, fields(usage, "max_tokens", "reasoning_effort")),
  "llama-server": all(generic, pictures, fields(usage, "max_tokens", "reasoning_effort", "chat_template_kwargs")),
  vllm: all(generic, pictures, fields(usage, "max_tokens", "reasoning_effort", "chat_template_kwargs"))
}
