/** LFM2: calls as a Python list, `<|tool_call_start|>[f(a=1, b=[{"c": "d"}])]<|tool_call_end|>`. */
import { isObject, type Json, type JsonObject } from "../../../../core/Json.ts"
import type { AnsweredCall } from "../../../internal/turn/normalize.ts"
import type { OpenCall, OpenCalls } from "./calls.ts"
import { chatml, chatStops, endOfTurn, textOf, thinkTags } from "./chatml.ts"
import { type Codec, type Piece, plain, special } from "./Codec.ts"
import { at, type Cursor, expected, type Parser, type Problem, skipTo, space, tag } from "./cursor.ts"
import { readObject } from "./jsonCall.ts"
import { python, value } from "./literal.ts"
import { makeDecoder } from "./scanner.ts"

const opening = "<|tool_call_start|>"
const closing = "<|tool_call_end|>"

const isNameStart = (char: string): boolean => /^[\p{L}_]$/u.test(char)

const isNamePart = (char: string): boolean => /^[\p{L}\p{N}_.-]$/u.test(char)

const identifier = function* (cursor: Cursor): Parser<string> {
  let name = ""
  while (isNamePart(cursor.char)) {
    name += cursor.char
    yield
  }
  return name
}

/** The arguments of a call behind its `(`, up to and with the `)`. */
const keywords = function* (cursor: Cursor, write: (json: string) => void): Parser<Problem> {
  write("{")
  for (let first = true; ; first = false) {
    yield* space(cursor)
    if (at(cursor, ")")) break
    if (!isNameStart(cursor.char)) return expected(cursor, "the name of an argument, given as name=value")
    const name = yield* identifier(cursor)
    yield* space(cursor)
    if (!at(cursor, "=")) return expected(cursor, `\`=\` behind \`${name}\`, given as name=value`)
    yield
    write(`${first ? "" : ","}${JSON.stringify(name)}:`)
    const wrong = yield* value(cursor, write, python)
    if (wrong !== undefined) return wrong
    yield* space(cursor)
    if (at(cursor, ")")) break
    if (!at(cursor, ",")) return expected(cursor, "`,` or `)`")
    yield
  }
  yield
  write("}")
  return undefined
}

/** A call in Python: `name(key=value, …)`. */
const readPython = function* (cursor: Cursor, call: OpenCall): Parser<Problem> {
  const name = yield* identifier(cursor)
  yield* space(cursor)
  if (name === "") return expected(cursor, "the name of a tool")
  if (!at(cursor, "(")) return expected(cursor, `\`(\` behind \`${name}\``)
  call.name(name)
  yield
  return yield* keywords(cursor, call.write)
}

/** One call, in Python or, where a prompt asked for that, in JSON. */
const readCall = function* (cursor: Cursor, open: OpenCalls): Parser<boolean> {
  const call = open()
  const wrong = at(cursor, "{") ? yield* readObject(cursor, call) : yield* readPython(cursor, call)
  if (wrong === undefined) {
    call.close(() => cursor.raw)
    return true
  }
  yield* skipTo(cursor, closing)
  call.fail(cursor.raw, wrong)
  return false
}

/** The calls of a span. Unreadable text is one malformed call, up to the closing tag. */
const readCalls = function* (cursor: Cursor, _opening: string, open: OpenCalls): Parser<void> {
  yield* space(cursor)
  const isList = at(cursor, "[")
  if (isList) yield
  for (let first = true; ; first = false) {
    yield* space(cursor)
    // An empty list is no call.
    if (!first || (isList && at(cursor, "]"))) {
      cursor.raw = ""
      const ended = isList && at(cursor, "]")
      if (ended) {
        yield
        yield* space(cursor)
      }
      if (at(cursor, "") || (at(cursor, "<") && (yield* tag(cursor, [closing])) === closing)) return
      if (ended || !at(cursor, ",")) return yield* junk(cursor, open)
      yield
      yield* space(cursor)
      cursor.raw = ""
    }
    if (!(yield* readCall(cursor, open))) return
  }
}

const junk = function* (cursor: Cursor, open: OpenCalls): Parser<void> {
  const problem = expected(cursor, "another call, or the end of the calls")
  yield* skipTo(cursor, closing)
  open().fail(cursor.raw, problem)
}

const literal = (json: Json): string => {
  if (json === null) return "None"
  if (typeof json === "boolean") return json ? "True" : "False"
  if (Array.isArray(json)) return `[${json.map(literal).join(", ")}]`
  if (!isObject(json)) return JSON.stringify(json)
  return `{${Object.entries(json)
    .map(([key, item]) => `${JSON.stringify(key)}: ${literal(item)}`)
    .join(", ")}}`
}

const writeArguments = (args: JsonObject): string =>
  Object.entries(args)
    .map(([key, item]) => `${key}=${literal(item)}`)
    .join(", ")

const callPieces = (calls: ReadonlyArray<AnsweredCall>): ReadonlyArray<Piece> => {
  const good = calls.filter((call) => call.raw === undefined)
  return [
    ...(good.length === 0
      ? []
      : [
          special(opening),
          plain(`[${good.map((call) => `${call.name}(${writeArguments(call.arguments)})`).join(", ")}]`),
          special(closing)
        ]),
    ...calls.flatMap((call) => (call.raw === undefined ? [] : [plain(call.raw)]))
  ]
}

/** The codec of LFM2. Models of the first generation mark the list of tools and the results, later ones do not. */
export const lfm2: Codec = {
  name: "lfm2",
  stops: chatStops,
  prompt: (ask) => {
    const wrapInMarkers = (name: string, pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> =>
      ask.template === "" || ask.template.includes(`<|${name}_start|>`)
        ? [special(`<|${name}_start|>`), ...pieces, special(`<|${name}_end|>`)]
        : pieces
    const list = ask.tools.map(({ description, name, parameters }) => ({ name, description, parameters }))
    return chatml(ask, {
      tools: [plain("List of tools: "), ...wrapInMarkers("tool_list", [plain(JSON.stringify(list))])],
      calls: callPieces,
      results: (calls) =>
        calls.flatMap((call) => [
          special("<|im_start|>"),
          plain("tool\n"),
          ...wrapInMarkers("tool_response", [plain(textOf(call.answer.content))]),
          ...endOfTurn
        ]),
      force: (name) => [special(opening), plain(name === undefined ? "[" : `[${name}(`)]
    })
  },
  decoder: ({ inThought }, emit) =>
    makeDecoder(
      { thought: thinkTags, calls: [opening], strays: [closing], isCall: () => true, read: readCalls },
      inThought,
      emit
    )
}
