/** Options of the agent's tools for Claude: loading on demand, callers, streaming, examples, cache marks. */
import type { ModelRequest, ToolDefinition } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { ModelError } from "../../../core/ModelError.ts"
import { defined } from "../../../support/json/defined.ts"
import { wellFormedObject } from "../turn/wellFormed.ts"
import { stringOf } from "../wire/read.ts"
import { cacheControl } from "./cache.ts"
import type { Tool } from "./wire.ts"

/** The tool by which Claude finds tools whose schemas are not loaded. */
const searchTool = { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" }

const searchTypes = /^tool_search_tool_/

/** The versions of code execution that may call tools. */
const callerTypes = /^code_execution_(?!20250522$)\d+$/

const typeOf = ({ type }: JsonObject): string => stringOf(type) ?? ""

const callersOf = (tool: ToolDefinition): ReadonlyArray<string> => tool.providerOptions?.anthropic?.allowedCallers ?? []

/** The fields of a tool's options. Code is named by the version of code execution in the request. */
export const optionFields = (tool: ToolDefinition, serverTools: ReadonlyArray<JsonObject>): Partial<Tool> => {
  const options = tool.providerOptions?.anthropic
  if (options === undefined) return {}
  const code = serverTools.map(typeOf).find((type) => callerTypes.test(type)) ?? "code_execution"
  return defined({
    defer_loading: options.deferLoading,
    allowed_callers: options.allowedCallers?.map((caller) => (caller === "direct" ? caller : code)),
    eager_input_streaming: options.eagerInputStreaming,
    input_examples: options.inputExamples?.map(wellFormedObject),
    cache_control: options.cacheControl === undefined ? undefined : cacheControl(options.cacheControl.ttl)
  })
}

/** The search for tools, if a tool is to be found by it and the caller gives no search. */
export const searchFor = (
  tools: ReadonlyArray<Tool>,
  serverTools: ReadonlyArray<JsonObject>
): ReadonlyArray<JsonObject> =>
  tools.some((tool) => tool.defer_loading === true) && !serverTools.some((tool) => searchTypes.test(typeOf(tool)))
    ? [searchTool]
    : []

/** Rejects a tool that only code may call, without code execution. */
export const rejectUncalled = (
  origin: { readonly provider: string; readonly model: string },
  serverTools: ReadonlyArray<JsonObject>,
  { tools }: ModelRequest
): ModelError | undefined => {
  const called = tools.find((tool) => callersOf(tool).includes("code_execution"))
  if (called === undefined || serverTools.some((tool) => callerTypes.test(typeOf(tool)))) return undefined
  return new ModelError({
    ...origin,
    reason: { _tag: "Unsupported" },
    detail: `code may call the tool ${called.name}, and no code runs: give the layer serverTools: [{ type: "code_execution_20260521", name: "code_execution" }]`
  })
}
