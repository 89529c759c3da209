/** Reads what a script said. A script can say anything: only calls, lines and one result come of it. */
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import type { Json } from "../../core/Json.ts"
import { cut } from "../../support/text/text.ts"
import { type ScriptCall, type Rest, ScriptError, type ScriptLine } from "../Scripts.ts"
import { maxValues, scriptName } from "./messages.ts"

type Item = readonly [id: number, kind: string, name: string, json: string]

const isItem = (item: unknown): item is Item =>
  Array.isArray(item) &&
  item.length === 4 &&
  typeof item[0] === "number" &&
  item.slice(1).every((part) => typeof part === "string")

/** The kinds of calls that wait for an answer. */
const asks: ReadonlySet<string> = new Set(["tool", "agent", "ask", "search", "describe", "store", "load", "budget"])

const parseJson = (text: string): Json => JSON.parse(text)

/** The most characters of a message and of a stack trace: a script chooses both. */
const longest = { message: 10_000, stack: 2_000 } as const

/** The lines of a stack trace that are of the script. Lines of the host would tell its paths. */
export const ownStack = (stack = ""): string =>
  cut(
    stack
      .split("\n")
      .filter((line) => line.includes(scriptName))
      .slice(0, 10)
      .join("\n"),
    longest.stack
  )

const thrown = (name: string, json: string): ScriptError => {
  const at = json.indexOf("\n")
  const [message, stack] = [json.slice(0, at), json.slice(at + 1)].map(parseJson)
  const text = cut(`${name}: ${typeof message === "string" ? message : ""}`, longest.message)
  return new ScriptError({
    reason: text === "InternalError: out of memory" ? "Memory" : "Threw",
    message: text,
    stack: ownStack(typeof stack === "string" ? stack : "")
  })
}

const broken = new ScriptError({
  reason: "Crashed",
  message: "The script sent an invalid message: it has replaced a part of its world that it needs."
})

const tooMany = new ScriptError({
  reason: "Size",
  message: `The script passed more than ${maxValues} values to calls at once. Pass large data as text, or in parts.`
})

/** Counts the values of a JSON text without reading it: the commas and brackets outside of its strings. */
const countValues = (json: string): number => {
  let count = 0
  let isString = false
  for (let at = 0; at < json.length; at++) {
    const letter = json[at]
    if (isString && letter === "\\") at++
    else if (letter === '"') isString = !isString
    else if (!isString && (letter === "," || letter === "[" || letter === "{")) count++
  }
  return count
}

const readItems = (text: string): Result.Result<Rest, ScriptError> => {
  const items: unknown = JSON.parse(text)
  if (!Array.isArray(items)) return Result.fail(broken)
  const calls: Array<ScriptCall> = []
  let values = 0
  const messages: Array<ScriptLine> = []
  for (const item of items) {
    if (!isItem(item)) return Result.fail(broken)
    const [id, kind, name, json] = item
    if (kind === "throw") return Result.fail(thrown(name, json))
    if (kind === "return") return Result.succeed({ asked: calls, told: messages, result: { value: parseJson(json) } })
    if (kind === "text") messages.push({ kind, text: json })
    else if (kind === "phase") messages.push({ kind, text: json })
    else if (!asks.has(kind)) return Result.fail(broken)
    else {
      values += countValues(json)
      if (values > maxValues) return Result.fail(tooMany)
      calls.push({ id, kind, name, given: parseJson(json) })
    }
  }
  return Result.succeed({ asked: calls, told: messages })
}

/** Reads one report of a script. */
export const readSaid = (text: string): Result.Result<Rest, ScriptError> =>
  Result.flatMap(Result.try({ try: () => readItems(text), catch: () => broken }), identity)
