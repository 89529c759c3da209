/** Reads the lines of Ollama's chat API into the parts of a turn. */
import * as Result from "effect/Result"
import * as Content from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import * as Usage from "../../../core/Usage.ts"
import { isTooDeep, tooDeep } from "../schema/nesting.ts"
import { type Call, makeAssembler } from "../turn/assembler.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { makeThinkSplitter, thinkTags } from "../turn/thinkTags.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { badResponse, type Origin, providerError } from "../wire/errors.ts"
import { countOf, objectOf, objectsOf, parse, stringOf } from "../wire/read.ts"

/** The context of the decoder of a turn. `forced` is the tool whose arguments the answer is. */
export interface DecodeContext {
  readonly origin: Origin
  readonly names: ToolNames
  readonly forced: string | undefined
  readonly makeId: () => string
}

/** Makes the decoder of one turn. */
export const makeDecoder = ({ forced, makeId, names, origin }: DecodeContext, sink: Sink): TurnDecoder<string> => {
  const turn = makeAssembler(sink, makeId)
  const splitter = forced === undefined ? makeThinkSplitter(thinkTags) : undefined
  let answer: Call<undefined> | undefined
  const logprobs: Array<JsonObject> = []
  let last: JsonObject | undefined

  const addArguments = (name: string, delta: string): void => {
    if (delta === "") return
    answer ??= turn.call({ id: makeId(), name: names.own(name), data: undefined })
    turn.write(answer, delta)
  }

  const addCall = (piece: JsonObject): void => {
    const called = objectOf(piece["function"]) ?? {}
    const id = stringOf(piece["id"]) || makeId()
    const args = called["arguments"]
    const name = names.own(stringOf(called["name"]) ?? "")
    turn.call({ id, name, data: undefined }, stringOf(args) ?? JSON.stringify(args ?? {}))
  }

  const take = (line: string): ModelError | undefined => {
    const parsed = parse(line)
    const it = Result.isSuccess(parsed) ? objectOf(parsed.success) : undefined
    if (it === undefined) return badResponse(origin, "a line of the stream is not a JSON object")
    if (isTooDeep(it)) return badResponse(origin, tooDeep)
    if (last !== undefined) return undefined
    const error = it["error"]
    if (error !== undefined) {
      const message = stringOf(error) ?? stringOf(objectOf(error)?.["message"])
      return providerError(origin, { type: "server_error", message })
    }
    const message = objectOf(it["message"]) ?? {}
    turn.continue("reasoning", stringOf(message["thinking"]) ?? "", undefined)
    const content = stringOf(message["content"]) ?? ""
    if (forced !== undefined) addArguments(forced, content)
    else for (const { kind, text } of splitter?.push(content) ?? []) turn.continue(kind, text, undefined)
    for (const piece of objectsOf(message["tool_calls"])) addCall(piece)
    for (const one of objectsOf(it["logprobs"])) logprobs.push(one)
    if (it["done"] === true) last = it
    return undefined
  }

  const end = (): ModelError | undefined => {
    for (const { kind, text } of splitter?.end() ?? []) turn.continue(kind, text, undefined)
    if (last === undefined) return badResponse(origin, "the stream ended before the turn was done")
    const raw = stringOf(last["done_reason"]) ?? ""
    const isCut = raw === "length"
    const own = (data: JsonObject) => ({ [origin.provider]: { model: origin.model, ...data } })
    turn.finish({
      stop: isCut ? "length" : undefined,
      model: stringOf(last["model"]) ?? origin.model,
      usage: Usage.make({
        inputTokens: countOf(last["prompt_eval_count"]) ?? 0,
        outputTokens: countOf(last["eval_count"]) ?? 0
      }),
      blockOf: ({ kind, text }) => (kind === "text" ? Content.text(text) : Content.reasoning(text, own({}))),
      callOf: (call) => ({ cut: isCut && call === answer }),
      providerData: () => own({ stopReason: raw, ...(logprobs.length === 0 ? {} : { logprobs }) })
    })
    return undefined
  }

  return { take, end, isWhole: () => last !== undefined }
}
