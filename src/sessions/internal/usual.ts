/**
 * Recognises the entries that threads are mostly made of: schemas read everything, and take several times as long.
 * Nothing is taken here that the schema of entries would refuse, or give otherwise. What is given is a copy.
 */
import type { Block } from "../../core/Content.ts"
import type { Entry } from "../../core/Journal.ts"
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"
import type { AiMessage, HumanMessage, Message, ToolMessage } from "../../core/Message.ts"
import type { ToolCall } from "../../core/ToolCall.ts"
import type { Usage } from "../../core/Usage.ts"
import { version } from "../../support/version.ts"

type Mutable<A> = { -readonly [Key in keyof A]: A[Key] }

/** The keys of an object must be those that were looked at, and no more. */
const has = (value: object, count: number): boolean => Object.keys(value).length === count

/** The depth from which values are left to the schema. */
const deepest = 32

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const jsonObject = (value: unknown, left = deepest): JsonObject | undefined => {
  if (left === 0 || !isObject(value) || !isPlain(value)) return undefined
  const copy: { [key: string]: Json } = {}
  for (const key of Object.keys(value)) {
    const one = json(value[key], left - 1)
    if (one === undefined || key === "__proto__") return undefined
    copy[key] = one
  }
  return copy
}

const json = (value: unknown, left = deepest): Json | undefined => {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return value
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined
  return Array.isArray(value) ? listOf(value, (one) => json(one, left - 1), left) : jsonObject(value, left)
}

/** A list of which each item is recognised. */
export const listOf = <A>(
  value: unknown,
  read: (item: unknown) => A | undefined,
  left = deepest
): Array<A> | undefined => {
  if (left === 0 || !Array.isArray(value)) return undefined
  const items: Array<A> = []
  // By its numbers: a hole is an item, too.
  for (let index = 0; index < value.length; index++) {
    const item = read(value[index])
    if (item === undefined) return undefined
    items.push(item)
  }
  return items
}

const block = (value: unknown): Block | undefined => {
  if (!isObject(value)) return undefined
  const { providerData, text, type } = value
  if ((type !== "text" && type !== "reasoning") || typeof text !== "string") return undefined
  if (providerData === undefined) return has(value, 2) ? { type, text } : undefined
  const data = jsonObject(providerData)
  return data !== undefined && has(value, 3) ? { type, text, providerData: data } : undefined
}

const toolCall = (value: unknown): ToolCall | undefined => {
  if (!isObject(value)) return undefined
  const { arguments: given, id, name, providerData } = value
  const args = jsonObject(given)
  if (typeof id !== "string" || typeof name !== "string" || args === undefined) return undefined
  if (providerData === undefined) return has(value, 3) ? { id, name, arguments: args } : undefined
  const data = jsonObject(providerData)
  return data !== undefined && has(value, 4) ? { id, name, arguments: args, providerData: data } : undefined
}

const isNumber = (value: unknown): value is number => Number.isFinite(value)

const usageOf = (value: unknown): Usage | undefined => {
  if (!isObject(value)) return undefined
  const { cacheReadTokens, cacheWriteTokens, cost, inputTokens, outputTokens, reasoningTokens } = value
  if (!isNumber(inputTokens) || !isNumber(outputTokens) || !isNumber(reasoningTokens)) return undefined
  if (!isNumber(cacheReadTokens) || !isNumber(cacheWriteTokens)) return undefined
  if (cost === undefined) {
    const usage = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens }
    return has(value, 5) ? usage : undefined
  }
  return isNumber(cost) && has(value, 6)
    ? { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, cost }
    : undefined
}

/** Puts what a message may have beside its content, and says how many keys that is; -1: the schema must read it. */
const putOptions = (to: Mutable<Message>, { providerData, source }: JsonObject): number => {
  let count = 0
  if (source !== undefined) {
    if (typeof source !== "string") return -1
    to.source = source
    count++
  }
  if (providerData !== undefined) {
    const data = jsonObject(providerData)
    if (data === undefined) return -1
    to.providerData = data
    count++
  }
  return count
}

const stops: ReadonlyMap<unknown, AiMessage["stopReason"]> = new Map(
  (["stop", "toolCalls", "length", "contentFilter", "refusal", "pause", "interrupted"] as const).map((one) => [
    one,
    one
  ])
)

const aiMessage = (value: JsonObject, id: string, content: ReadonlyArray<Block>): AiMessage | undefined => {
  const { malformedToolCalls, model, stopReason, toolCalls, usage } = value
  const calls = listOf(toolCalls, toolCall)
  const stop = stops.get(stopReason)
  if (calls === undefined || stop === undefined) return undefined
  if (!Array.isArray(malformedToolCalls) || malformedToolCalls.length > 0) return undefined
  const message: Mutable<AiMessage> = {
    role: "ai",
    id,
    content,
    toolCalls: calls,
    malformedToolCalls: [],
    stopReason: stop
  }
  const options = putOptions(message, value)
  let count = 6 + options
  if (usage !== undefined) {
    const used = usageOf(usage)
    if (used === undefined) return undefined
    message.usage = used
    count++
  }
  if (model !== undefined) {
    if (typeof model !== "string") return undefined
    message.model = model
    count++
  }
  return options >= 0 && has(value, count) ? message : undefined
}

const messageOf = (value: unknown): Message | undefined => {
  if (!isObject(value)) return undefined
  const { id, isError, role, toolCallId, toolName } = value
  const content = listOf(value["content"], block)
  if (typeof id !== "string" || content === undefined) return undefined
  if (role === "ai") return aiMessage(value, id, content)
  if (role === "human") {
    const message: Mutable<HumanMessage> = { role, id, content }
    const options = putOptions(message, value)
    return options >= 0 && has(value, 3 + options) ? message : undefined
  }
  if (role !== "tool" || typeof toolCallId !== "string" || typeof toolName !== "string") return undefined
  if (typeof isError !== "boolean") return undefined
  const message: Mutable<ToolMessage> = { role, id, content, toolCallId, toolName, isError }
  const options = putOptions(message, value)
  return options >= 0 && has(value, 6 + options) ? message : undefined
}

/** Gives an entry that is among so many other keys; `undefined` for what its schema must read. */
const entryOf = (value: JsonObject, others: number): Entry | undefined => {
  const { _tag, agent, outcome, rounds, runId, slot } = value
  if (_tag === "Message") {
    const message = messageOf(value["message"])
    return message !== undefined && has(value, 2 + others) ? { _tag, message } : undefined
  }
  if (_tag === "State" && typeof slot === "string") {
    if (value["value"] === undefined) return has(value, 2 + others) ? { _tag, slot } : undefined
    const known = json(value["value"])
    return known !== undefined && has(value, 3 + others) ? { _tag, slot, value: known } : undefined
  }
  if (!has(value, 3 + others)) return undefined
  if (_tag === "Step" && isNumber(rounds)) {
    const usage = usageOf(value["usage"])
    return usage === undefined ? undefined : { _tag, usage, rounds }
  }
  if (typeof runId !== "string") return undefined
  if (_tag === "RunStarted" && typeof agent === "string") return { _tag, runId, agent }
  return _tag === "RunSettled" && typeof outcome === "string" ? { _tag, runId, outcome } : undefined
}

/** Gives an entry as runs make it; `undefined` for what its schema must read. */
export const usualNew = (value: unknown): Entry | undefined => (isObject(value) ? entryOf(value, 0) : undefined)

/** Gives an entry that says the version of today; `undefined` for what its schema must read. */
export const usual = (value: unknown): Entry | undefined =>
  isObject(value) && value["v"] === version ? entryOf(value, 1) : undefined
