/** Writes a request for Bedrock's Converse API. */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { ModelRequest, ToolDefinition } from "../../../core/ChatModel.ts"
import type { ReasoningBlock, TextBlock } from "../../../core/Content.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import { profileOf } from "../anthropic/models.ts"
import { overlay, type WireNames } from "../openai/parameters.ts"
import { toolSchema } from "../schema/toolSchema.ts"
import { narrow, type SimpleRequest } from "../turn/choice.ts"
import { dataOf, type Dialect, type GivenContent } from "../turn/dialect.ts"
import { makeFold } from "../turn/fold.ts"
import { arrange } from "../turn/layout.ts"
import { type AiTurn, type AnsweredCall, makeNormalizer, type Turn } from "../turn/normalize.ts"
import type { Losses } from "../turn/session.ts"
import { textOfFile } from "../turn/textFile.ts"
import { budgetOf, type Effort, effortOf, isUnheard, type ThinkingLevel, withThinking } from "../turn/thinking.ts"
import { makeToolNames, type ToolNames } from "../turn/toolNames.ts"
import { wellFormed, wellFormedObject } from "../turn/wellFormed.ts"
import { merge, stringOf } from "../wire/read.ts"
import { isReadable, mediaPart } from "./media.ts"
import type { Family } from "./models.ts"
import type { Body, Message, Part } from "./wire.ts"

/** Settings of every request of a layer. */
export interface Settings {
  readonly model: string
  readonly family: Family
  readonly efforts: ReadonlyArray<Effort> | undefined
  readonly parameters: ReadonlyArray<JsonObject>
  readonly serverTools: ReadonlyArray<JsonObject>
  readonly cache: "off" | { readonly ttl: "5m" | "1h" }
}

/** A request, and the means to read its answer. */
export interface BedrockRequest extends Losses {
  readonly body: Body
  readonly names: ToolNames
}

/** The key of `providerData` under which what these models want back is. */
export const dataKey = "bedrock"

const dialectOf = ({ callIds, seesResults }: Family): Dialect => ({
  provider: dataKey,
  systemMessages: "fold",
  reasoning: "own",
  media: isReadable,
  asText: textOfFile,
  toolMedia: seesResults ? "inline" : "after",
  humanFirst: true,
  humanLast: true,
  callIdLength: callIds.length,
  callIdsExactly: callIds.exactly
})

const nameLength = 64

const thoughtPart = (block: ReasoningBlock, { family, model }: Settings): Part | undefined => {
  const data = dataOf(block.providerData, { provider: dataKey })
  if (data?.["model"] !== model) return undefined
  const redacted = stringOf(data["redacted"])
  if (redacted !== undefined) {
    const redactedContent = Result.getOrUndefined(Base64.decode(redacted))
    return redactedContent === undefined ? undefined : { reasoningContent: { redactedContent } }
  }
  const signature = stringOf(data["signature"])
  if (signature === undefined && (!family.thoughts || block.text.trim() === "")) return undefined
  return { reasoningContent: { reasoningText: defined({ text: block.text, signature }) } }
}

const saidPart = (block: TextBlock | ReasoningBlock, settings: Settings): ReadonlyArray<Part> => {
  if (block.type === "text") return [{ text: block.text }]
  const part = thoughtPart(block, settings)
  return part === undefined ? [] : [part]
}

const malformedKey = "INVALID_JSON"

const callPart = ({ arguments: args, id, name, raw }: AnsweredCall, names: ToolNames): Part => ({
  toolUse: { toolUseId: id, name: names.wire(name), input: raw === undefined ? args : { [malformedKey]: raw } }
})

/** Makes the writer of turns. Documents are numbered in the order in which they are first written. */
const makeTurnWriter = (settings: Settings) => {
  const { family } = settings
  let documents = 0
  const shownPart = (block: GivenContent): Part =>
    // The dialect lets nothing through that is no part.
    block.type === "text"
      ? { text: block.text }
      : (mediaPart(block, block.type === "file" ? ++documents : 0) ?? { text: "" })

  const resultPart = ({ answer, id }: AnsweredCall): Part => {
    const errorNote = answer.isError && !family.tellsErrors ? [{ text: "This is an error:" }] : []
    const content = [...errorNote, ...answer.content.map(shownPart)]
    return {
      toolResult: { toolUseId: id, content, ...(answer.isError && family.tellsErrors ? { status: "error" } : {}) }
    }
  }

  const saidParts = (turn: AiTurn, names: ToolNames): ReadonlyArray<Part> => {
    const contentParts = turn.content.map((block) => saidPart(block, settings))
    const calls = turn.calls.map((call) => [callPart(call, names)])
    const isOwn = turn.data?.["model"] === settings.model
    return arrange(turn.data, contentParts, calls, (part): ReadonlyArray<ReadonlyArray<Part>> =>
      isOwn ? [[part]] : []
    ).flat()
  }

  return (turn: Turn, names: ToolNames): ReadonlyArray<Message> => {
    switch (turn.role) {
      // Folded into the prompt: the dialect leaves none.
      case "system":
        return []
      case "human": {
        const content = turn.content.map(shownPart)
        // A document does not stand alone.
        const isBare = content.some((part) => "document" in part) && !content.some((part) => "text" in part)
        return [{ role: "user", content: isBare ? [{ text: "The document:" }, ...content] : content }]
      }
      case "ai": {
        const parts = saidParts(turn, names)
        const results = turn.calls.map(resultPart)
        return [
          ...(parts.length === 0 ? [] : [{ role: "assistant" as const, content: parts }]),
          ...(results.length === 0 ? [] : [{ role: "user" as const, content: results }])
        ]
      }
    }
  }
}

