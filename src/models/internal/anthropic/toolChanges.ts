/** Changes of the tools inside of a conversation, in the words of the Messages API. */
import type { ToolChange, ToolDefinition } from "../../../core/ChatModel.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import type { Part, Tool } from "./wire.ts"

/** The beta features of tools that come and go, and of tools that are defined inside of a conversation. */
export const changeBetas: ReadonlyArray<string> = [
  "mid-conversation-tool-changes-2026-07-01",
  "inline-tools-2026-09-15"
]

/** Makes the writer of changes. Each is written once, so its text stays the same. */
export const makeChangeWriter = (write: (tool: ToolDefinition, names: ToolNames) => Tool) => {
  const cache = new WeakMap<ToolChange, ReadonlyArray<Part>>()
  return (change: ToolChange, names: ToolNames): ReadonlyArray<Part> => {
    const cachedParts = cache.get(change)
    if (cachedParts !== undefined) return cachedParts
    const reference = (name: string) => ({ type: "tool_reference", name: names.wire(name) }) as const
    const parts: ReadonlyArray<Part> = [
      ...change.remove.map((name) => ({ type: "tool_removal", tool: reference(name) }) as const),
      ...change.again.map((name) => ({ type: "tool_addition", tool: reference(name) }) as const),
      ...change.add.map((tool) => {
        return { type: "tool_addition", tool: { type: "tool_definition", definition: write(tool, names) } } as const
      })
    ]
    cache.set(change, parts)
    return parts
  }
}
