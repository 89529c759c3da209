/** Schemas of agent servers' answers, limited to the fields in use. */
import * as Schema from "effect/Schema"
import { isObject } from "../../../core/Json.ts"
import { add, make, type Usage } from "../../../core/Usage.ts"
import { visible } from "../../../support/text/untrusted.ts"

/** A server's id. It becomes a part of addresses, so it can't be a path. */
export const Id = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,128}$/))

export const ThreadCreated = Schema.Struct({ thread_id: Id })

/** A run. Some servers other than LangGraph's own report `cancelled`. */
export const RunAnswer = Schema.Struct({
  run_id: Id,
  status: Schema.Literals(["pending", "running", "success", "error", "timeout", "interrupted", "cancelled"]),
  error: Schema.optionalKey(Schema.Unknown)
})

/** A thread: LangGraph has its messages in `values`, the Agent Protocol may have them beside. */
export const ThreadAnswer = Schema.Struct({
  values: Schema.optionalKey(Schema.Unknown),
  messages: Schema.optionalKey(Schema.Unknown),
  interrupts: Schema.optionalKey(Schema.Unknown),
  status: Schema.optionalKey(Schema.Unknown)
})

/** Characters of a question to a person there that are shown. */
const maxAsked = 4_000

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content
    .flatMap((block) => {
      if (typeof block === "string") return [block]
      return isObject(block) && block["type"] === "text" && typeof block["text"] === "string" ? [block["text"]] : []
    })
    .join("\n")
}

const names = {
  human: new Set(["human", "HumanMessage", "HumanMessageChunk", "user"]),
  model: new Set(["ai", "AIMessage", "AIMessageChunk", "assistant"])
}

/** LangChain names a message's author by `type`, others by `role`. */
const isFrom = (
  who: keyof typeof names,
  message: unknown
): message is { readonly [key: string]: unknown } & { readonly content?: unknown } =>
  isObject(message) &&
  [message["type"], message["role"]].some((name) => typeof name === "string" && names[who].has(name))

const messagesOf = ({ messages, values }: typeof ThreadAnswer.Type): ReadonlyArray<unknown> => {
  const inside = isObject(values) ? values["messages"] : undefined
  return Array.isArray(messages) ? messages : Array.isArray(inside) ? inside : []
}

/** Reads a token count. Only valid counts are added, so that no answer can lower the use. */
const count = (from: unknown, key: string): number => {
  const value = isObject(from) ? from[key] : undefined
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0
}

/** The tokens that a thread's messages report (`usage_metadata`, as LangChain has it). */
export const usageOf = (thread: typeof ThreadAnswer.Type): Usage | undefined => {
  let total: Usage | undefined
  for (const message of messagesOf(thread)) {
    const metadata = isFrom("model", message) ? message["usage_metadata"] : undefined
    if (!isObject(metadata)) continue
    const inputDetails = metadata["input_token_details"]
    const usage = make({
      inputTokens: count(metadata, "input_tokens"),
      outputTokens: count(metadata, "output_tokens"),
      cacheReadTokens: count(inputDetails, "cache_read"),
      cacheWriteTokens: count(inputDetails, "cache_creation"),
      reasoningTokens: count(metadata["output_token_details"], "reasoning")
    })
    total = total === undefined ? usage : add(total, usage)
  }
  return total
}

/** The final answer of a thread: the agent's last message after the last input. */
export const answerOf = (thread: typeof ThreadAnswer.Type): string => {
  const all = messagesOf(thread)
  const since = all.slice(all.findLastIndex((message) => isFrom("human", message)) + 1)
  const last = since.findLast((message) => isFrom("model", message) && textOf(message.content) !== "")
  return isFrom("model", last) ? visible(textOf(last.content)) : "The agent ended without an answer."
}

/** The question that a thread waits on; `undefined` without one. */
export const askedOf = ({ interrupts }: typeof ThreadAnswer.Type): string | undefined => {
  const values = isObject(interrupts) ? Object.values(interrupts).flat() : Array.isArray(interrupts) ? interrupts : []
  if (values.length === 0) return undefined
  const text = values.map((one) => JSON.stringify(isObject(one) ? (one["value"] ?? null) : one)).join("\n")
  return visible(text).slice(0, maxAsked)
}

/** The reason of a failed run, as far as the server reports it. */
export const errorOf = ({ error, status }: typeof RunAnswer.Type): string => {
  const inside = isObject(error) ? error["message"] : error
  const why = typeof inside === "string" && inside !== "" ? `: ${visible(inside).slice(0, maxAsked)}` : "."
  return status === "timeout" ? `It took too long on its server${why}` : `It failed on its server${why}`
}
