/** A call as a JSON object, `{"name": "f", "arguments": {…}}`, read as it comes. */
import * as Result from "effect/Result"
import type { OpenCall } from "./calls.ts"
import { at, type Cursor, expected, type Parser, type Problem, space } from "./cursor.ts"
import { json, toJson, value } from "./literal.ts"

const isQuote = (char: string): boolean => char === '"' || char === "'"

const asString = (text: string): string | undefined => {
  const parsed = Result.try((): unknown => JSON.parse(text))
  return Result.isSuccess(parsed) && typeof parsed.success === "string" ? parsed.success : undefined
}

/** The fields that were read so far. */
interface SeenFields {
  name: boolean
  arguments: boolean
}

const readArguments = function* (cursor: Cursor, call: OpenCall): Parser<Problem> {
  if (!isQuote(cursor.char)) return yield* value(cursor, call.write, json)
  let output = ""
  const wrong = yield* value(cursor, (part) => (output += part), json)
  if (wrong !== undefined) return wrong
  const inner = toJson(asString(output) ?? "", json)
  if (inner === undefined) return "the arguments are a string that is not JSON"
  call.write(inner)
  return undefined
}

const readField = function* (cursor: Cursor, call: OpenCall, fields: SeenFields, outermost: boolean): Parser<Problem> {
  let output = ""
  const collect = (part: string) => (output += part)
  if (!isQuote(cursor.char)) return expected(cursor, "a key in quotes")
  const wrongKey = yield* value(cursor, collect, json)
  if (wrongKey !== undefined) return wrongKey
  const key = asString(output)
  yield* space(cursor)
  if (!at(cursor, ":")) return expected(cursor, "`:`")
  yield
  yield* space(cursor)
  if (key === "name" && !fields.name) {
    output = ""
    const wrong = yield* value(cursor, collect, json)
    if (wrong !== undefined) return wrong
    const name = asString(output)
    if (name === undefined) return "the name of the tool is not a string"
    fields.name = true
    call.name(name)
    return undefined
  }
  if ((key === "arguments" || key === "parameters") && !fields.arguments) {
    fields.arguments = true
    return yield* readArguments(cursor, call)
  }
  if (key === "function" && outermost && at(cursor, "{")) return yield* readFields(cursor, call, fields, false)
  return yield* value(cursor, () => undefined, json)
}

const readFields = function* (cursor: Cursor, call: OpenCall, fields: SeenFields, outermost: boolean): Parser<Problem> {
  yield
  for (;;) {
    yield* space(cursor)
    if (at(cursor, "}")) break
    const wrong = yield* readField(cursor, call, fields, outermost)
    if (wrong !== undefined) return wrong
    yield* space(cursor)
    if (at(cursor, "}")) break
    if (!at(cursor, ",")) return expected(cursor, "`,` or `}`")
    yield
  }
  yield
  return undefined
}

/** Reads the object, which `cursor.char` opens. Other fields than the name and the arguments are passed over. */
export const readObject = function* (cursor: Cursor, call: OpenCall): Parser<Problem> {
  const fields: SeenFields = { name: false, arguments: false }
  const wrong = yield* readFields(cursor, call, fields, true)
  if (wrong === undefined && !fields.arguments) call.write("{}")
  return wrong
}
