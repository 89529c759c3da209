/** Writes a request for OpenAI's Responses API. */
import * as Hash from "effect/Hash"
import * as Result from "effect/Result"
import type {
  FunctionTool,
  ResponseCreateParamsStreaming,
  ResponseFunctionCallOutputItem,
  ResponseInputContent,
  ResponseInputItem
} from "openai/resources/responses/responses"
import { type ModelRequest, type ToolChange, turnPurpose } from "../../../core/ChatModel.ts"
import type * as Content from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import { changesBehind, withChanges } from "../turn/changes.ts"
import { choiceOf } from "../turn/choice.ts"
import { dataOf, type Dialect, placeholders, type GivenContent } from "../turn/dialect.ts"
import { makeFold } from "../turn/fold.ts"
import { type AiTurn, type AnsweredCall, makeNormalizer, makeTurnsWriter, type Turn } from "../turn/normalize.ts"
import { askedEffort, type Effort, effortOf, isUnheard, type ThinkingLevel, withThinking } from "../turn/thinking.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { wellFormed } from "../turn/wellFormed.ts"
import { listOf, numberOf, objectOf, objectsOf, stringOf } from "../wire/read.ts"
import { hostedAnswer, hostedCalls } from "./hosted.ts"
import { fileName, hasRemoteUrl, imageUrl, isDocument, readsFileId, readsImage } from "./media.ts"
import { commonNames, overlay, type WireNames } from "./parameters.ts"
import { makePrevious } from "./previousResponse.ts"
import { parting } from "./responsesTurn.ts"
import { makeOutputFormat, makeToolbox, type PreparedRequest } from "./schemas.ts"
import { type OwnTool, withOptions } from "./toolOptions.ts"

/** Settings of every request of a layer. */
export interface ResponsesSettings {
  readonly provider: string
  readonly model: string
  /** The name under which the server knows the model, if it has one of its own. */
  readonly deployment?: string | undefined
  /** Typed parameters, then raw ones; a request's own come last. */
  readonly parameters: ReadonlyArray<JsonObject>
  /** True if the model reasons, as far as its name says. A deployment's says nothing: its answers do. */
  readonly reasons: boolean
  /** The accepted efforts, if known. They may become fewer. */
  readonly efforts: ReadonlyArray<Effort> | undefined
  /** Holds arguments to the schemas of their tools, where those can be. */
  readonly strictTools?: boolean | undefined
  /** Tools that the provider runs itself. */
  readonly serverTools?: ReadonlyArray<JsonObject> | undefined
  /** True if the server takes back the plain text of its reasoning. OpenAI takes it encrypted alone. */
  readonly readsThoughts?: boolean | undefined
  /** Sends only what is new since the last response. */
  readonly hasPrevious?: boolean | undefined
  /** Sends the requests of a conversation to the same cache. */
  readonly hasCacheKey?: boolean | undefined
}

/** Facts for writing a history. `isStored` means that the provider keeps its items and finds them by id. */
interface HistoryWriting {
  readonly settings: ResponsesSettings
  readonly toolNames: ToolNames
  readonly isStored: boolean
}

const names: WireNames = {
  ...commonNames,
  maxOutputTokens: "max_output_tokens",
  verbosity: "text.verbosity",
  reasoningEffort: "reasoning.effort"
}

/** Another conversation would stand before the history, which each request has. */
const reserved = new Set([
  "model",
  "input",
  "instructions",
  "stream",
  "tools",
  "tool_choice",
  "conversation",
  "previous_response_id"
])

const dialectOf = (provider: string): Dialect => ({
  provider,
  systemMessages: "keep",
  reasoning: "own",
  media: (block) =>
    block.type === "image" ? readsImage(block) : readsFileId(block) || hasRemoteUrl(block) || isDocument(block),
  madeMedia: (block, data) =>
    data !== undefined &&
    block.type === "image" &&
    stringOf(dataOf(block.providerData, { provider })?.["id"]) !== undefined,
  toolMedia: "inline",
  humanFirst: false,
  humanLast: false,
  saysMore: ({ items }) => listOf(items).length > 0,
  callIdLength: 64
})

