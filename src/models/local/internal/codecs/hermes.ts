/** Hermes, Qwen 2.5 and 3, and many others: calls as JSON, `<tool_call>{"name": "f", "arguments": {…}}</tool_call>`. */
import type { AnsweredCall } from "../../../internal/turn/normalize.ts"
import type { OpenCalls } from "./calls.ts"
import { chatml, chatStops, endOfTurn, textOf, thinkTags } from "./chatml.ts"
import { type Ask, type Codec, type Piece, plain, special } from "./Codec.ts"
import { at, type Cursor, expected, type Parser, type Problem, skipTo, space, tag } from "./cursor.ts"
import { readObject } from "./jsonCall.ts"
import { makeDecoder } from "./scanner.ts"

/** The tags around a call. */
export const callTags = { open: "<tool_call>", close: "</tool_call>" }

/** Reads a JSON call behind its opening tag, with its closing tag unless the turn ends before. */
export const readTagged = function* (cursor: Cursor, open: OpenCalls): Parser<void> {
  const call = open()
  yield* space(cursor)
  let wrong: Problem = at(cursor, "{") ? yield* readObject(cursor, call) : expected(cursor, "`{`")
  if (wrong === undefined) {
    yield* space(cursor)
    if (at(cursor, "") || (at(cursor, "<") && (yield* tag(cursor, [callTags.close])) === callTags.close)) {
      return call.close(() => cursor.raw)
    }
    wrong = expected(cursor, `\`${callTags.close}\``)
  }
  yield* skipTo(cursor, callTags.close)
  call.fail(cursor.raw, wrong)
}

/** The tools, one JSON object a line. */
export const toolLines = (ask: Ask): ReadonlyArray<Piece> => [
  special("<tools>"),
  ...ask.tools.map(({ description, name, parameters }) =>
    plain(`\n${JSON.stringify({ type: "function", function: { name, description, parameters } })}`)
  ),
  plain("\n"),
  special("</tools>")
]

/** Results, all in one user turn. */
export const resultTurn = (calls: ReadonlyArray<AnsweredCall>): ReadonlyArray<Piece> => [
  special("<|im_start|>"),
  plain("user"),
  ...calls.flatMap((call) => [
    plain("\n"),
    special("<tool_response>"),
    plain(`\n${textOf(call.answer.content)}\n`),
    special("</tool_response>")
  ]),
  ...endOfTurn
]

const callPieces = (calls: ReadonlyArray<AnsweredCall>): ReadonlyArray<Piece> =>
  calls.flatMap((call) =>
    call.raw === undefined
      ? [
          plain("\n"),
          special(callTags.open),
          plain(`\n{"name": ${JSON.stringify(call.name)}, "arguments": ${JSON.stringify(call.arguments)}}\n`),
          special(callTags.close)
        ]
      : [plain(`\n${call.raw}`)]
  )

/** The codec of the Hermes format. */
export const hermes: Codec = {
  name: "hermes",
  stops: chatStops,
  prompt: (ask) =>
    chatml(ask, {
      tools: [
        plain("# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"),
        plain("You are provided with function signatures within <tools></tools> XML tags:\n"),
        ...toolLines(ask),
        plain("\n\nFor each function call, return a json object with function name and arguments within "),
        plain("<tool_call></tool_call> XML tags:\n"),
        special(callTags.open),
        plain(`\n{"name": <function-name>, "arguments": <args-json-object>}\n`),
        special(callTags.close)
      ],
      calls: callPieces,
      results: resultTurn,
      force: (name) => [
        special(callTags.open),
        plain(name === undefined ? `\n{"name": "` : `\n{"name": ${JSON.stringify(name)}, "arguments": `)
      ]
    }),
  decoder: ({ inThought }, emit) =>
    makeDecoder(
      {
        thought: thinkTags,
        calls: [callTags.open],
        strays: [callTags.close],
        isCall: (_opening, next) => next === "{",
        read: (cursor, _opening, open) => readTagged(cursor, open)
      },
      inThought,
      emit
    )
}
