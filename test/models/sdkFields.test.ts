/**
 * The fields of the vendors' SDKs, from their declarations, with a decision for each: a new release shows its new fields
 * here. `own`: an option or the loop sets it. `raw`: it passes by `parameters` or `serverTools`, and its answer is
 * read. Anything else is the reason for leaving it out.
 */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"

const declarations = (sdk: string, file: string): string =>
  readFileSync(new URL(`../../node_modules/${sdk}/${file}`, import.meta.url), "utf8")

const sources = {
  responses: () => declarations("openai", "resources/responses/responses.d.ts"),
  chat: () => declarations("openai", "resources/chat/completions/completions.d.ts"),
  anthropic: () => declarations("@anthropic-ai/sdk", "resources/beta/messages/messages.d.ts")
}

/** The properties of an interface, without inner objects' properties. */
const propertiesOf = (text: string, name: string): ReadonlyArray<string> => {
  const start = text.indexOf("{", text.search(new RegExp(`interface ${name}\\b`)))
  let depth = 0
  const names: Array<string> = []
  for (const line of text
    .slice(start)
    .replace(/\/\*\*[^]*?\*\//g, "")
    .split("\n")) {
    const property = /^\s*'?([\w$]+)'?\??:/.exec(line)?.[1]
    if (depth === 1 && property !== undefined) names.push(property)
    for (const character of line) {
      if (character === "{" || character === "(") depth++
      if (character === "}" || character === ")") depth--
    }
    if (depth === 0) break
  }
  return names
}

/** The members of a union. */
const membersOf = (text: string, name: string): ReadonlyArray<string> =>
  (new RegExp(`export type ${name} =([^;]+);`).exec(text)?.[1] ?? "")
    .split("|")
    .map((member) => member.trim())
    .filter((member) => member !== "")

type Decisions = { readonly [decision: string]: string }

const raw = "raw"
const own = "own"

const requestOfResponses: Decisions = {
  [own]:
    "include input instructions max_output_tokens metadata model parallel_tool_calls prompt_cache_key prompt_cache_retention reasoning safety_identifier service_tier store stream temperature text tool_choice tools top_p user background previous_response_id",
  [raw]:
    "access_programs context_management image max_tool_calls moderation prompt prompt_cache_options stream_options top_logprobs truncation",
  "each request has the history": "conversation"
}

const requestOfChat: Decisions = {
  [own]:
    "max_completion_tokens max_tokens messages metadata model parallel_tool_calls prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier service_tier stop store stream stream_options temperature tool_choice tools top_p user verbosity",
  [raw]:
    "audio frequency_penalty logit_bias logprobs modalities moderation prediction presence_penalty prompt_cache_options seed top_logprobs web_search_options",
  "tools took the place of it": "function_call functions",
  "a turn has one answer": "n"
}

const requestOfAnthropic: Decisions = {
  [own]:
    "betas cache_control container max_tokens messages metadata model output_config service_tier stop_sequences stream system temperature thinking tool_choice tools top_k top_p",
  [raw]:
    "billing_policy compaction context_management diagnostics fallback_credit_token fallbacks inference_geo mcp_servers speed thread user_profile_id workspace_id",
  "output_config took the place of it": "output_format"
}

const itemsOfResponses: Decisions = {
  [own]:
    "ResponseOutputMessage ResponseFunctionToolCall ResponseReasoningItem ResponseComputerToolCall ResponseFunctionShellToolCall ResponseApplyPatchToolCall ResponseCustomToolCall ResponseToolSearchCall ResponseOutputItem.LocalShellCall ResponseOutputItem.McpApprovalRequest ResponseOutputItem.ImageGenerationCall ResponseFunctionWebSearch",
  [raw]:
    "ResponseFileSearchToolCall ResponseFunctionToolCallOutputItem ResponseComputerToolCallOutputItem ResponseOutputItem.Program ResponseOutputItem.ProgramOutput ResponseToolSearchOutputItem ResponseOutputItem.AdditionalTools ResponseCompactionItem ResponseCodeInterpreterToolCall ResponseOutputItem.LocalShellCallOutput ResponseFunctionShellToolCallOutput ResponseApplyPatchToolCallOutput ResponseOutputItem.McpCall ResponseOutputItem.McpListTools ResponseOutputItem.McpApprovalResponse ResponseCustomToolCallOutputItem"
}

const toolsOfResponses: Decisions = {
  [own]: "FunctionTool",
  [raw]:
    "FileSearchTool ComputerTool ComputerUsePreviewTool WebSearchTool Tool.Mcp Tool.CodeInterpreter Tool.ProgrammaticToolCalling Tool.ImageGeneration Tool.LocalShell FunctionShellTool CustomTool NamespaceTool ToolSearchTool WebSearchPreviewTool ApplyPatchTool"
}

const blocksOfAnthropic: Decisions = {
  [own]: "BetaTextBlock BetaThinkingBlock BetaRedactedThinkingBlock BetaToolUseBlock",
  [raw]:
    "BetaServerToolUseBlock BetaWebSearchToolResultBlock BetaWebFetchToolResultBlock BetaAdvisorToolResultBlock BetaCodeExecutionToolResultBlock BetaBashCodeExecutionToolResultBlock BetaTextEditorCodeExecutionToolResultBlock BetaToolSearchToolResultBlock BetaMCPToolUseBlock BetaMCPToolResultBlock BetaContainerUploadBlock BetaCompactionBlock BetaFallbackBlock BetaMCPToolListingBlock"
}

const eventsOfAnthropic: Decisions = {
  [own]:
    "BetaRawMessageStartEvent BetaRawMessageDeltaEvent BetaRawMessageStopEvent BetaRawContentBlockStartEvent BetaRawContentBlockDeltaEvent BetaRawContentBlockStopEvent"
}

const toolsOfAnthropic: Decisions = {
  [own]: "BetaTool",
  [raw]:
    "BetaToolBash20241022 BetaToolBash20250124 BetaCodeExecutionTool20250522 BetaCodeExecutionTool20250825 BetaCodeExecutionTool20260120 BetaCodeExecutionTool20260521 BetaBrowserToolset20260801 BetaToolComputerUse20241022 BetaMemoryTool20250818 BetaToolComputerUse20250124 BetaToolTextEditor20241022 BetaToolComputerUse20251124 BetaComputerToolset20260801 BetaToolTextEditor20250124 BetaToolTextEditor20250429 BetaToolTextEditor20250728 BetaWebSearchTool20250305 BetaWebFetchTool20250910 BetaWebSearchTool20260209 BetaWebFetchTool20260209 BetaWebFetchTool20260309 BetaWebSearchTool20260318 BetaWebFetchTool20260318 BetaAdvisorTool20260301 BetaToolSearchToolBm25_20251119 BetaToolSearchToolRegex20251119 BetaMCPToolset"
}

const decided = (decisions: Decisions): ReadonlyArray<string> =>
  Object.values(decisions).flatMap((names) => names.split(" "))

/** Parameters of sampling, which Anthropic's API takes from older models, are gone from its SDK. */
const gone = new Set(["temperature", "top_k", "top_p"])

describe("what the SDKs know has a decision", () => {
  const { anthropic, chat, responses } = sources
  it.each([
    ["parameters of Responses", () => propertiesOf(responses(), "ResponseCreateParamsBase"), requestOfResponses],
    ["parameters of Chat", () => propertiesOf(chat(), "ChatCompletionCreateParamsBase"), requestOfChat],
    ["parameters of Anthropic", () => propertiesOf(anthropic(), "MessageCreateParamsBase"), requestOfAnthropic],
    ["items of Responses", () => membersOf(responses(), "ResponseOutputItem"), itemsOfResponses],
    ["tools of Responses", () => membersOf(responses(), "Tool"), toolsOfResponses],
    ["blocks of Anthropic", () => membersOf(anthropic(), "BetaContentBlock"), blocksOfAnthropic],
    ["events of Anthropic", () => membersOf(anthropic(), "BetaRawMessageStreamEvent"), eventsOfAnthropic],
    ["tools of Anthropic", () => membersOf(anthropic(), "BetaToolUnion"), toolsOfAnthropic]
  ] as const)("%s", (_, read, decisions) => {
    const known = new Set(read())
    const all = decided(decisions)
    expect(known.size).toBeGreaterThan(5)
    expect([...known].filter((name) => !all.includes(name))).toEqual([])
    expect(all.filter((name) => !known.has(name) && !gone.has(name))).toEqual([])
    expect(new Set(all).size).toBe(all.length)
  })
})
