/** Reads the lines of Ollama's chat API into the parts of a turn. */
import * as Result from "effect/Result"
import * as Content from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import * as Usage from "../../../core/Usage.ts"
import { isTooDeep, tooDeep } from "../schema/nesting.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { makeThinkSplitter, type Said, thinkTags } from "../turn/thinkTags.ts"
import { sortCalls, type StreamedCall } from "../turn/toolCalls.ts"
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
export const makeDecoder = ({ forced, makeId, names, origin }: DecodeContext): TurnDecoder<string> => {
  const splitter = forced === undefined ? makeThinkSplitter(thinkTags) : undefined
  const runs: Array<{ readonly kind: Said["kind"]; text: string }> = []
  const calls: Array<StreamedCall> = []
  let answer: { readonly id: string; raw: string } | undefined
  const logprobs: Array<JsonObject> = []
  let last: JsonObject | undefined

  const say = ({ kind, text }: Said, sink: Sink): void => {
    if (text === "") return
    const run = runs.at(-1)
    if (run?.kind === kind) run.text += text
    else runs.push({ kind, text })
    sink.emit(kind === "text" ? { _tag: "TextDelta", text } : { _tag: "ReasoningDelta", text })
  }

  const takeArguments = (name: string, delta: string, sink: Sink): void => {
    if (delta === "") return
    if (answer === undefined) {
      answer = { id: makeId(), raw: "" }
      sink.emit({ _tag: "ToolCallStart", id: answer.id, name: names.own(name) })
    }
    answer.raw += delta
    sink.emit({ _tag: "ToolCallDelta", id: answer.id, delta })
  }

  const takeCall = (piece: JsonObject, sink: Sink): void => {
    const called = objectOf(piece["function"]) ?? {}
    const id = stringOf(piece["id"]) || makeId()
    const name = names.own(stringOf(called["name"]) ?? "")
    const given = called["arguments"]
    const raw = stringOf(given) ?? JSON.stringify(given ?? {})
    calls.push({ id, name, raw, cut: false })
    sink.emit({ _tag: "ToolCallStart", id, name })
    sink.emit({ _tag: "ToolCallDelta", id, delta: raw })
  }

  const take = (line: string, sink: Sink): ModelError | undefined => {
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
    say({ kind: "reasoning", text: stringOf(message["thinking"]) ?? "" }, sink)
    const content = stringOf(message["content"]) ?? ""
    if (forced !== undefined) takeArguments(forced, content, sink)
    else for (const said of splitter?.push(content) ?? []) say(said, sink)
    for (const piece of objectsOf(message["tool_calls"])) takeCall(piece, sink)
    for (const one of objectsOf(it["logprobs"])) logprobs.push(one)
    if (it["done"] === true) last = it
    return undefined
  }

  const end = (sink: Sink): ModelError | undefined => {
    for (const said of splitter?.end() ?? []) say(said, sink)
    if (last === undefined) return badResponse(origin, "the stream ended before the turn was done")
    const raw = stringOf(last["done_reason"]) ?? ""
    const own = { [origin.provider]: { model: origin.model } }
    const content = runs.map(({ kind, text }): Content.Block =>
      kind === "text" ? Content.text(text) : Content.reasoning(text, own)
    )
    const whole = { cut: raw === "length" }
    const told =
      answer === undefined || forced === undefined
        ? calls
        : [...calls, { id: answer.id, name: names.own(forced), raw: answer.raw, ...whole }]
    const sorted = sortCalls(told)
    const called = sorted.toolCalls.length + sorted.malformedToolCalls.length > 0
    const message = Message.ai(content, {
      id: makeId(),
      ...sorted,
      stopReason: raw === "length" ? "length" : called ? "toolCalls" : "stop",
      model: stringOf(last["model"]) ?? origin.model,
      usage: Usage.make({
        inputTokens: countOf(last["prompt_eval_count"]) ?? 0,
        outputTokens: countOf(last["eval_count"]) ?? 0
      }),
      providerData: {
        [origin.provider]: { model: origin.model, stopReason: raw, ...(logprobs.length === 0 ? {} : { logprobs }) }
      }
    })
    sink.emit({ _tag: "TurnDone", message })
    return undefined
  }

  return { take, end, isWhole: () => last !== undefined }
}
