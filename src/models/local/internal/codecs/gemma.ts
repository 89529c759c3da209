/** Gemma 4: calls in a notation of its own, `<|tool_call>call:f{city:<|"|>Bern<|"|>,days:3}<tool_call|>`. */
import { isObject, type Json, type JsonObject } from "../../../../core/Json.ts"
import { toolSchema } from "../../../internal/schema/toolSchema.ts"
import type { AiTurn, Turn } from "../../../internal/turn/normalize.ts"
import type { OpenCalls } from "./calls.ts"
import { textOf } from "./chatml.ts"
import { type Ask, type Codec, type Piece, plain, type Prompt, special } from "./Codec.ts"
import { at, type Cursor, expected, type Parser, type Problem, skipTo, space, tag } from "./cursor.ts"
import { type Notation, value } from "./literal.ts"
import { makeDecoder } from "./scanner.ts"

const opening = "<|tool_call>"
const closing = "<tool_call|>"
const quote = '<|"|>'
const thought = { open: "<|channel>thought", close: "<channel|>", anywhere: true }
const notation: Notation = { quote, bareStrings: true }

const isName = (text: string): boolean => /^[\p{L}\p{N}_.-]+$/u.test(text)

const readName = function* (cursor: Cursor): Parser<string> {
  let name = ""
  while (isName(cursor.char)) {
    name += cursor.char
    yield
  }
  return name
}

const readCall = function* (cursor: Cursor, open: OpenCalls): Parser<void> {
  const call = open()
  yield* space(cursor)
  let name = yield* readName(cursor)
  if (name === "call" && at(cursor, ":")) {
    yield
    name = yield* readName(cursor)
  }
  yield* space(cursor)
  let wrong: Problem
  if (name === "") wrong = expected(cursor, "the name of a tool")
  else if (!at(cursor, "{")) wrong = expected(cursor, `\`{\` behind \`${name}\``)
  else {
    call.name(name)
    wrong = yield* value(cursor, call.write, notation)
  }
  if (wrong === undefined) {
    yield* space(cursor)
    if (at(cursor, "") || (at(cursor, "<") && (yield* tag(cursor, [closing])) === closing)) {
      return call.close(() => cursor.raw)
    }
    wrong = expected(cursor, `\`${closing}\``)
  }
  yield* skipTo(cursor, closing)
  call.fail(cursor.raw, wrong)
}

/** Writes a value with its strings between control tokens, which a string can't contain. */
const literal = (json: Json): ReadonlyArray<Piece> => {
  if (typeof json === "string") return [special(quote), plain(json), special(quote)]
  if (Array.isArray(json)) {
    return [plain("["), ...json.flatMap((item, index) => [plain(index === 0 ? "" : ","), ...literal(item)]), plain("]")]
  }
  return isObject(json) ? [plain("{"), ...fields(Object.entries(json)), plain("}")] : [plain(String(json))]
}

const fields = (entries: ReadonlyArray<readonly [string, Json]>): ReadonlyArray<Piece> =>
  entries.flatMap(([key, item], index) => [
    plain(index === 0 ? "" : ","),
    ...(isName(key) ? [plain(key)] : [special(quote), plain(key), special(quote)]),
    plain(":"),
    ...literal(item)
  ])

/** A union has to be one type for Gemma: the first of its alternatives, with the others in words. */
const single = (schema: JsonObject): JsonObject => {
  const { anyOf, ...rest } = schema
  const [first, ...others] = Array.isArray(anyOf) ? anyOf : []
  if (!isObject(first)) return schema
  const descriptions = [rest["description"], `Or: ${JSON.stringify(others)}.`].filter(
    (text) => typeof text === "string"
  )
  return { ...single(first), ...rest, description: descriptions.join(" ") }
}

/**
 * Converts a JSON Schema to Gemma's form: one type each, in capitals. Values that are not schemas (an example) stay.
 */
const shouted = (rawSchema: Json): Json => {
  if (Array.isArray(rawSchema)) return rawSchema.map(shouted)
  if (!isObject(rawSchema)) return rawSchema
  return Object.fromEntries(
    Object.entries(single(rawSchema)).map(([key, item]) => {
      if (key === "type" && typeof item === "string") return [key, item.toUpperCase()]
      if (isObject(item) && maps.has(key))
        return [key, Object.fromEntries(Object.entries(item).map(([name, one]) => [name, shouted(one)]))]
      return [key, schemas.has(key) ? shouted(item) : item]
    })
  )
}