const part = (block: GivenContent): Part => {
  if (block.type === "text") return { type: "input_text", text: block.text }
  const { source } = block
  if (block.type === "image") {
    return source.kind === "fileId"
      ? { type: "input_image", detail: "auto", file_id: source.fileId }
      : { type: "input_image", detail: "auto", image_url: imageUrl(source) }
  }
  if (source.kind === "fileId") return { type: "input_file", file_id: source.fileId }
  if (source.kind === "url") return { type: "input_file", file_url: source.url }
  return { type: "input_file", filename: fileName(block), file_data: imageUrl(source) }
}

/** The options of a message for OpenAI. They were checked. */
const optionsOf = (options: JsonObject | undefined): JsonObject | undefined => objectOf(options?.["openai"])

type Part = ResponseInputContent & ResponseFunctionCallOutputItem

/** Writes content with the detail of its images, and with a cache mark at its end, if options ask for them. */
const partsOf = (content: ReadonlyArray<GivenContent>, messageOptions: JsonObject | undefined): ReadonlyArray<Part> => {
  const options = optionsOf(messageOptions)
  const detail = stringOf(options?.["imageDetail"])
  const mark = objectOf(options?.["cacheBreakpoint"])
  const parts = content.map((block): Part => {
    const one = part(block)
    return one.type === "input_image" && detail !== undefined ? { ...one, detail: detail as typeof one.detail } : one
  })
  const last = parts.at(-1)
  if (mark === undefined || last === undefined) return parts
  const { ttl } = mark
  return parts.with(-1, {
    ...last,
    prompt_cache_breakpoint: ttl === "12h" || ttl === "30m" ? { mode: "explicit", ttl } : { mode: "explicit" }
  })
}

const isMarked = (options: JsonObject | undefined): boolean => optionsOf(options)?.["cacheBreakpoint"] !== undefined

const answer = (call: AnsweredCall, own: boolean): ResponseInputItem => {
  const hosted = own ? hostedAnswer(call) : undefined
  if (hosted !== undefined) return hosted as ResponseInputItem & JsonObject
  const {
    answer: { content, options },
    id
  } = call
  const [first] = content
  const isPlain = content.length === 1 && first?.type === "text" && !isMarked(options)
  const output = isPlain ? first.text : [...partsOf(content, options)]
  // A program waits for the output of its own call.
  const caller = own ? objectOf(call.data?.["caller"]) : undefined
  const caller_id = caller?.["type"] === "program" ? stringOf(caller["caller_id"]) : undefined
  return {
    type: "function_call_output",
    call_id: id,
    output,
    ...(caller_id === undefined ? {} : { caller: { type: "program" as const, caller_id } })
  }
}

/** An item and its position in the model's own output. Items of other models have no position. */
interface PlacedItem {
  readonly at: number
  readonly item: ResponseInputItem
}

const last = Number.MAX_SAFE_INTEGER

/** A message of the model's that is stored, under its id: reasoning before it is looked for with it. */
const storedMessage = (id: string, texts: ReadonlyArray<string>, phase: Phase): ResponseInputItem & JsonObject => ({
  type: "message",
  id,
  role: "assistant",
  status: "completed",
  content: texts.map((text) => ({ type: "output_text", text, annotations: [], logprobs: [] })),
  ...phase
})

type Phase = { readonly phase?: "commentary" | "final_answer" }

const phaseOf = (data: JsonObject | undefined): Phase => {
  const phase = data?.["phase"]
  return phase === "commentary" || phase === "final_answer" ? { phase } : {}
}

/** Reports whether ids and reasoning of a turn come from this model. */
const isOwn = (turn: AiTurn, { model }: ResponsesSettings): boolean =>
  turn.data?.["model"] === model && turn.stopReason !== "interrupted"

/**
 * Writes a turn of the model as the original items, in their order: a reasoning item must precede the item that it led
 * to. Another model gets only the text and the calls, without ids and reasoning.
 */
