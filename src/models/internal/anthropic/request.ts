/**
 * A request of the library as the body of a request to the Messages API.
 */
import * as Result from "effect/Result"
import type { ModelRequest, ToolDefinition } from "../../../core/ChatModel.ts"
import { isObject } from "../../../core/Json.ts"
import { defined } from "../../../support/defined.ts"
import { makeNormalizer } from "../normalize.ts"
import { makeToolNames, type ToolNames } from "../toolNames.ts"
import { toolSchema } from "../toolSchema.ts"
import { wellFormed } from "../wellFormed.ts"
import { withBreakpoints } from "./cache.ts"
import { dialect } from "./content.ts"
import { makeHistoryEncoder } from "./history.ts"
import type { Profile } from "./models.ts"
import { makeOutputRequests, type OutputRequest } from "./output.ts"
import { overlay } from "./parameters.ts"
import { cacheTtl, type Settings } from "./settings.ts"
import type { Body, Message, Part, Prompt, TextPart, Thinking, Tool, ToolChoice } from "./wire.ts"

/**
 * The context in which a session encodes requests. `remote`: whether the platform fetches URLs and has a Files API.
 * `fields`: what the platform wants in each body.
 */
export interface Encoding {
  readonly model: string
  readonly profile: Profile
  readonly settings: Settings
  readonly remote: boolean
  readonly fields: Partial<Body>
}

/**
 * A body, the tool names in it, the beta features that it needs, what of an output schema is not enforced, and which
 * images and files can't be sent.
 */
export interface Encoded {
  readonly body: Body
  readonly names: ToolNames
  readonly betas: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  readonly damaged: ReadonlyArray<string>
}

/** The longest tool name, in characters. */
const nameLength = 128

/** Tokens for an answer beyond the thinking before it, where only those of the thinking were given. */
const answerTokens = 4_096

const thinkingOf = ({ profile, settings }: Encoding): Thinking | undefined => {
  const { showThinking, thinking } = settings
  const display = showThinking === undefined ? {} : ({ display: showThinking ? "summarized" : "omitted" } as const)
  if (thinking === "off") return { type: profile.thinkingOff }
  if (thinking === undefined && showThinking === undefined) return undefined
  if (thinking === undefined || thinking === "adaptive") return { type: "adaptive", ...display }
  return { type: "enabled", budget_tokens: thinking.budgetTokens, ...display }
}

const maxTokensOf = ({ profile, settings }: Encoding): number => {
  if (settings.maxTokens !== undefined) return settings.maxTokens
  const { thinking } = settings
  if (typeof thinking !== "object") return profile.maxTokens
  return Math.min(profile.maxOutputTokens, Math.max(profile.maxTokens, thinking.budgetTokens + answerTokens))
}

/**
 * With a thinking budget, a round of tool calls goes on only if it began with thinking; one that another model began
 * did not, and then this request does without.
 */
const canThink = (thinking: Thinking | undefined, messages: ReadonlyArray<Message>): boolean => {
  if (thinking?.type !== "enabled") return true
  const said = messages.findLast((message) => message.role === "assistant")?.content ?? []
  const first = said[0]?.type
  return first === "thinking" || first === "redacted_thinking" || !said.some(({ type }) => type === "tool_use")
}

const toolOf = (tool: ToolDefinition, names: ToolNames): Tool => ({
  name: names.wire(tool.name),
  description: wellFormed(tool.description),
  input_schema: toolSchema(tool.parameters, "anthropic")
})

/** The tool choice, and what is said to a model that can't be made to choose so. */
const choiceOf = (
  { profile }: Encoding,
  request: ModelRequest,
  thinking: Thinking | undefined,
  names: ToolNames
): { readonly choice?: ToolChoice | undefined; readonly plea?: string | undefined } => {
  const { toolChoice, tools } = request
  if (toolChoice === "none" || tools.length === 0) return { choice: { type: "none" } }
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

const outputConfig = ({ settings }: Encoding, output: OutputRequest | undefined): Body["output_config"] => {
  const config = defined({ effort: settings.effort, format: output?.format })
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

const interleaved = "interleaved-thinking-2025-05-14"

/**
 * Makes an encoder for one session. It remembers the tools that were offered last: a request without any, in a
 * conversation with calls, is sent with them and the order not to call, which keeps what is cached. A request fails
 * with the name of a parameter that is not the caller's to set.
 */
export const makeEncoder = (encoding: Encoding): ((request: ModelRequest) => Result.Result<Encoded, string>) => {
  const { fields, model, remote, settings } = encoding
  const normalize = makeNormalizer(dialect(remote))
  const encodeHistory = makeHistoryEncoder()
  const outputOf = makeOutputRequests()
  const ttl = cacheTtl(settings)
  let offered: ReadonlyArray<ToolDefinition> = []
  let names = makeToolNames([], nameLength)

  return (request) => {
    const { damaged, system: folded, turns } = normalize(request.messages)
    if (request.tools.length > 0 && request.tools !== offered) {
      offered = request.tools
      names = makeToolNames(offered, nameLength)
    }
    const tools =
      request.tools.length > 0 || turns.some((turn) => turn.role === "ai" && turn.calls.length > 0) ? offered : []
    const hints = ttl === undefined ? [] : request.cacheHints
    const { messages, places } = encodeHistory(turns, names, new Set(hints))
    const wished = thinkingOf(encoding)
    const thinking = canThink(wished, messages) ? wished : undefined
    const { choice, plea } = choiceOf(encoding, request, thinking, names)
    const output = outputOf(request.outputSchema)
    const system = [request.systemPrompt, ...folded, output?.plea ?? ""]
      .filter((text) => text.trim() !== "")
      .map((text): TextPart => ({ type: "text", text: wellFormed(text) }))
    const wire = [...(settings.serverTools ?? []), ...tools.map((tool) => toolOf(tool, names))]
    const prompt: Prompt = defined({
      model,
      system: system.length === 0 ? undefined : system,
      messages,
      tools: wire.length === 0 ? undefined : wire,
      tool_choice: wire.length === 0 ? undefined : choice,
      thinking,
      output_config: outputConfig(encoding, output)
    })
    const cached = ttl === undefined ? prompt : withBreakpoints(prompt, places, hints, ttl)
    const body: Body = { ...cached, max_tokens: maxTokensOf(encoding), stream: true, ...fieldsOf(settings), ...fields }
    const isInterleaved = isObject(settings.thinking) && settings.thinking["interleaved"] === true
    return Result.map(overlay(body, [settings.parameters ?? {}, request.parameters]), (final) => ({
      body: plea === undefined ? final : { ...final, messages: withPlea(final.messages, plea) },
      names,
      betas: isInterleaved && thinking !== undefined ? [interleaved] : [],
      removed: output?.removed ?? [],
      damaged
    }))
  }
}