/** Keywords under which schemas stand by name, and those under which one stands, or a list of them. */
const maps: ReadonlySet<string> = new Set(["properties", "$defs"])
const schemas: ReadonlySet<string> = new Set(["items", "anyOf", "prefixItems", "additionalProperties"])

const toolPieces = (ask: Ask): ReadonlyArray<Piece> =>
  ask.tools.flatMap(({ description, name, parameters }) => [
    special("<|tool>"),
    plain(`declaration:${name}`),
    ...literal({ description, parameters: shouted(toolSchema(parameters, "gemini")) }),
    special("<tool|>")
  ])

const writeTurn = (turn: AiTurn, recent: boolean): ReadonlyArray<Piece> => [
  ...turn.content.flatMap((block) =>
    block.type === "text"
      ? [plain(block.text)]
      : recent
        ? [special("<|channel>"), plain(`thought\n${block.text}`), special("<channel|>")]
        : []
  ),
  ...turn.calls.flatMap((call) =>
    call.raw === undefined
      ? [
          special(opening),
          plain(`call:${call.name}{`),
          ...fields(Object.entries(call.arguments)),
          plain("}"),
          special(closing)
        ]
      : [plain(call.raw)]
  ),
  ...turn.calls.flatMap((call) => [
    special("<|tool_response>"),
    plain(`response:${call.name}{`),
    ...fields([["value", textOf(call.answer.content)]]),
    plain("}"),
    special("<tool_response|>")
  ])
]

const open = (role: string): ReadonlyArray<Piece> => [special("<|turn>"), plain(`${role}\n`)]

const close: ReadonlyArray<Piece> = [special("<turn|>"), plain("\n")]

/** Results stand in the model's own turn, which goes on behind them. */
const isOpen = (turn: Turn | undefined): boolean => turn?.role === "ai" && turn.calls.length > 0

const prompt = (ask: Ask): Prompt => {
  const pieces: Array<Piece> = []
  const system = ask.systemPrompt.trim()
  const thinks = ask.thinking === true
  if (system !== "" || ask.tools.length > 0 || thinks) {
    pieces.push(...open("system"), ...(thinks ? [special("<|think|>"), plain("\n")] : []))
    pieces.push(plain(system), ...toolPieces(ask), ...close)
  }
  const lastHuman = ask.turns.findLastIndex((turn) => turn.role === "human")
  ask.turns.forEach((turn, index) => {
    if (turn.role === "ai") {
      if (!isOpen(ask.turns[index - 1])) pieces.push(...open("model"))
      pieces.push(...writeTurn(turn, index > lastHuman))
      if (!isOpen(turn)) pieces.push(...close)
      return
    }
    if (isOpen(ask.turns[index - 1])) pieces.push(...close)
    pieces.push(...open(turn.role === "system" ? "system" : "user"))
    pieces.push(plain(turn.role === "system" ? turn.text : textOf(turn.content)), ...close)
  })
  const goesOn = isOpen(ask.turns.at(-1))
  if (!goesOn) pieces.push(...open("model"))
  const { toolChoice } = ask
  const forces = ask.tools.length > 0 && toolChoice !== "auto" && toolChoice !== "none"
  // Larger models need an empty thought to turn thinking off.
  const closesThought = ask.template.includes("<|channel>thought\\n<channel|>")
  if (!goesOn && closesThought && (!thinks || forces)) {
    pieces.push(special("<|channel>"), plain("thought\n"), special("<channel|>"))
  }
  if (!forces) return { pieces, said: "", inThought: false }
  const call = toolChoice === "required" ? "call:" : `call:${toolChoice.tool}{`
  return { pieces: [...pieces, special(opening), plain(call)], said: opening + call, inThought: false }
}

/** The codec of Gemma 4. */
export const gemma: Codec = {
  name: "gemma",
  // It begins a result itself: there it waits for the tool.
  stops: ["<turn|>", "<|tool_response>"],
  prompt,
  decoder: ({ inThought }, emit) =>
    makeDecoder(
      {
        thought,
        calls: [opening],
        strays: [closing],
        isCall: () => true,
        read: (cursor, _opening, calls) => readCall(cursor, calls)
      },
      inThought,
      emit
    )
}
