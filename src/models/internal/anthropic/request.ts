/** A request of the library as the body of a request to the Messages API. */
import * as Result from "effect/Result"
import type { ModelRequest, ToolDefinition } from "../../../core/ChatModel.ts"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import { toolSchema } from "../schema/toolSchema.ts"
import { changesBehind } from "../turn/changes.ts"
import { narrow, type SimpleRequest } from "../turn/choice.ts"
import { makeNormalizer, type Turn } from "../turn/normalize.ts"
import {
  budgetOf,
  type Efforts,
  effortOf,
  makeEfforts,
  thinkingFrom,
  type ThinkingLevel,
  withThinking
} from "../turn/thinking.ts"
import { makeToolNames, type ToolNames } from "../turn/toolNames.ts"
import { wellFormed } from "../turn/wellFormed.ts"
import { withBreakpoints } from "./cache.ts"
import { namesOf } from "./clientTools.ts"
import { dialect, makeMarksFinder } from "./content.ts"
import { filesBeta, makeFilesWatch } from "./filesBeta.ts"
import { makeHistoryEncoder } from "./history.ts"
import type { Profile } from "./models.ts"
import { makeOutputRequests, type OutputRequest, strictSchema } from "./output.ts"
import { overlay } from "./parameters.ts"
import { cacheTtl, type Settings } from "./settings.ts"
import { changeBetas, makeChangeWriter } from "./toolChanges.ts"
import { optionFields, searchFor } from "./toolOptions.ts"
import type { Body, Message, Part, Prompt, TextPart, Thinking, Tool, ToolChoice } from "./wire.ts"

/**
 * The context in which a session encodes requests. `remote` means that the platform fetches URLs and has a Files API.
 * `fields` are the platform's additions to each body.
 */
export interface Encoding {
  readonly model: string
  readonly profile: Profile
  readonly settings: Settings
  readonly remote: boolean
  readonly fields: Partial<Body>
  /** The efforts that were not refused. */
  readonly efforts?: Efforts | undefined
}

/**
 * A body, the tool names in it, the beta features that it needs, the parts of an output schema that are not enforced,
 * and the images and files that can't be sent.
 */
export interface EncodedRequest {
  readonly body: Body
  readonly names: ToolNames
  readonly betas: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  readonly damaged: ReadonlyArray<string>
  /** The effort that a level was mapped to. */
  readonly effort?: Effort | undefined
}

/** The longest tool name, in characters. */
const nameLength = 128

/** Tokens for the answer, beyond a thinking budget without a limit of its own. */
const answerTokens = 4_096

/** The smallest budget that the API takes. */
const leastBudget = 1_024

type Effort = NonNullable<Settings["effort"]>

/** Maps a level to an effort, for models without budgets. */
const effortFor = (level: ThinkingLevel, { efforts = makeEfforts(undefined), profile }: Encoding): Effort => {
  const acceptedEfforts = efforts.taken()
  const usableEfforts = profile.efforts.filter((effort) => acceptedEfforts?.includes(effort) !== false)
  const bestEffort = effortOf(level, usableEfforts)
  return usableEfforts.find((effort) => effort === bestEffort) ?? "high"
}

/** The thinking of a request, and the effort that comes with it. */
const thinkingOf = (
  encoding: Encoding
): {
  readonly thinking?: Thinking | undefined
  readonly effort?: Effort | undefined
  /** The effort that the level was mapped to. */
  readonly mapped?: Effort | undefined
} => {
  const { profile, settings } = encoding
  const { effort, showThinking, thinking } = settings
  const display = showThinking === undefined ? {} : ({ display: showThinking ? "summarized" : "omitted" } as const)
  if (thinking === "off") return { thinking: { type: profile.thinkingOff }, effort }
  if (thinking === undefined && showThinking === undefined) return { effort }
  if (thinking === undefined || thinking === "adaptive") return { thinking: { type: "adaptive", ...display }, effort }
  const budget = budgetOf(thinking)
  if (budget === 0) return { thinking: { type: profile.thinkingOff }, effort }
  const byBudget = profile.thinkingBy === "budget" || (profile.thinkingBy === "either" && typeof thinking === "object")
  const mapped = byBudget || effort !== undefined ? undefined : effortFor(thinking, encoding)
  return byBudget
    ? { thinking: { type: "enabled", budget_tokens: Math.max(leastBudget, budget), ...display }, effort }
    : { thinking: { type: "adaptive", ...display }, effort: effort ?? mapped, mapped }
}

const maxTokensOf = ({ profile, settings }: Encoding, thinking: Thinking | undefined): number => {
  if (settings.maxTokens !== undefined) return settings.maxTokens
  if (thinking?.type !== "enabled") return profile.maxTokens
  return Math.min(profile.maxOutputTokens, Math.max(profile.maxTokens, thinking.budget_tokens + answerTokens))
}

