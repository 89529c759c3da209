/**
 * Qwen 3 Coder, Qwen 3.5 and later: calls as tags,
 * `<tool_call><function=f><parameter=a>1</parameter></function></tool_call>`.
 */
import type { ToolDefinition } from "../../../../core/ChatModel.ts"
import { isObject, type Json, type JsonObject } from "../../../../core/Json.ts"
import { allows, alternativesOf, membersOf } from "../../../../support/json/jsonSchema.ts"
import type { AnsweredCall } from "../../../internal/turn/normalize.ts"
import type { OpenCall, OpenCalls } from "./calls.ts"
import { chatml, chatStops, thinkTags } from "./chatml.ts"
import { type Codec, type Piece, plain, special } from "./Codec.ts"
import { at, type Cursor, expected, type Parser, type Problem, skipTo, space, tag } from "./cursor.ts"
import { callTags, readTagged, resultTurn, toolLines } from "./hermes.ts"
import { python, toJson } from "./literal.ts"
import { makeDecoder } from "./scanner.ts"
import { escaped } from "./strings.ts"

const functionOpen = "<function="
const functionClose = "</function>"
const parameterOpen = "<parameter="
const parameterClose = "</parameter>"

/** Reads the name in an opening tag. */
const named = function* (cursor: Cursor): Parser<string> {
  let name = ""
  while (!at(cursor, "") && !at(cursor, ">") && !at(cursor, "<") && !at(cursor, "\n")) {
    name += cursor.char
    yield
  }
  return name.trim()
}

/**
 * Reads a value and the tag after it: the next parameter or the end. The notation has no escapes, so a closing tag
 * counts only before one of these. One line break on either side is not part of the value.
 */
const readValue = function* (cursor: Cursor, say: (char: string) => void): Parser<string | undefined> {
  let lineBreak = false
  const take = (text: string): void => {
    for (const char of text.split("")) {
      if (lineBreak) say("\n")
      lineBreak = char === "\n"
      if (!lineBreak) say(char)
    }
  }
  if (at(cursor, "\n")) yield
  while (!at(cursor, "")) {
    if (!at(cursor, "<")) {
      take(cursor.char)
      yield
      continue
    }
    let tagText = yield* tag(cursor, [parameterClose])
    while (tagText === parameterClose) {
      const closed = tagText + (yield* space(cursor))
      tagText = yield* tag(cursor, [parameterOpen, functionClose, parameterClose])
      if (tagText === parameterOpen || tagText === functionClose) return tagText
      take(closed)
    }
    take(tagText)
  }
  return undefined
}

/** Reports whether a value of this schema is text as it stands, and not JSON. One of an unknown schema is text. */
const isText = (rawSchema: Json | undefined, root: JsonObject): boolean =>
  [...alternativesOf(rawSchema, root)].some((schema) => {
    if (membersOf(schema) !== undefined) return false
    const { const: constant, enum: values, type } = schema
    const listed = Array.isArray(values) ? values : constant === undefined ? undefined : [constant]
    return listed?.some((item) => typeof item === "string") ?? (type === undefined || allows(schema, "string"))
  })

const propertyOf = (tool: ToolDefinition | undefined, name: string): boolean => {
  const root = tool?.parameters ?? {}
  const { properties } = root
  return isText(isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined, root)
}

const readParameter = function* (cursor: Cursor, call: OpenCall, text: boolean): Parser<string | undefined> {
  if (text) {
    call.write('"')
    const next = yield* readValue(cursor, (char) => call.write(escaped(char)))
    call.write('"')
    return next
  }
  let source = ""
  const next = yield* readValue(cursor, (char) => (source += char))
  call.write(toJson(source, python) ?? JSON.stringify(source))
  return next
}

/** A call behind its `<function=`. */
const readFunction = function* (
  cursor: Cursor,
  call: OpenCall,
  tools: ReadonlyArray<ToolDefinition>,
  begun: string
): Parser<Problem> {
  const name = (begun + (yield* named(cursor))).trim()
  if (!at(cursor, ">")) return expected(cursor, "`>` behind the name of the function")
  yield
  call.name(name)
  call.write("{")
  const tool = tools.find((one) => one.name === name)
  yield* space(cursor)
  let next: string | undefined = yield* tag(cursor, [parameterOpen, functionClose])
  for (let first = true; next === parameterOpen; first = false) {
    const parameter = yield* named(cursor)
    if (!at(cursor, ">")) return expected(cursor, "`>` behind the name of the parameter")
    yield
    call.write(`${first ? "" : ","}${JSON.stringify(parameter)}:`)
    next = yield* readParameter(cursor, call, propertyOf(tool, parameter))
    if (next === undefined) return `parameter \`${parameter}\` is not closed`
  }
  if (next !== functionClose) return expected(cursor, `\`${parameterOpen}\` or \`${functionClose}\``)
  call.write("}")
  return undefined
}

