/** Options of the agent's tools for the Responses API: loading on demand, namespaces, callers, async calls. */
import type { FunctionTool, NamespaceTool, Tool } from "openai/resources/responses/responses"
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import { wellFormed, wellFormedObject } from "../turn/wellFormed.ts"

type Options = NonNullable<NonNullable<ToolDefinition["providerOptions"]>["openai"]>

/** A tool of the agent as it is sent, and its options. */
export interface OwnTool {
  readonly tool: FunctionTool
  readonly options: Options | undefined
}

const fieldsOf = ({ allowedCallers, async, deferLoading, outputSchema }: Options): Partial<FunctionTool> =>
  defined({
    allowed_callers: allowedCallers === undefined ? undefined : [...allowedCallers],
    async,
    defer_loading: deferLoading,
    output_schema: outputSchema === undefined ? undefined : wellFormedObject(outputSchema)
  })

/** Puts tools of a namespace together, at the place of its first tool. */
const grouped = (tools: ReadonlyArray<OwnTool>): ReadonlyArray<FunctionTool | NamespaceTool> => {
  const spaces = new Map<string, NamespaceTool>()
  return tools.flatMap(({ options, tool }): ReadonlyArray<FunctionTool | NamespaceTool> => {
    const own = options === undefined ? tool : { ...tool, ...fieldsOf(options) }
    const space = options?.namespace
    if (space === undefined) return [own]
    // The API knows no `null` in a namespace.
    const { description, ...rest } = own
    const inner: NamespaceTool.Function = { ...rest, ...(typeof description === "string" ? { description } : {}) }
    const sharedSpace = spaces.get(space.name)
    if (sharedSpace !== undefined) {
      sharedSpace.tools.push(inner)
      return []
    }
    const newSpace: NamespaceTool = {
      type: "namespace",
      name: wellFormed(space.name),
      description: wellFormed(space.description),
      tools: [inner]
    }
    spaces.set(space.name, newSpace)
    return [newSpace]
  })
}

/** The tools that options need: the search for deferred tools, and programs that call tools. */
const helpersOf = (tools: ReadonlyArray<OwnTool>, serverTools: ReadonlyArray<JsonObject>): ReadonlyArray<Tool> => {
  const has = (type: string) => serverTools.some((tool) => tool["type"] === type)
  const isDeferred = tools.some(({ options }) => options?.deferLoading === true)
  const isProgrammed = tools.some(({ options }) => options?.allowedCallers?.includes("programmatic") === true)
  return [
    ...(isDeferred && !has("tool_search") ? [{ type: "tool_search" } as const] : []),
    ...(isProgrammed && !has("programmatic_tool_calling") ? [{ type: "programmatic_tool_calling" } as const] : [])
  ]
}

/** The agent's tools as they are sent, and behind them the tools that their options need. */
export const withOptions = (
  tools: ReadonlyArray<OwnTool>,
  serverTools: ReadonlyArray<JsonObject>
): ReadonlyArray<Tool> =>
  tools.every(({ options }) => options === undefined)
    ? tools.map(({ tool }) => tool)
    : [...grouped(tools), ...helpersOf(tools, serverTools)]
