/** Writes a request for Ollama's chat API. */
import * as Result from "effect/Result"
import type { ModelRequest, ToolDefinition } from "../../../core/ChatModel.ts"
import * as Content from "../../../core/Content.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { overlay } from "../openai/parameters.ts"
import { makeToolbox } from "../openai/schemas.ts"
import { narrow, type SimpleRequest } from "../turn/choice.ts"
import { dataOf, type Dialect, placeholders, type GivenContent } from "../turn/dialect.ts"
import { type AiTurn, keepLast, makeMerger, makeNormalizer, makeTurnsWriter, type Turn } from "../turn/normalize.ts"
import type { Losses } from "../turn/session.ts"
import { textOfFile } from "../turn/textFile.ts"
import { budgetOf, effortOf, isUnheard, type ThinkingLevel, withThinking } from "../turn/thinking.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { wellFormed, wellFormedObject } from "../turn/wellFormed.ts"
import { merge } from "../wire/read.ts"

/** Settings of every request of a layer. `abilities` are the model's, as the server reports them. */
export interface Settings {
  readonly provider: string
  readonly model: string
  readonly window: number
  readonly abilities: ReadonlySet<string> | undefined
  readonly parameters: ReadonlyArray<JsonObject>
}

/** A request, and the means to read its answer. `forced` is the tool whose arguments are the answer. */
export interface OllamaRequest extends Losses {
  readonly body: JsonObject
  readonly names: ToolNames
  readonly forced: string | undefined
}

const reserved = new Set(["model", "messages", "stream", "tools"])

/** The fields of a request. Other names are options of the model. */
const fields = new Set([
  ...reserved,
  "format",
  "keep_alive",
  "think",
  "options",
  "truncate",
  "shift",
  "logprobs",
  "top_logprobs"
])

const names: { readonly [name: string]: string } = {
  topP: "top_p",
  topK: "top_k",
  minP: "min_p",
  maxTokens: "num_predict",
  max_tokens: "num_predict",
  maxOutputTokens: "num_predict",
  keepAlive: "keep_alive"
}

const sorted = (layer: JsonObject): JsonObject => {
  const own: Record<string, Json> = {}
  const options: Record<string, Json> = {}
  for (const [parameter, value] of Object.entries(layer)) {
    const name = valueAt(names, parameter) ?? parameter
    if (fields.has(name)) own[name] = value
    else options[name] = value
  }
  const ownOptions = own["options"]
  return Object.keys(options).length === 0
    ? own
    : { ...own, options: merge(isObject(ownOptions) ? ownOptions : {}, options) }
}

const picture = /^data:image\/[a-z+.-]+;base64,/

/** Pictures are given by their data alone. */
const dataOfImage = (block: GivenContent): string | undefined => {
  if (block.type !== "image") return undefined
  const { source } = block
  if (source.kind === "base64") return /^image\/(?:png|jpe?g|webp)$/.test(source.mimeType) ? source.data : undefined
  return source.kind === "url" && picture.test(source.url) ? source.url.replace(picture, "") : undefined
}

const dialectOf = (provider: string): Dialect => ({
  provider,
  systemMessages: "fold",
  reasoning: "own",
  media: (block) => (dataOfImage(block) ?? "") !== "",
  asText: textOfFile,
  toolMedia: "after",
  humanFirst: false,
  humanLast: false,
  callIdLength: 64
})

const textOf = (blocks: ReadonlyArray<GivenContent>): string =>
  blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n")

/** Thoughts go back to the model that had them: those between calls are lost else. */
const thoughtsOf = (turn: AiTurn, settings: Settings): string =>
  turn.content
    .flatMap((block) => {
      const data = block.type === "reasoning" ? dataOf(block.providerData, settings) : undefined
      return data?.["model"] === settings.model ? [block.text] : []
    })
    .join("\n\n")