/**
 * Reports whether a thinking budget can be used. A round of tool calls must begin with thinking, which another model's
 * round lacks.
 */
const canThink = (thinking: Thinking | undefined, messages: ReadonlyArray<Message>): boolean => {
  if (thinking?.type !== "enabled") return true
  const content = messages.findLast((message) => message.role === "assistant")?.content ?? []
  const first = content[0]?.type
  return first === "thinking" || first === "redacted_thinking" || !content.some(({ type }) => type === "tool_use")
}

/** Facts for writing tools. */
interface ToolWriting {
  readonly isStrict: boolean
  readonly serverTools: ReadonlyArray<JsonObject>
}

const toolOf = (tool: ToolDefinition, names: ToolNames, { isStrict, serverTools }: ToolWriting): Tool => {
  const schema = toolSchema(tool.parameters, "anthropic")
  const strict = isStrict ? strictSchema(schema) : undefined
  return {
    name: names.wire(tool.name),
    description: wellFormed(tool.description),
    input_schema: strict ?? schema,
    ...(strict === undefined ? {} : { strict: true }),
    ...optionFields(tool, serverTools)
  }
}

/** The choice that lets the model ask for one tool at a time. */
const oneByOne = (choice: ToolChoice | undefined): ToolChoice =>
  choice?.type === "none" ? choice : { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true }

/** The container of a turn that goes on: what runs in it called a tool, and waits for the result. */
const containerOf = (turn: Turn | undefined): string | undefined => {
  if (turn?.role !== "ai" || (turn.calls.length === 0 && turn.stopReason !== "pause")) return undefined
  const container = turn.data?.["container"]
  return typeof container === "string" && container !== "" ? container : undefined
}

/** The caller's words about the container stay: its skills, or another one. */
const inContainer = (body: Body, id: string): Body => {
  const { container } = body
  return typeof container === "string" ? body : { ...body, container: isObject(container) ? { id, ...container } : id }
}

/** Chooses the tool choice, and an instruction for models that can't be forced. */
const choiceOf = (
  { profile }: Encoding,
  request: SimpleRequest,
  thinking: Thinking | undefined,
  tools: ReadonlyArray<ToolDefinition>,
  names: ToolNames
): { readonly choice?: ToolChoice | undefined; readonly plea?: string | undefined } => {
  const { toolChoice } = request
  // Tools that are there for the cache alone are not to be called.
  const isOff = request.tools.length === 0 && tools.length > 0
  if (toolChoice === "none" || isOff) return { choice: { type: "none" } }
  if (toolChoice === "auto") return {}
  const name = toolChoice === "required" ? undefined : names.wire(toolChoice.tool)
  if (profile.forcedTools && thinking?.type !== "enabled") {
    return { choice: name === undefined ? { type: "any" } : { type: "tool", name } }
  }
  return { plea: name === undefined ? "Call a tool now." : `Call the tool ${name} now.` }
}

const withPlea = (messages: ReadonlyArray<Message>, plea: string): ReadonlyArray<Message> => {
  const last = messages.at(-1)
  const part: Part = { type: "text", text: plea }
  return last?.role === "user"
    ? messages.with(-1, { ...last, content: [...last.content, part] })
    : [...messages, { role: "user", content: [part] }]
}

const outputConfig = (effort: Effort | undefined, output: OutputRequest | undefined): Body["output_config"] => {
  const config = defined({ effort, format: output?.format })
  return Object.keys(config).length === 0 ? undefined : config
}

const fieldsOf = ({ metadata, stopSequences, temperature, topK, topP }: Settings): Partial<Body> =>
  defined({
    stop_sequences: stopSequences,
    temperature,
    top_p: topP,
    top_k: topK,
    metadata: metadata === undefined ? undefined : { user_id: metadata.userId }
  })

const compactionBeta = "compact-2026-01-12"

/** The least tokens at which Claude compacts. */
const leastCompaction = 50_000

/** Has Claude compact the conversation itself. */
const compactionOf = ({ compactAt }: ModelRequest): Partial<Body> =>
  compactAt === undefined
    ? {}
    : {
        context_management: {
          edits: [
            {
              type: "compact_20260112",
              trigger: { type: "input_tokens", value: Math.max(leastCompaction, compactAt) }
            }
          ]
        }
      }

const interleaved = "interleaved-thinking-2025-05-14"

const isInterleaved = ({ thinking }: Settings): boolean =>
  typeof thinking === "object" && "interleaved" in thinking && thinking.interleaved === true