const writeTurn = (
  turn: AiTurn,
  { isStored, settings, toolNames }: HistoryWriting
): ReadonlyArray<ResponseInputItem> => {
  const own = isOwn(turn, settings)
  const placed: Array<PlacedItem> = []
  const place = (data: JsonObject | undefined, item: ResponseInputItem): void => {
    placed.push({ at: (own ? numberOf(data?.["index"]) : undefined) ?? last, item })
  }
  const messages = new Map<string, { readonly texts: Array<string>; readonly data: JsonObject | undefined }>()
  let isForgotten = false

  const placeReasoning = (data: JsonObject | undefined): void => {
    const item = objectOf(data?.["item"])
    if (!own || item === undefined) return
    // Only storage keeps reasoning without encrypted content.
    const isPlain = settings.readsThoughts === true && listOf(item["content"]).length > 0
    if (isStored || isPlain || item["encrypted_content"]) place(data, item as ResponseInputItem & JsonObject)
    else isForgotten = true
  }

  const placeText = (data: JsonObject | undefined, text: string): void => {
    const id = own && isStored ? stringOf(data?.["id"]) : undefined
    const begun = messages.get(id ?? "")
    if (id === undefined) place(data, { role: "assistant", content: text, ...(own ? phaseOf(data) : {}) })
    else if (begun === undefined) messages.set(id, { texts: [text], data })
    else begun.texts.push(text)
  }

  const placeCall = ({ arguments: args, data, id: call_id, name }: AnsweredCall): void => {
    const hosted = own ? objectOf(data?.["hosted"]) : undefined
    if (hosted !== undefined) return place(data, hosted as ResponseInputItem & JsonObject)
    // A call with its id is rejected without the reasoning that led to it.
    const id = own && !isForgotten ? stringOf(data?.["id"]) : undefined
    place(data, {
      type: "function_call",
      call_id,
      name: toolNames.wire(name),
      arguments: JSON.stringify(args),
      ...(own ? keptOf(data) : {}),
      ...(id === undefined ? {} : { id })
    })
  }

  /** A drawn picture goes back as the item that it came as, with its data. */
  const placePicture = (data: JsonObject | undefined, { source }: Content.ImageBlock | Content.FileBlock): void => {
    if (source.kind !== "base64") return
    const item = { ...objectOf(data?.["item"]), id: data?.["id"] ?? "", result: source.data }
    place(data, { status: "completed", ...item, type: "image_generation_call" } as ResponseInputItem & JsonObject)
  }

  for (const block of turn.content) {
    const data = dataOf(block.providerData, settings)
    if (block.type === "reasoning") placeReasoning(data)
    else if (block.media !== undefined && own) placePicture(data, block.media)
    else placeText(data, textOf(block.text, data))
  }
  for (const [id, { data, texts }] of messages) place(data, storedMessage(id, texts, phaseOf(data)))
  for (const call of turn.calls) placeCall(call)
  // Items of tools that run at the provider, verbatim.
  if (own) for (const one of objectsOf(turn.data?.["items"])) place(one, one["item"] as ResponseInputItem & JsonObject)
  placed.sort((left, right) => left.at - right.at)
  const items = placed.map(({ item }) => item)
  return items.filter((item, index) => item.type !== "reasoning" || leadsOn(items, index, isStored))
}

/** Removes the separator that was inserted before a text. */
const textOf = (text: string, data: JsonObject | undefined): string =>
  data?.["parted"] === true && text.startsWith(parting) ? text.slice(parting.length) : text

/** Further data of a call that goes back: the set of tools that it is of, and who made it. */
const keptOf = (data: JsonObject | undefined): JsonObject =>
  Object.fromEntries(
    ["namespace", "caller", "async"].flatMap((key) => (data?.[key] === undefined ? [] : [[key, data[key]]]))
  )

/** Reports whether an item other than reasoning follows. Stored reasoning is found by that item's id. */
const leadsOn = (items: ReadonlyArray<ResponseInputItem>, index: number, isStored: boolean): boolean => {
  const next = items.slice(index + 1).find((item) => item.type !== "reasoning")
  return next !== undefined && (!isStored || "id" in next)
}

