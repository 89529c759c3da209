import type { ChatModel, Json } from "effect-deepagents"
import type { AnsweredCall, Turn } from "../../../../../src/models/internal/turn/normalize.ts"
import type { Ask, Codec, Delta } from "../../../../../src/models/local/internal/codecs/Codec.ts"

export const tool = (name: string, properties: Json.JsonObject = {}): ChatModel.ToolDefinition => ({
  name,
  description: `Does ${name}`,
  parameters: { type: "object", properties },
  annotations: {}
})

interface Options {
  readonly tools?: ReadonlyArray<ChatModel.ToolDefinition>
  readonly inThought?: boolean
}

/** The deltas of a text that comes in these pieces. */
export const deltas = (codec: Codec, pieces: ReadonlyArray<string>, options?: Options): ReadonlyArray<Delta> => {
  const said: Array<Delta> = []
  const decoder = codec.decoder(
    { tools: options?.tools ?? [], inThought: options?.inThought ?? false },
    (delta) => void said.push(delta)
  )
  for (const piece of pieces) decoder.push(piece)
  decoder.end()
  return said
}

/** Deltas of one kind that follow each other, joined. */
export const joinDeltas = (said: ReadonlyArray<Delta>): ReadonlyArray<Delta> => {
  const out: Array<Delta> = []
  for (const delta of said) {
    const last = out.at(-1)
    if (
      last !== undefined &&
      "text" in last &&
      "text" in delta &&
      last._tag === delta._tag &&
      (last._tag !== "CallDelta" || delta._tag !== "CallDelta" || last.call === delta.call)
    ) {
      out[out.length - 1] = { ...last, text: last.text + delta.text }
    } else out.push(delta)
  }
  return out
}

const textOf = (said: ReadonlyArray<Delta>, tag: "Text" | "Reasoning"): string =>
  said.map((delta) => (delta._tag === tag ? delta.text : "")).join("")

/** The final content of a text. */
export const decode = (codec: Codec, text: string, options?: Options) => {
  const said = deltas(codec, [text], options)
  return {
    text: textOf(said, "Text"),
    reasoning: textOf(said, "Reasoning"),
    calls: said.flatMap((delta) => (delta._tag === "Call" ? [[delta.name, delta.arguments] as const] : [])),
    malformed: said.flatMap((delta) => (delta._tag === "Malformed" ? [delta] : []))
  }
}

/** The one call of a text, or a problem. */
export const only = (codec: Codec, text: string, options?: Options): unknown => {
  const { calls, malformed } = decode(codec, text, options)
  return calls.length === 1 && malformed.length === 0 ? calls[0]?.[1] : { calls, malformed }
}

/** `text` cut at these places. */
export const cutText = (text: string, places: ReadonlyArray<number>): ReadonlyArray<string> => {
  const sorted = [...places.map((place) => place % (text.length + 1)), 0, text.length].sort((a, b) => a - b)
  return sorted.slice(1).map((end, index) => text.slice(sorted[index], end))
}

export const ask = (turns: ReadonlyArray<Turn>, options?: Partial<Ask>): Ask => ({
  systemPrompt: "",
  turns,
  tools: [],
  toolChoice: "auto",
  thinking: undefined,
  template: "",
  ...options
})

export const human = (text: string): Turn => ({ role: "human", content: [{ type: "text", text }], index: 0 })

export const answered = (name: string, args: Json.JsonObject, answer = "done", raw?: string): AnsweredCall => ({
  id: "1",
  name,
  arguments: args,
  ...(raw === undefined ? {} : { raw }),
  answer: { content: [{ type: "text", text: answer }], isError: false }
})

export const ai = (text: string, calls: ReadonlyArray<AnsweredCall> = [], reasoning?: string): Turn => ({
  role: "ai",
  content: [
    ...(reasoning === undefined ? [] : [{ type: "reasoning" as const, text: reasoning }]),
    ...(text === "" ? [] : [{ type: "text" as const, text }])
  ],
  calls,
  stopReason: calls.length === 0 ? "stop" : "toolCalls",
  index: 1
})

/** A prompt as one text. */
export const rendered = (codec: Codec, asked: Ask): string =>
  codec
    .prompt(asked)
    .pieces.map((piece) => piece.text)
    .join("")

/** A codec's text for a turn of calls, as the model would say it. */
export const writeCalls = (codec: Codec, calls: ReadonlyArray<AnsweredCall>): string => {
  const start = rendered(codec, ask([human("x")])).length
  const whole = rendered(codec, ask([human("x"), ai("", calls)]))
  const result = whole.indexOf(codec.name === "gemma" ? "<|tool_response>" : "<|im_end|>", start)
  return whole.slice(start, result)
}
