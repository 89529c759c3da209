/**
 * Recognises the entries that threads are mostly made of: schemas read everything, and take several times as long.
 * Nothing is taken here that the schema of entries would refuse, or give otherwise.
 */
import { isObject } from "../../core/Json.ts"
import type { Entry } from "../../core/SessionStore.ts"
import { version } from "../../support/version.ts"

/** Recognises a value of a type. */
type Is = (value: unknown) => boolean

const isText: Is = (value) => typeof value === "string"
const isNumber: Is = (value) => Number.isFinite(value)
const isFlag: Is = (value) => typeof value === "boolean"
const is =
  (...literals: ReadonlyArray<unknown>): Is =>
  (value) =>
    literals.includes(value)
const listOf =
  (isItem: Is): Is =>
  (value) =>
    Array.isArray(value) && value.every(isItem)

/** Recognises an object that has these keys, perhaps some of the others, and no more. */
const struct = (required: { readonly [key: string]: Is }, optional: { readonly [key: string]: Is } = {}): Is => {
  const fields = new Map<string, { readonly check: Is; readonly weight: number }>()
  for (const [key, check] of Object.entries(required)) fields.set(key, { check, weight: 1 })
  for (const [key, check] of Object.entries(optional)) fields.set(key, { check, weight: 0 })
  const count = Object.keys(required).length
  return (value) => {
    if (!isObject(value)) return false
    let found = 0
    for (const key of Object.keys(value)) {
      const field = fields.get(key)
      if (field === undefined || !field.check(value[key])) return false
      found += field.weight
    }
    return found === count
  }
}

/** Arguments of most calls: what is nested is left to the schema. */
const isFlat: Is = (value) =>
  isObject(value) &&
  Object.entries(value).every(
    ([key, one]) => key !== "__proto__" && (isText(one) || isFlag(one) || one === null || isNumber(one))
  )

const common = { id: isText, content: listOf(struct({ type: is("text"), text: isText })) }
const source = { source: isText }
const isUsage = struct(
  {
    inputTokens: isNumber,
    outputTokens: isNumber,
    cacheReadTokens: isNumber,
    cacheWriteTokens: isNumber,
    reasoningTokens: isNumber
  },
  { cost: isNumber }
)
const roles: { readonly [role: string]: Is } = {
  human: struct({ role: isText, ...common }, source),
  ai: struct(
    {
      role: isText,
      ...common,
      toolCalls: listOf(struct({ id: isText, name: isText, arguments: isFlat })),
      malformedToolCalls: (value) => Array.isArray(value) && value.length === 0,
      stopReason: is("stop", "toolCalls", "length", "contentFilter", "refusal", "pause", "interrupted")
    },
    { ...source, usage: isUsage, model: isText }
  ),
  tool: struct({ role: isText, ...common, toolCallId: isText, toolName: isText, isError: isFlag }, source)
}
const isMessage: Is = (value) => {
  const role = isObject(value) ? value["role"] : undefined
  return (role === "human" || role === "ai" || role === "tool") && roles[role]?.(value) === true
}

const tags: { readonly [tag: string]: { readonly [key: string]: Is } } = {
  Message: { _tag: isText, message: isMessage },
  Step: { _tag: isText, usage: isUsage, rounds: isNumber },
  RunStarted: { _tag: isText, runId: isText, agent: isText },
  RunSettled: { _tag: isText, runId: isText, outcome: isText }
}
const entries = new Map(Object.entries(tags).map(([tag, fields]) => [tag, struct(fields)]))

const tagOf = (value: unknown): string => {
  const tag = isObject(value) ? value["_tag"] : undefined
  return typeof tag === "string" ? tag : ""
}

const isUsual = (value: unknown): value is Entry => entries.get(tagOf(value))?.(value) === true

/** Gives an entry that says the version of today; `undefined` for what its schema must read. */
export const usual = (value: unknown): Entry | undefined => {
  if (!isObject(value) || value["v"] !== version) return undefined
  const { v: _, ...entry } = value
  return isUsual(entry) ? entry : undefined
}
