/** Tools by name, and their digests. */
import { memoize } from "effect/Function"
import { once } from "../../support/effect/once.ts"
import { sha256Sync } from "../../support/store/sha256.ts"
import { normaliseName } from "../../support/text/names.ts"
import { cut } from "../../support/text/text.ts"
import type { ToolDefinition } from "../ChatModel.ts"
import { fromUnknown } from "../Json.ts"
import { findToolProblem } from "../ProviderOptions.ts"
import { shorten } from "../schema/jsonSchema.ts"
import { canonical } from "../schema/jsonTree.ts"
import type { Tool } from "../Tool.ts"

/** Tools by name, as a model is offered them, and by the names that small models make of theirs. */
export interface Toolset {
  readonly tools: ReadonlyMap<string, Tool<unknown>>
  readonly folded: () => ReadonlyMap<string, string | undefined>
  readonly definitions: ReadonlyArray<ToolDefinition>
  /** True when a tool may ask for a decision by itself. */
  readonly asks: boolean
}

/** A tool as models are told of it: the same one in all agents that have the tool. */
const define = memoize((tool: Tool<unknown>): ToolDefinition => ({
  name: tool.name,
  description: tool.description,
  // Digests are of the whole schema: threads of earlier versions hold them.
  parameters: shorten(tool.parameters),
  annotations: tool.annotations,
  ...(tool.providerOptions === undefined ? {} : { providerOptions: tool.providerOptions })
}))

export const needsApproval = (tool: Tool<unknown>): boolean => tool.needsApproval === true

/** Makes the tools of an agent. Two names that fold to one mean neither. */
export const make = (tools: ReadonlyArray<Tool<unknown>>): Toolset => {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  return { tools: byName, folded: foldedOf(byName), definitions: tools.map(define), asks: tools.some(needsApproval) }
}

const foldedOf = (tools: Toolset["tools"]): Toolset["folded"] =>
  once(() => {
    const folded = new Map<string, string | undefined>()
    for (const name of tools.keys()) {
      const key = normaliseName(name)
      folded.set(key, folded.has(key) ? undefined : name)
    }
    return folded
  })

/**
 * Adds dynamic tools. Fixed tools keep their names and all spellings. `findUnchanged` returns the definition of an unchanged
 * tool.
 */
export const extend = (
  fixed: Toolset,
  more: ReadonlyArray<Tool<unknown>>,
  findUnchanged: (tool: Tool<unknown>) => ToolDefinition | undefined
): Toolset => ({
  tools: new Map([...fixed.tools, ...more.map((tool) => [tool.name, tool] as const)]),
  folded: once(() => {
    const folded = new Map(fixed.folded())
    for (const { name } of more) {
      const key = normaliseName(name)
      if (!folded.has(key)) folded.set(key, name)
    }
    return folded
  }),
  definitions: [...fixed.definitions, ...more.map((tool) => findUnchanged(tool) ?? define(tool))],
  asks: fixed.asks || more.some(needsApproval)
})

/**
 * Finds the tool that a model means: the exact name, else the only name that differs by case, `-` or `_`. It runs once,
 * before any gate, so everything after it sees the canonical name.
 */
export const resolveName = (
  { folded, tools }: Pick<Toolset, "folded"> & { readonly tools: { has(name: string): boolean } },
  name: string
): string | undefined => (tools.has(name) ? name : folded().get(normaliseName(name)))

const nameRule = /^[A-Za-z0-9_-]{1,64}$/

export const problemOf = (tool: Tool<unknown>): string | undefined => {
  if (!nameRule.test(tool.name)) {
    return `the tool name ${JSON.stringify(cut(String(tool.name), 80))} is not a name that models accept (1 to 64 of A-Z a-z 0-9 _ -)`
  }
  const problem =
    tool.problem ?? (tool.providerOptions === undefined ? undefined : findToolProblem(tool.providerOptions))
  if (problem !== undefined) return `the tool "${tool.name}": ${problem}`
  return tool.outputLimit !== undefined && !(tool.outputLimit >= 1)
    ? `the outputLimit of the tool "${tool.name}" must be a number of at least 1, not ${tool.outputLimit}`
    : undefined
}

/**
 * The promise of a tool, as 16 bytes of SHA-256: its description, its parameters and its annotations, which gates
 * decide by. Whoever gives the tool writes these texts, so that a weaker sum could be met on purpose.
 */
export const digestOf = memoize(({ annotations, description, parameters, providerOptions }: Tool<unknown>): string => {
  // Threads of earlier versions hold digests without these annotations, by which no gate asks.
  const { aliases: _1, delegates: _2, editsFiles: _3, ...promised } = annotations
  const promise = { description, parameters, annotations: fromUnknown(promised) }
  const options = providerOptions === undefined ? {} : { providerOptions: fromUnknown(providerOptions) }
  return sha256Sync(canonical({ ...promise, ...options })).slice(0, 32)
})