/** Adds a message. Roles must alternate, so results and a following human turn are one message. */
const addMessage = (messages: Array<Message>, message: Message): void => {
  const last = messages.at(-1)
  if (last?.role !== message.role) messages.push(message)
  else messages[messages.length - 1] = { ...last, content: [...last.content, ...message.content] }
}

const wireNames: WireNames = {
  ...Object.fromEntries(
    ["maxTokens", "temperature", "topP", "stopSequences"].map((name) => [name, `inferenceConfig.${name}`])
  ),
  maxOutputTokens: "inferenceConfig.maxTokens",
  max_tokens: "inferenceConfig.maxTokens",
  stop: "inferenceConfig.stopSequences"
}

const reserved = new Set(["modelId", "messages", "system", "toolConfig"])

const fields = new Set([
  ...reserved,
  "inferenceConfig",
  "guardrailConfig",
  "additionalModelRequestFields",
  "additionalModelResponseFieldPaths",
  "requestMetadata",
  "performanceConfig",
  "serviceTier",
  "outputConfig",
  "promptVariables"
])

/** Moves names that are not fields of the API to the model's own fields. */
const sorted = (layer: JsonObject): JsonObject => {
  const own: Record<string, Json> = {}
  const others: Record<string, Json> = {}
  for (const [name, value] of Object.entries(layer)) {
    if (fields.has(name) || Object.hasOwn(wireNames, name)) own[name] = value
    else others[name] = value
  }
  const ownFields = own["additionalModelRequestFields"]
  return Object.keys(others).length === 0
    ? own
    : { ...own, additionalModelRequestFields: merge(isObject(ownFields) ? ownFields : {}, others) }
}

/** Writes a level of thinking in a family's form. Empty if the family has none. */
const thinkingOf = (
  { efforts, family, model }: Pick<Settings, "model" | "family" | "efforts">,
  level: ThinkingLevel
): JsonObject => {
  const budget = budgetOf(level)
  const effort = effortOf(level, efforts ?? ["low", "medium", "high"]) ?? "low"
  switch (family.thinking) {
    case "claude": {
      const { thinkingBy, thinkingOff } = profileOf(model)
      if (budget === 0) return { thinking: { type: thinkingOff } }
      if (thinkingBy === "level" || (thinkingBy === "either" && typeof level !== "object")) {
        return { thinking: { type: "adaptive" }, output_config: { effort } }
      }
      return { thinking: { type: "enabled", budget_tokens: Math.max(1_024, budget) } }
    }
    case "nova":
      return {
        reasoningConfig: effort === "none" ? { type: "disabled" } : { type: "enabled", maxReasoningEffort: effort }
      }
    case "effort":
      return { reasoning_effort: effort }
    case "none":
      return {}
  }
}

const point = (cache: Settings["cache"]): Part => ({
  cachePoint: { type: "default", ...(cache !== "off" && cache.ttl === "1h" ? { ttl: "1h" } : {}) }
})

/** Sets cache points after the last two human turns: the end of this request and of the previous one. */
const pointed = (messages: Array<Message>, settings: Settings): void => {
  let pointsLeft = 2
  for (let at = messages.length - 1; at >= 0 && pointsLeft > 0; at--) {
    const message = messages[at]
    if (message?.role !== "user") continue
    pointsLeft--
    const isText = message.content.every((part) => "text" in part)
    if (settings.family.caches === "all" || isText) {
      messages[at] = { ...message, content: [...message.content, point(settings.cache)] }
    }
  }
}

const rootKeys = ["type", "properties", "required"]

const specOf = (tool: ToolDefinition, names: ToolNames, { plainRoot, schemas }: Family): Part => {
  const schema = toolSchema(tool.parameters, schemas)
  const json = plainRoot ? Object.fromEntries(Object.entries(schema).filter(([key]) => rootKeys.includes(key))) : schema
  const description = wellFormed(tool.description).trim()
  return {
    toolSpec: { name: names.wire(tool.name), ...(description === "" ? {} : { description }), inputSchema: { json } }
  }
}

