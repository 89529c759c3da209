/** Writes a request for Gemini's own API. */
import * as Result from "effect/Result"
import type { ModelRequest } from "../../../core/ChatModel.ts"
import type { FileBlock, ImageBlock } from "../../../core/Content.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import { overlay, type WireNames } from "../openai/parameters.ts"
import { makeOutputFormat, makeToolbox } from "../openai/schemas.ts"
import { choiceOf } from "../turn/choice.ts"
import { dataOf, type Dialect, type ModelContent, type GivenContent } from "../turn/dialect.ts"
import { inlineOf } from "../turn/inline.ts"
import { arrange } from "../turn/layout.ts"
import { type AiTurn, type AnsweredCall, makeNormalizer, makeTurnsWriter, type Turn } from "../turn/normalize.ts"
import type { Losses } from "../turn/session.ts"
import { textOfFile } from "../turn/textFile.ts"
import {
  askedEffort,
  budgetOf,
  type Effort,
  effortOf,
  isUnheard,
  type ThinkingLevel,
  withThinking
} from "../turn/thinking.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { wellFormed } from "../turn/wellFormed.ts"
import { objectOf, stringOf } from "../wire/read.ts"

/** Settings of every request of a layer. `efforts` are the accepted efforts, if known; they may become fewer. */
export interface Settings {
  readonly model: string
  readonly parameters: ReadonlyArray<JsonObject>
  readonly serverTools: ReadonlyArray<JsonObject>
  readonly efforts: ReadonlyArray<Effort> | undefined
}

/** A request, and the means to read its answer. */
export interface GeminiRequest extends Losses {
  readonly body: JsonObject
  readonly names: ToolNames
  readonly restore: ((answer: Json) => Json) | undefined
}

/** The key of `providerData` for the data that Gemini wants back: the same on Vertex AI. */
export const dataKey = "google"

const readable = /^(?:image\/(?:png|jpe?g|webp|heic|heif)|application\/pdf|audio\/|video\/)/

/** Files that the API fetches: its own, those of Cloud Storage, and videos of YouTube. */
const isReachable = (url: string): boolean =>
  /^(?:gs:\/\/|https:\/\/(?:generativelanguage\.googleapis\.com\/\w+\/files\/|(?:www\.)?youtube\.com\/watch|youtu\.be\/))/.test(
    url
  )

const mediaPart = (block: ImageBlock | FileBlock): JsonObject | undefined => {
  const { source } = block
  if (source.kind === "fileId") {
    const isFile = /^files\/[\w-]+$/.test(source.fileId)
    return isFile
      ? { fileData: { fileUri: `https://generativelanguage.googleapis.com/v1beta/${source.fileId}` } }
      : undefined
  }
  const inline = inlineOf(block)
  if (inline !== undefined) {
    const { data, mimeType } = inline
    return readable.test(mimeType) ? { inlineData: { mimeType, data } } : undefined
  }
  return source.kind === "url" && isReachable(source.url) ? { fileData: { fileUri: source.url } } : undefined
}

/** Reports whether Gemini reads an image or a file. */
export const isReadable = (block: ImageBlock | FileBlock): boolean => mediaPart(block) !== undefined

const dialect: Dialect = {
  provider: dataKey,
  systemMessages: "fold",
  reasoning: "own",
  media: isReadable,
  madeMedia: (block, data) => data !== undefined && mediaPart(block) !== undefined,
  asText: textOfFile,
  toolMedia: "after",
  humanFirst: true,
  humanLast: true,
  callIdLength: 64
}

const shownPart = (block: GivenContent): JsonObject =>
  // The dialect lets nothing through that is no part.
  block.type === "text" ? { text: block.text } : (mediaPart(block) ?? { text: "" })

const signed = (data: JsonObject | undefined): JsonObject => {
  const signature = stringOf(data?.["signature"])
  return signature === undefined ? {} : { thoughtSignature: signature }
}

const saidPart = (block: ModelContent): JsonObject =>
  block.type === "text" && block.media !== undefined ? madePart(block.media) : wordsPart(block)

/** A picture that the model drew, with the proof of its thoughts. */
const madePart = (block: ImageBlock | FileBlock): JsonObject => ({
  ...mediaPart(block),
  ...(dataOf(block.providerData, dialect)?.["thought"] === true ? { thought: true } : {}),
  ...signed(dataOf(block.providerData, dialect))
})

const wordsPart = (block: ModelContent): JsonObject => ({
  text: block.text,
  ...(block.type === "reasoning" ? { thought: true } : {}),
  ...signed(dataOf(block.providerData, dialect))
})

/** Models before Gemini 3 sign nothing. */
const isBefore3 = (model: string): boolean => /gemini-[12](?![\d])|gemma/.test(model)

/** Stands for the proof that the model thought of a call, where another one did. */
const excuse = "skip_thought_signature_validator"

const key = "INVALID_JSON"

const callPart = (call: AnsweredCall, names: ToolNames): JsonObject => {
  const id = stringOf(call.data?.["id"])
  const args = call.raw === undefined ? call.arguments : { [key]: call.raw }
  const functionCall = { name: names.wire(call.name), args, ...defined({ id }) }
  return { functionCall, ...signed(call.data) }
}

const resultPart = ({ answer, data, name }: AnsweredCall, names: ToolNames): JsonObject => {
  const id = stringOf(data?.["id"])
  const text = answer.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n")
  const response = answer.isError ? { error: text } : { output: text }
  return { functionResponse: { name: names.wire(name), response, ...defined({ id }) } }
}