/** Merges the settings of the layer and the request. The raw parameters may contain a level of thinking. */
const settingsOf = ({ settings: own }: Encoding, request: ModelRequest) => {
  const raw = [own.parameters ?? {}, request.parameters]
  const level = raw.reduce<ThinkingLevel | undefined>((last, { thinking: one }) => thinkingFrom(one) ?? last, undefined)
  const parallel = raw.findLast((layer) => layer["parallelToolCalls"] !== undefined)?.["parallelToolCalls"]
  return {
    settings: level === undefined ? own : { ...own, thinking: level },
    parameters: withThinking(raw, () => ({})).map(({ parallelToolCalls: _, ...layer }) => layer),
    isParallel: (parallel ?? own.parallelToolCalls) !== false
  }
}

/**
 * Makes an encoder for one session. It remembers the last tools: a request without tools in a conversation with calls
 * is sent with them and an order not to call, which keeps the cache. It fails with the name of a reserved parameter.
 */
export const makeEncoder = (encoding: Encoding): ((request: ModelRequest) => Result.Result<EncodedRequest, string>) => {
  const { fields, model, remote } = encoding
  const normalize = makeNormalizer(dialect(remote))
  const outputOf = makeOutputRequests()
  const ttl = cacheTtl(encoding.settings)
  const provided = encoding.settings.serverTools ?? []
  const serverNames = namesOf(provided)
  let offered: ReadonlyArray<ToolDefinition> = []
  let names = makeToolNames([], nameLength)
  let wireTools: ReadonlyArray<Tool> = []
  const hasFiles = makeFilesWatch()
  const marksOf = makeMarksFinder()
  const encodeHistory = makeHistoryEncoder(
    makeChangeWriter((tool, own) => toolOf(tool, own, { isStrict: false, serverTools: provided }))
  )
  const isStrict = encoding.settings.strictTools === true && encoding.profile.structuredOutput === "native"

  return (fullRequest) => {
    const request = narrow(fullRequest)
    const { damaged, system: folded, turns } = normalize(request.messages)
    if (request.tools.length > 0 && request.tools !== offered) {
      offered = request.tools
      names = makeToolNames(offered, nameLength)
      wireTools = offered.map((tool) => toolOf(tool, names, { isStrict, serverTools: provided }))
    }
    const isUsed = request.tools.length > 0 || turns.some((turn) => turn.role === "ai" && turn.calls.length > 0)
    const [tools, own] = isUsed ? [offered, wireTools] : [[], []]
    const hints = ttl === undefined ? [] : request.cacheHints
    const marks = marksOf(turns)
    const changes = changesBehind(turns, request)
    const { messages, places } = encodeHistory(turns, names, [...hints, ...marks.keys()], changes)
    const { isParallel, parameters, settings } = settingsOf(encoding, request)
    const wished = thinkingOf({ ...encoding, settings })
    const thinking = canThink(wished.thinking, messages) ? wished.thinking : undefined
    const { choice, plea } = choiceOf(encoding, request, thinking, tools, names)
    const output = outputOf(request.outputSchema)
    const system = [request.systemPrompt, ...folded, output?.plea ?? ""]
      .filter((text) => text.trim() !== "")
      .map((text): TextPart => ({ type: "text", text: wellFormed(text) }))
    const client = own.filter(({ name }) => !serverNames.has(name))
    const wire = [...provided, ...searchFor(client, provided), ...client]
    const prompt: Prompt = defined({
      model,
      system: system.length === 0 ? undefined : system,
      messages,
      tools: wire.length === 0 ? undefined : wire,
      tool_choice: wire.length === 0 ? undefined : isParallel || own.length === 0 ? choice : oneByOne(choice),
      thinking,
      output_config: outputConfig(wished.effort, output)
    })
    const cached =
      ttl === undefined && marks.size === 0 ? prompt : withBreakpoints(prompt, { places, hints, own: marks, ttl })
    const body: Body = {
      ...cached,
      max_tokens: maxTokensOf({ ...encoding, settings }, wished.thinking),
      stream: true,
      ...fieldsOf(settings),
      ...compactionOf(request),
      ...fields
    }
    const container = containerOf(turns.at(-1))
    return Result.map(overlay(body, parameters), (own) => {
      const final = container === undefined ? own : inContainer(own, container)
      return {
        body: plea === undefined ? final : { ...final, messages: withPlea(final.messages, plea) },
        names,
        betas: [
          ...(isInterleaved(settings) && thinking !== undefined ? [interleaved] : []),
          ...(request.compactAt === undefined ? [] : [compactionBeta]),
          ...(changes.size === 0 ? [] : changeBetas),
          ...(remote && hasFiles(request.messages) ? [filesBeta] : [])
        ],
        removed: output?.removed ?? [],
        damaged,
        effort: wished.mapped
      }
    })
  }
}
