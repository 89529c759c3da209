/** The tools that an active skill allows. */
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import { normaliseName } from "../../../support/text/names.ts"
import { isPattern } from "./scan.ts"

/** The tools that an active skill allows, by name. */
export interface Allowance {
  readonly skills: ReadonlyArray<string>
  readonly tools: ReadonlyArray<string>
  readonly turn: string
}

type NamedTool = Pick<ToolDefinition, "annotations" | "name">

/** Reports whether an entry of `allowed-tools` is the name of a tool, or an alias of it. */
const isFor = (entry: string, { annotations, name }: NamedTool): boolean =>
  [name, ...(annotations.aliases ?? [])].some((one) => normaliseName(one) === normaliseName(entry))

/**
 * Translates `allowed-tools` to the names of these tools. An entry for no tool stays, as a tool may come later. Entries
 * about arguments can't be enforced, and allow nothing.
 */
export const toolNames = (entries: ReadonlyArray<string>, tools: ReadonlyArray<NamedTool>): ReadonlyArray<string> => [
  ...new Set(
    entries
      .filter((entry) => !isPattern(entry))
      .flatMap((entry) => [entry, ...tools.flatMap((tool) => (isFor(entry, tool) ? [tool.name] : []))])
  )
]

/** Reports whether a tool may be used. */
export const allows = ({ tools }: Pick<Allowance, "tools">, tool: NamedTool): boolean =>
  tools.some((entry) => isFor(entry, tool))

/** The tools that two skills both allow. */
export const narrower = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<string> => {
  const names = new Set(right.map(normaliseName))
  return left.filter((name) => names.has(normaliseName(name)))
}