const calledIn = (turns: ReadonlyArray<Turn>): ReadonlyArray<string> => [
  ...new Set(turns.flatMap((turn) => (turn.role === "ai" ? turn.calls.map(({ name }) => name) : [])))
]

/** A tool of which only the name is known: the history calls it, and a history with calls needs its tools. */
const forgotten = (name: string): ToolDefinition => ({
  name,
  description: "Not available any more.",
  parameters: { type: "object", properties: {} },
  annotations: {}
})

/** Chooses how to request or forbid a tool call: by the API if possible, else by an instruction. */
const choiceOf = (
  { toolChoice, tools }: SimpleRequest,
  names: ToolNames,
  { forces }: Family,
  isThinking: boolean
): { readonly choice?: Part; readonly plea?: string } => {
  if (toolChoice === "none" || tools.length === 0) return { plea: "Answer now, and call no tool." }
  if (toolChoice === "auto") return {}
  const name = typeof toolChoice === "string" ? undefined : names.wire(toolChoice.tool)
  if (forces && !isThinking) return { choice: name === undefined ? { any: {} } : { tool: { name } } }
  return { plea: name === undefined ? "Call a tool now." : `Call the tool ${name} now.` }
}

const withPlea = (messages: Array<Message>, plea: string): void => {
  const last = messages.at(-1)
  const part: Part = { text: plea }
  if (last?.role === "user") messages[messages.length - 1] = { ...last, content: [...last.content, part] }
  else messages.push({ role: "user", content: [part] })
}

/**
 * Makes the writer of one session. It reuses written messages while the history and the tools stay the same. It also
 * remembers the last tools, because Bedrock rejects a history with calls without them. It fails with the name of a
 * reserved parameter.
 */
export const makeWriter = (settings: Settings) => {
  const { cache, family, model, serverTools } = settings
  const normalize = makeNormalizer(dialectOf(family))
  const writeTurn = makeTurnWriter(settings)
  const write = makeFold<Turn, Message, ToolNames>((messages, turn, { key }) => {
    for (const message of writeTurn(turn, key)) addMessage(messages, message)
  })
  const thinking = (level: ThinkingLevel): JsonObject => thinkingOf(settings, level)
  const caches = cache !== "off" && family.caches !== "none"
  let offered: ReadonlyArray<ToolDefinition> = []
  let names = makeToolNames([], nameLength)
  let specs: ReadonlyArray<Part> = []

  const offer = (tools: ReadonlyArray<ToolDefinition>): void => {
    offered = tools
    names = makeToolNames(tools, nameLength)
    specs = tools.map((tool) => specOf(tool, names, family))
  }

  return (fullRequest: ModelRequest): Result.Result<BedrockRequest, string> => {
    const request = narrow(fullRequest)
    const { damaged, system, turns } = normalize(request.messages)
    const calls = turns.some((turn) => turn.role === "ai" && turn.calls.length > 0)
    if (request.tools.length > 0 && request.tools !== offered) offer(request.tools)
    else if (calls && offered.length === 0) offer(calledIn(turns).map(forgotten))
    const own = request.tools.length > 0 || calls ? specs : []
    const tools = [...(request.purpose === "turn" ? serverTools : []), ...own]
    const messages = [...write(turns, names).output]
    const prompt = [request.systemPrompt, ...system].flatMap((text): ReadonlyArray<Part> =>
      text.trim() === "" ? [] : [{ text: wellFormed(text) }]
    )
    const layers = [...settings.parameters, request.parameters]
    const thinkingLayers = withThinking(layers, thinking)
    const formatLayer: JsonObject =
      request.outputSchema === undefined
        ? {}
        : {
            outputConfig: {
              textFormat: {
                type: "json_schema",
                structure: {
                  jsonSchema: { name: "answer", schema: JSON.stringify(wellFormedObject(request.outputSchema)) }
                }
              }
            }
          }
    return Result.map(overlay([...thinkingLayers.map(sorted), formatLayer], wireNames, reserved), (parameters) => {
      const extra = parameters["additionalModelRequestFields"]
      const thinkingField = isObject(extra) ? extra["thinking"] : undefined
      const isThinking = isObject(thinkingField) && thinkingField["type"] === "enabled"
      const { choice, plea } = own.length === 0 ? {} : choiceOf(request, names, family, isThinking)
      if (caches) pointed(messages, settings)
      if (plea !== undefined) withPlea(messages, plea)
      const body: Body = {
        ...parameters,
        modelId: model,
        messages,
        ...(prompt.length === 0 ? {} : { system: caches ? [...prompt, point(cache)] : prompt }),
        ...(tools.length === 0
          ? {}
          : {
              toolConfig: {
                tools: family.caches === "all" && caches ? [...tools, point(cache)] : tools,
                ...defined({ toolChoice: choice })
              }
            })
      }
      return { body, names, damaged, unheard: isUnheard(layers, thinking) }
    })
  }
}