const itemsOf = (turn: Turn, writing: HistoryWriting): ReadonlyArray<ResponseInputItem> => {
  switch (turn.role) {
    case "system":
      return [{ role: "system", content: turn.text }]
    case "human": {
      const [first] = turn.content
      if (turn.content.length === 1 && first?.type === "text" && !isMarked(turn.options)) {
        return [{ role: "user", content: first.text }]
      }
      return [{ role: "user", content: [...partsOf(turn.content, turn.options)] }]
    }
    case "ai":
      return [...writeTurn(turn, writing), ...turn.calls.map((call) => answer(call, isOwn(turn, writing.settings)))]
  }
}

/** The characters of the prompt, and of the first message, that tell conversations apart. Each request hashes them. */
const hashedLength = 2_000

/** The key of a conversation: a hash of its beginning, which all requests of its runs share. */
const cacheKeyOf = ({ messages, systemPrompt }: ModelRequest): JsonObject => {
  const first = messages.find(({ role }) => role === "human")
  const text = first === undefined ? "" : Message.text(first)
  const beginning = `${systemPrompt.slice(0, hashedLength)}\n${text.slice(0, hashedLength)}`
  return { prompt_cache_key: `deepagents-${Hash.string(beginning).toString(36)}` }
}

/** Reports whether a turn of this model shows that it reasons. */
const didReason = (turn: Turn, settings: ResponsesSettings): boolean =>
  turn.role === "ai" &&
  turn.data?.["model"] === settings.model &&
  (turn.data["reasons"] === true || turn.content.some((block) => block.type === "reasoning"))

/** The items behind the answer before: the results of its calls, and the messages since. */
const inputSince = (
  turns: ReadonlyArray<Turn>,
  count: number,
  writing: HistoryWriting,
  changes: ReadonlyMap<Turn, ReadonlyArray<ToolChange>>
): ReadonlyArray<ResponseInputItem> => {
  const isBefore = ({ index }: Turn): boolean => index >= 0 && index < count
  const last = turns.findLastIndex(isBefore)
  return turns.slice(Math.max(0, last)).flatMap((turn) => {
    const changed = (changes.get(turn) ?? []).flatMap(changeItems)
    if (!isBefore(turn)) return [...itemsOf(turn, writing), ...changed]
    const isAnswer = turn.role === "ai" && turn.index === count - 1
    return isAnswer ? [...turn.calls.map((call) => answer(call, true)), ...changed] : []
  })
}

/**
 * Makes the writer of one session. It reuses written items while the history and the tools stay the same. It fails with
 * the name of a reserved parameter.
 */