/** The calls between two tags. Calls may lack these tags. */
const readCalls = function* (
  cursor: Cursor,
  opening: string,
  open: OpenCalls,
  tools: ReadonlyArray<ToolDefinition>,
  begun: string
): Parser<void> {
  const bare = opening === functionOpen
  const close = bare ? functionClose : callTags.close
  if (!bare) {
    yield* space(cursor)
    if (at(cursor, "{")) return yield* readTagged(cursor, open)
  }
  let next = bare ? functionOpen : yield* tag(cursor, [functionOpen, callTags.close])
  for (let first = true; first || next === functionOpen; first = false) {
    const call = open()
    const wrong =
      next === functionOpen
        ? yield* readFunction(cursor, call, tools, first ? begun : "")
        : expected(cursor, "`<function=`")
    if (wrong !== undefined) {
      if (next !== close) yield* skipTo(cursor, close)
      return call.fail(cursor.raw, wrong)
    }
    const { raw } = cursor
    if (bare) return call.close(() => raw)
    yield* space(cursor)
    const isEnd = at(cursor, "")
    next = isEnd ? callTags.close : yield* tag(cursor, [functionOpen, callTags.close])
    if (next !== functionOpen && next !== callTags.close) {
      const problem = expected(cursor, `\`${callTags.close}\``)
      yield* skipTo(cursor, callTags.close)
      const junk = cursor.raw.slice(raw.length)
      // The supposed end of the call stood in a value, and half of a value is worse than none.
      if (junk.includes(parameterClose) || junk.includes(functionClose)) return call.fail(cursor.raw, problem)
      call.close(() => raw)
      return open().fail(junk, problem)
    }
    call.close(() => raw)
    if (next === functionOpen) cursor.raw = next
  }
}

const writeValue = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value))

const callPieces = (calls: ReadonlyArray<AnsweredCall>): ReadonlyArray<Piece> =>
  calls.flatMap((call) => {
    if (call.raw !== undefined) return [plain(`\n${call.raw}`)]
    const parameters = Object.entries(call.arguments).map(
      ([name, item]) => `${parameterOpen}${name}>\n${writeValue(item)}\n${parameterClose}\n`
    )
    return [
      plain("\n"),
      special(callTags.open),
      plain(`\n${functionOpen}${call.name}>\n${parameters.join("")}${functionClose}\n`),
      special(callTags.close)
    ]
  })

const example = `<function=example_function>
<parameter=example_parameter>
its value, which may span
several lines
</parameter>
</function>`

/** The codec of Qwen's tags. */
export const qwenXml: Codec = {
  name: "qwen-xml",
  stops: chatStops,
  prompt: (ask) =>
    chatml(ask, {
      tools: [
        plain("# Tools\n\nYou have access to the following functions:\n\n"),
        ...toolLines(ask),
        plain("\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n"),
        special(callTags.open),
        plain(`\n${example}\n`),
        special(callTags.close),
        plain("\n\nRequired parameters MUST be given. Reasoning may stand before a call, but not after it.")
      ],
      calls: callPieces,
      results: resultTurn,
      force: (name) => [
        special(callTags.open),
        plain(name === undefined ? `\n${functionOpen}` : `\n${functionOpen}${name}>\n`)
      ]
    }),
  decoder: ({ inThought, tools }, emit) =>
    makeDecoder(
      {
        thought: thinkTags,
        calls: [callTags.open, functionOpen],
        strays: [callTags.close],
        named: { opening: functionOpen, isKnown: (name) => tools.some((tool) => tool.name === name) },
        isCall: (opening, next) => (opening === functionOpen ? /^\p{L}$/u.test(next) : next === "<" || next === "{"),
        read: (cursor, opening, open, begun) => readCalls(cursor, opening, open, tools, begun)
      },
      inThought,
      emit
    )
}