const partsOf = (turn: AiTurn, names: ToolNames, model: string): ReadonlyArray<JsonObject> => {
  const calls = turn.calls.map((call) => callPart(call, names))
  const [first] = calls
  // Of calls in parallel the first one carries the proof for all.
  if (first !== undefined && !isBefore3(model) && calls.every((call) => !("thoughtSignature" in call))) {
    calls.splice(0, 1, { ...first, thoughtSignature: excuse })
  }
  return arrange(turn.data, turn.content.map(saidPart), calls, (part) => [part])
}

const contentsOf = (turn: Turn, names: ToolNames, model: string): ReadonlyArray<JsonObject> => {
  switch (turn.role) {
    // Folded into the prompt: the dialect leaves none.
    case "system":
      return []
    case "human":
      return [{ role: "user", parts: turn.content.map(shownPart) }]
    case "ai": {
      const parts = partsOf(turn, names, model)
      const results = turn.calls.map((call) => resultPart(call, names))
      return [
        ...(parts.length === 0 ? [] : [{ role: "model", parts }]),
        ...(results.length === 0 ? [] : [{ role: "user", parts: results }])
      ]
    }
  }
}

const wireNames: WireNames = {
  ...Object.fromEntries(
    ["temperature", "topP", "topK", "seed", "maxOutputTokens", "presencePenalty", "frequencyPenalty"].map((name) => [
      name,
      `generationConfig.${name}`
    ])
  ),
  stop: "generationConfig.stopSequences"
}

const reserved = new Set(["model", "contents", "systemInstruction", "tools"])

const thinkingOf = ({ efforts, model }: Settings, level: ThinkingLevel): JsonObject => {
  if (efforts?.length === 0) return {}
  const own = isBefore3(model)
    ? { thinkingBudget: budgetOf(level) }
    : { thinkingLevel: effortOf(level, efforts ?? ["low", "medium", "high"]) ?? "low" }
  return { generationConfig: { thinkingConfig: { includeThoughts: level !== "off", ...own } } }
}

/** `VALIDATED` lets the model answer too, and is the only such mode with a list of names. */
const callingOf = (request: ModelRequest, names: ToolNames): JsonObject => {
  const toolChoice = choiceOf(request)
  if (toolChoice === "auto") return {}
  if (typeof toolChoice === "string") return { mode: toolChoice === "none" ? "NONE" : "ANY" }
  if ("tool" in toolChoice) return { mode: "ANY", allowedFunctionNames: [names.wire(toolChoice.tool)] }
  return {
    mode: toolChoice.mode === "auto" ? "VALIDATED" : "ANY",
    allowedFunctionNames: toolChoice.oneOf.map(names.wire)
  }
}

/** Fields of a caller, such as the streaming of arguments, stay beside the choice. */
const configOf = (request: ModelRequest, names: ToolNames, layers: ReadonlyArray<JsonObject>): JsonObject => {
  const calling = callingOf(request, names)
  if (Object.keys(calling).length === 0) return {}
  const callerConfigs = layers.map(({ toolConfig }) => objectOf(objectOf(toolConfig)?.["functionCallingConfig"]) ?? {})
  return { toolConfig: { functionCallingConfig: Object.assign({}, ...callerConfigs, calling) } }
}

/**
 * Makes the writer of one session. It reuses written messages while the history and the tools stay the same. It fails
 * with the name of a reserved parameter.
 */
export const makeWriter = (settings: Settings) => {
  const { model, serverTools } = settings
  const normalize = makeNormalizer(dialect)
  const toolbox = makeToolbox("openai")
  const outputFormat = makeOutputFormat()
  const write = makeTurnsWriter((turn: Turn, names: ToolNames) => contentsOf(turn, names, model))
  const thinking = (level: ThinkingLevel): JsonObject => thinkingOf(settings, level)
  const thinks =
    settings.efforts?.length === 0 ? {} : { generationConfig: { thinkingConfig: { includeThoughts: true } } }

  return (request: ModelRequest): Result.Result<GeminiRequest, string> => {
    const { definitions, names } = toolbox(request.tools)
    const { damaged, system, turns } = normalize(request.messages)
    const { format, lost, restore } = outputFormat(request.outputSchema)
    const formatLayer: JsonObject =
      format === undefined
        ? {}
        : { generationConfig: { responseMimeType: "application/json", responseJsonSchema: format.schema } }
    const declared = definitions.map(({ description, name, parameters }) => ({
      name,
      description,
      parametersJsonSchema: parameters
    }))
    const tools = [
      ...(declared.length === 0 ? [] : [{ functionDeclarations: declared }]),
      ...(request.purpose === "turn" ? serverTools : [])
    ]
    const layers = [...settings.parameters, request.parameters]
    const thinkingLayers = withThinking(layers, thinking)
    const config = declared.length === 0 ? {} : configOf(request, names, layers)
    const text = [wellFormed(request.systemPrompt), ...system].filter((part) => part !== "").join("\n\n")
    return Result.map(overlay([thinks, ...thinkingLayers, formatLayer, config], wireNames, reserved), (parameters) => ({
      body: {
        ...parameters,
        contents: [...write(turns, names).output],
        ...(text === "" ? {} : { systemInstruction: { parts: [{ text }] } }),
        ...(tools.length === 0 ? {} : { tools })
      },
      names,
      restore,
      lost,
      damaged,
      effort: isBefore3(model) ? undefined : askedEffort(layers, settings.efforts),
      unheard: isUnheard(layers, thinking)
    }))
  }
}