const messagesOf = (turn: Turn, settings: Settings, toolNames: ToolNames): ReadonlyArray<JsonObject> => {
  switch (turn.role) {
    // Folded into the prompt: the dialect leaves none.
    case "system":
      return []
    case "human": {
      const images = turn.content.flatMap((block) => dataOfImage(block) ?? [])
      return [{ role: "user", content: textOf(turn.content), ...(images.length === 0 ? {} : { images }) }]
    }
    case "ai": {
      const thinking = thoughtsOf(turn, settings)
      const calls = turn.calls.map((call, index) => ({
        id: call.id,
        function: { index, name: toolNames.wire(call.name), arguments: call.arguments }
      }))
      return [
        {
          role: "assistant",
          content: Content.toText(turn.content),
          ...(thinking === "" ? {} : { thinking }),
          ...(calls.length === 0 ? {} : { tool_calls: calls })
        },
        ...turn.calls.map((call) => ({
          role: "tool",
          content: textOf(call.answer.content),
          tool_name: toolNames.wire(call.name),
          tool_call_id: call.id
        }))
      ]
    }
  }
}

const isSaid = (turn: Turn): boolean =>
  turn.role !== "ai" || turn.calls.length > 0 || Content.toText(turn.content) !== ""

/** The one tool that has to be called: the server can't force a call, but it holds an answer to a schema. */
const forcedOf = ({ toolChoice, tools }: SimpleRequest): ToolDefinition | undefined => {
  if (toolChoice === "required") return tools.length === 1 ? tools[0] : undefined
  return typeof toolChoice === "string" ? undefined : tools.find((tool) => tool.name === toolChoice.tool)
}

/** Most models think or don't; gpt-oss has levels, and always thinks. */
const thinkOf = ({ abilities, model }: Settings, level: ThinkingLevel): JsonObject => {
  if (abilities !== undefined && !abilities.has("thinking")) return {}
  return { think: /gpt-oss/.test(model) ? (effortOf(level, ["low", "medium", "high"]) ?? "low") : budgetOf(level) > 0 }
}

/**
 * Makes the writer of one session. It reuses written messages while the history and the tools stay the same. It fails
 * with the name of a reserved parameter.
 */
export const makeWriter = (settings: Settings) => {
  const normalize = makeNormalizer(dialectOf(settings.provider))
  const toolbox = makeToolbox("openai")
  const systemMessage = keepLast((content: string): JsonObject => ({ role: "system", content }))
  const think = (level: ThinkingLevel): JsonObject => thinkOf(settings, level)
  const mergeTurns = makeMerger(isSaid)
  const write = makeTurnsWriter((turn: Turn, toolNames: ToolNames) => messagesOf(turn, settings, toolNames))

  return (fullRequest: ModelRequest): Result.Result<OllamaRequest, string> => {
    const request = narrow(fullRequest)
    const { definitions, names: toolNames } = toolbox(request.tools)
    const { damaged, system, turns } = normalize(request.messages)
    const conversation = [...write(mergeTurns(turns).output, toolNames).output]
    if (conversation.length === 0) conversation.push({ role: "user", content: placeholders.emptyMessage.text })
    const prompt = [wellFormed(request.systemPrompt), ...system].filter((text) => text !== "").join("\n\n")
    const forced = forcedOf(request)
    const isOff = request.toolChoice === "none" || forced !== undefined
    const tools = isOff ? [] : definitions.map((definition) => ({ type: "function", function: { ...definition } }))
    if (request.toolChoice === "required" && forced === undefined && tools.length > 0) {
      conversation.push({ role: "user", content: "Call a tool now." })
    }
    if (forced !== undefined) {
      conversation.push({ role: "user", content: `Give the arguments of ${toolNames.wire(forced.name)} now, as JSON.` })
    }
    const format = forced?.parameters ?? (tools.length === 0 ? request.outputSchema : undefined)
    const layers = [...settings.parameters, request.parameters]
    const thinkingLayers = withThinking(layers, think)
    const base: JsonObject = { options: { num_ctx: settings.window }, truncate: false, shift: false }
    const formatLayer: JsonObject = format === undefined ? {} : { format: wellFormedObject(format) }
    return Result.map(overlay([base, ...thinkingLayers.map(sorted), formatLayer], {}, reserved), (parameters) => ({
      body: {
        ...parameters,
        model: settings.model,
        messages: prompt === "" ? conversation : [systemMessage(prompt)].concat(conversation),
        ...(tools.length === 0 ? {} : { tools }),
        stream: true
      },
      names: toolNames,
      forced: forced === undefined ? undefined : toolNames.wire(forced.name),
      damaged,
      unheard: isUnheard(layers, think)
    }))
  }
}
