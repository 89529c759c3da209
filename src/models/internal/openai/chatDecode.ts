/** Reads the chunks of the Chat Completions API, and their variants on other servers, into the parts of a turn. */
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import { type Assembler, type Call, makeAssembler } from "../turn/assembler.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { makeThinkSplitter, type AnswerPiece as Spoken, type ThinkTags } from "../turn/thinkTags.ts"
import { badResponse, providerError } from "../wire/errors.ts"
import { listOf, merge, objectOf, objectsOf, placeOf, stringOf } from "../wire/read.ts"
import { type CallData, type ChatTurn, finishTurn, type BlockData } from "./chatTurn.ts"
import { failedCall, failureOf } from "./failure.ts"
import type { DecodeContext } from "./responsesTurn.ts"
import { addSound } from "./sound.ts"

/** The further context of this decoder. Without `thinkTags` the text is taken as it is. */
export interface ChatDecodeContext extends DecodeContext {
  readonly thinkTags: ThinkTags | undefined
}

/** The fields that servers use for reasoning. A server that fills two repeats itself. */
const reasoningFields = ["reasoning_content", "reasoning", "reasoning_text"]

/** Words of a server that broke down, in the place of a reason to finish. */
const breakdowns = new Set(["error", "network_error", "insufficient_system_resource", "aborted", "abort"])

/** OpenRouter streams its details in pieces: those of one index belong together. */
const joinDetails = (details: Array<JsonObject>, piece: JsonObject): void => {
  const last = details.at(-1)
  if (last === undefined || last["type"] !== piece["type"] || last["index"] !== piece["index"]) {
    details.push(piece)
    return
  }
  const text = ["text", "summary", "data"].flatMap((key) => {
    const before = stringOf(last[key])
    const more = stringOf(piece[key])
    return before === undefined || more === undefined ? [] : [[key, before + more]]
  })
  const fields = Object.entries(piece).filter(([, value]) => value !== null)
  details[details.length - 1] = merge(last, Object.fromEntries(fields), Object.fromEntries(text))
}

/** The place of reasoning that comes in parts of the content, which is how Mistral's models think. */
export const inContent = "content"

const pieces = (content: unknown): ReadonlyArray<Spoken> => {
  if (typeof content === "string") return [{ kind: "text", text: content }]
  return objectsOf(content).flatMap((part): ReadonlyArray<Spoken> => {
    const text = stringOf(part["text"])
    if (text !== undefined) return [{ kind: "text", text }]
    return objectsOf(part["thinking"]).flatMap((thought) => {
      const thinking = stringOf(thought["text"])
      return thinking === undefined ? [] : [{ kind: "reasoning" as const, text: thinking }]
    })
  })
}

const nameIn = (piece: JsonObject): string => stringOf(objectOf(piece["function"])?.["name"]) ?? ""

/**
 * Finds the call that a piece belongs to. Servers number badly: a new id begins a call at any index, and so does a name
 * at a new index with any id.
 */
const makeCalls = (turn: Assembler<BlockData, CallData>, makeId: () => string) => {
  const byIndex = new Map<number | undefined, Call<CallData>>()
  const byId = new Map<string, Call<CallData>>()
  const byBoth = new Map<string, Call<CallData>>()
  let latest: Call<CallData> | undefined

  const find = (index: number | undefined, wireId: string, isNamed: boolean): Call<CallData> | undefined => {
    const last = index === undefined ? latest : byIndex.get(index)
    if (wireId === "") return index === undefined && isNamed && last?.name !== "" ? undefined : last
    const own = byBoth.get(`${index} ${wireId}`)
    if (own !== undefined) return own
    if (last?.data.wireId === "" && index !== undefined) return last
    return isNamed && index !== undefined ? undefined : byId.get(wireId)
  }

  return {
    hasAny: (): boolean => latest !== undefined,
    of: (piece: JsonObject): Call<CallData> => {
      const wireId = stringOf(piece["id"]) ?? ""
      const index = placeOf(piece["index"])
      const existingCall = find(index, wireId, nameIn(piece) !== "")
      if (existingCall !== undefined) return existingCall
      // The server may give one id to several calls, and each answer needs an id of its own.
      const id = wireId === "" || byId.has(wireId) ? makeId() : wireId
      latest = turn.addCall({ id, name: "", data: { wireId, extra: undefined } })
      byIndex.set(index, latest)
      if (wireId !== "") {
        byId.set(wireId, latest)
        byBoth.set(`${index} ${wireId}`, latest)
      }
      return latest
    }
  }
}

const unfinished =
  "the stream ended before a finish_reason, so the answer may be cut off; a server must send one with each answer"