export const makeResponsesWriter = (settings: ResponsesSettings) => {
  const normalize = makeNormalizer(dialectOf(settings.provider))
  const toolbox = makeToolbox("openai", settings.strictTools)
  const outputFormat = makeOutputFormat()
  const writeFor = (isStored: boolean) =>
    makeTurnsWriter((item: Turn | ToolChange, toolNames: ToolNames) =>
      "role" in item ? itemsOf(item, { settings, toolNames, isStored }) : changeItems(item)
    )
  const findPrevious = makePrevious(settings.provider)
  const [writeStored, writeForgotten] = [writeFor(true), writeFor(false)]
  const findReasons = makeFold<Turn, true>((found, turn) => {
    if (didReason(turn, settings)) found.push(true)
  })

  const thinking = (level: ThinkingLevel): JsonObject => {
    const { efforts } = settings
    const effort = efforts?.length === 0 ? undefined : effortOf(level, efforts)
    return effort === undefined ? {} : { reasoning: { effort } }
  }

  return (request: ModelRequest): Result.Result<PreparedRequest<ResponseCreateParamsStreaming>, string> => {
    const { definitions, names: toolNames, restoreCall } = toolbox(request.tools)
    const serverTools = request.purpose === turnPurpose ? (settings.serverTools ?? []) : []
    const hosted = hostedCalls(serverTools, request.tools)
    const { damaged, turns } = normalize(request.messages)
    const reasons = settings.reasons || findReasons(turns).output.length > 0
    const layers = [...settings.parameters, request.parameters]
    const isStored = layers.findLast(({ store }) => store !== undefined)?.["store"] !== false
    const writeItems = isStored ? writeStored : writeForgotten
    const changes = changesBehind(turns, request)
    const input = [...writeItems(withChanges(turns, changes), toolNames).output]
    if (input.length === 0) input.push({ role: "user", content: placeholders.emptyMessage.text })
    const { format, lost, restore } = outputFormat(request.outputSchema)
    const text = format === undefined ? [] : [{ text: { format: { type: "json_schema", ...format } } }]
    const cache = settings.hasCacheKey === true && request.purpose === turnPurpose ? [cacheKeyOf(request)] : []
    const thinkingLayers = withThinking(
      [...cache, ...compactionOf(request), ...settings.parameters, ...text, request.parameters],
      thinking
    )
    const previous =
      settings.hasPrevious === true && request.purpose === turnPurpose ? findPrevious(request.messages) : undefined
    return Result.map(overlay(thinkingLayers, names, reserved), (parameters) => {
      const own = definitions.flatMap(
        ({ description, name, parameters: schema, strict = false }, index): Array<OwnTool> => {
          if (hosted.replaced.has(name)) return []
          const options = request.tools[index]?.providerOptions?.openai
          return [{ tool: { type: "function", name, description, parameters: schema, strict }, options }]
        }
      )
      const tools = [...serverTools, ...withOptions(own, serverTools)]
      const body = Object.assign({}, parameters, {
        ...(reasons && !isStored
          ? { include: [...new Set([...listOf(parameters["include"]), "reasoning.encrypted_content"])] }
          : {}),
        model: settings.deployment ?? settings.model,
        ...(request.systemPrompt === "" ? {} : { instructions: wellFormed(request.systemPrompt) }),
        input,
        ...(tools.length === 0 ? {} : { tools, ...choice(request, toolNames) }),
        stream: true
      })
      // The API validates raw parameters.
      const isNew = previous !== undefined
      const news = isNew
        ? {
            ...body,
            input: inputSince(turns, previous.count, { settings, toolNames, isStored }, changes),
            previous_response_id: previous.id
          }
        : body
      return {
        body: news as ResponseCreateParamsStreaming,
        whole: isNew ? (body as ResponseCreateParamsStreaming) : undefined,
        names: toolNames,
        restore,
        restoreCall,
        hosted,
        lost,
        damaged,
        effort: askedEffort(layers, settings.efforts),
        unheard: isUnheard(layers, thinking)
      }
    })
  }
}

/** Items that tell the model of other tools. The API has none for a tool that goes, so a message says so. */
const changeItems = ({ add, again, remove }: ToolChange): ReadonlyArray<ResponseInputItem> => {
  const tools = add.map(({ description, name, parameters }): FunctionTool => {
    return { type: "function", name, description, parameters: { ...parameters }, strict: false }
  })
  const notices = [
    ...(again.length === 0 ? [] : [`You can call these tools again: ${again.join(", ")}.`]),
    ...(remove.length === 0 ? [] : [`You can't call these tools any more: ${remove.join(", ")}.`])
  ]
  return [
    ...(tools.length === 0 ? [] : [{ type: "additional_tools", role: "developer", tools } as const]),
    ...(notices.length === 0 ? [] : [{ role: "system", content: wellFormed(notices.join("\n")) } as const])
  ]
}

/** Has OpenAI compact the conversation itself. */
const compactionOf = ({ compactAt, purpose }: ModelRequest): ReadonlyArray<JsonObject> =>
  compactAt === undefined || purpose !== turnPurpose
    ? []
    : [{ context_management: [{ type: "compaction", compact_threshold: compactAt }] }]

const choice = (request: ModelRequest, toolNames: ToolNames): Pick<ResponseCreateParamsStreaming, "tool_choice"> => {
  const toolChoice = choiceOf(request)
  if (toolChoice === "auto") return {}
  if (typeof toolChoice === "string") return { tool_choice: toolChoice }
  const toolOf = (name: string) => ({ type: "function" as const, name: toolNames.wire(name) })
  if ("tool" in toolChoice) return { tool_choice: toolOf(toolChoice.tool) }
  const tools = toolChoice.oneOf.map(toolOf)
  return { tool_choice: { type: "allowed_tools", mode: toolChoice.mode ?? "required", tools } }
}