/** Makes the decoder of one turn. */
export const makeChatDecoder = (context: ChatDecodeContext, sink: Sink): TurnDecoder<unknown> => {
  const { makeId, names, origin } = context
  const splitter = context.thinkTags === undefined ? undefined : makeThinkSplitter(context.thinkTags)
  const assembler = makeAssembler<BlockData, CallData>(sink, makeId)
  const calls = makeCalls(assembler, makeId)
  const turn: ChatTurn = {
    details: [],
    annotations: [],
    finish: undefined,
    usage: undefined,
    tier: undefined,
    id: undefined,
    model: undefined,
    refused: false,
    logprobs: [],
    extra: undefined,
    sound: { pieces: [], id: undefined, until: undefined }
  }

  const say = ({ kind, text }: Spoken, field: string | undefined): void => assembler.continue(kind, text, { field })

  const sayContent = (content: unknown): void => {
    for (const piece of pieces(content)) {
      const chunks = piece.kind === "text" && splitter !== undefined ? splitter.push(piece.text) : [piece]
      const field = piece.kind === "reasoning" ? inContent : undefined
      for (const one of chunks) say(one, field)
    }
  }

  const addCall = (piece: JsonObject): void => {
    const call = calls.of(piece)
    const { data } = call
    const extra = objectOf(piece["extra_content"])
    if (extra !== undefined) data.extra = data.extra === undefined ? extra : merge(data.extra, extra)
    const name = nameIn(piece)
    // Some servers repeat the whole name in each piece.
    if (name !== "" && name !== call.name) call.name += name
    const args = objectOf(piece["function"])?.["arguments"]
    assembler.write(call, stringOf(args) ?? (objectOf(args) === undefined ? "" : JSON.stringify(args)))
    if (call.name !== "") assembler.start(call, names.own(call.name))
  }

  const addAnnotations = (delta: JsonObject): void => {
    const { annotations } = turn
    for (const one of objectsOf(delta["annotations"])) annotations.push(one)
    for (const tool of objectsOf(delta["executed_tools"])) {
      for (const one of objectsOf(objectOf(tool["search_results"])?.["results"])) annotations.push(one)
    }
  }

  const addReasoning = (delta: JsonObject): void => {
    const field = reasoningFields.find((name) => (stringOf(delta[name]) ?? "") !== "")
    if (field !== undefined) say({ kind: "reasoning", text: stringOf(delta[field]) ?? "" }, field)
    for (const piece of objectsOf(delta["reasoning_details"])) joinDetails(turn.details, piece)
  }

  const addChoice = (choice: JsonObject): void => {
    const delta = objectOf(choice["delta"]) ?? objectOf(choice["message"]) ?? {}
    addReasoning(delta)
    sayContent(delta["content"])
    const sound = objectOf(delta["audio"])
    if (sound !== undefined) say({ kind: "text", text: addSound(turn.sound, sound) }, undefined)
    for (const one of objectsOf(objectOf(choice["logprobs"])?.["content"])) turn.logprobs.push(one)
    const refusal = stringOf(delta["refusal"]) ?? ""
    if (refusal !== "") turn.refused = true
    say({ kind: "text", text: refusal }, undefined)
    for (const piece of objectsOf(delta["tool_calls"])) addCall(piece)
    addAnnotations(delta)
    // Only the signature is kept. The other fields describe each chunk of the stream.
    const extra = objectOf(delta["extra_content"])
    if (extra !== undefined && Object.values(extra).some((one) => objectOf(one)?.["thought_signature"] !== undefined)) {
      turn.extra = extra
    }
    turn.finish = stringOf(choice["finish_reason"]) ?? turn.finish
  }

  /** Perplexity repeats the results of its search with each chunk; others give addresses alone. */
  const takeSources = (chunk: JsonObject): void => {
    const results = objectsOf(chunk["search_results"])
    const citations = listOf(chunk["citations"])
    if (results.length === 0 && citations.length === 0) return
    const { annotations } = turn
    annotations.length = 0
    for (const one of results) annotations.push(one)
    if (results.length > 0) return
    for (const url of citations) if (typeof url === "string") annotations.push({ url })
  }

  const fail = (error: JsonObject): ModelError | undefined => {
    const failed = failedCall(error)
    if (failed === undefined || calls.hasAny()) return providerError(origin, failureOf(error))
    addCall(failed)
    turn.finish = "tool_calls"
    return undefined
  }

  const take = (event: unknown): ModelError | undefined => {
    const chunk = objectOf(event)
    if (chunk === undefined) return badResponse(origin, "a chunk of the stream is not a JSON object")
    const error = objectOf(chunk["error"])
    if (error !== undefined) return fail(error)
    const choice = objectsOf(chunk["choices"]).find((one) => (placeOf(one["index"]) ?? 0) === 0)
    if (choice !== undefined) addChoice(choice)
    takeSources(chunk)
    turn.id = stringOf(chunk["id"]) ?? turn.id
    turn.model = stringOf(chunk["model"]) ?? turn.model
    turn.tier = stringOf(chunk["service_tier"]) ?? turn.tier
    turn.usage =
      objectOf(chunk["usage"]) ??
      objectOf(choice?.["usage"]) ??
      objectOf(objectOf(chunk["x_groq"])?.["usage"]) ??
      turn.usage
    if (choice === undefined && listOf(chunk["choices"]).length === 0 && !("usage" in chunk)) {
      sink.unknown(stringOf(chunk["object"]) ?? "a chunk without choices")
    }
    return undefined
  }

  const end = (): ModelError | undefined => {
    for (const chunk of splitter?.end() ?? []) say(chunk, undefined)
    // `[DONE]` alone proves nothing: proxies send it behind a stream that broke off.
    if (turn.finish === undefined) return badResponse(origin, unfinished)
    if (breakdowns.has(turn.finish)) {
      return providerError(origin, { type: "server_error", message: `the server stopped: ${turn.finish}` })
    }
    finishTurn(assembler, turn, context)
    return undefined
  }

  return { take, end, isWhole: () => turn.finish !== undefined }
}
