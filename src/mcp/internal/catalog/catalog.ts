/** The tools of all servers: which of them agents get, and by which names. */
import type { Tool } from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { fromUnknown, isObject, type JsonObject } from "../../../core/Json.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { once } from "../../../support/effect/once.ts"
import { defined } from "../../../support/json/defined.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import type { Server } from "../../McpConfig.ts"
import type { ServerTool } from "../model.ts"
import type { SiftedTools } from "../wire/sift.ts"
import type { SupervisedServer } from "../wire/supervisor.ts"
import { appOf } from "./apps.ts"
import { nameAll } from "./names.ts"

const digestOf = ({ annotations, description, inputSchema, outputSchema }: Tool): string =>
  sha256Sync(canonical(fromUnknown({ description, inputSchema, outputSchema, annotations }))).slice(0, 32)

/** A description is read by the model with every request. */
const longest = 10_000

const parametersOf = ({ inputSchema }: Tool): JsonObject => {
  const schema = fromUnknown(inputSchema)
  return isObject(schema) ? schema : { type: "object" }
}

const toolOf = (server: string, definition: Tool): Omit<ServerTool, "name"> => {
  const { annotations = {}, description = "", name, title = annotations.title } = definition
  const { destructiveHint, idempotentHint, openWorldHint, readOnlyHint } = annotations
  const about = cut(visible(description), longest)
  return {
    server,
    tool: name,
    title: title === undefined ? undefined : cut(oneLine(title), 200),
    description: about === "" ? `The tool "${cut(oneLine(name), 100)}" of the MCP server "${server}"` : about,
    parameters: parametersOf(definition),
    annotations: defined({
      readOnly: readOnlyHint,
      destructive: destructiveHint,
      idempotent: idempotentHint,
      openWorld: openWorldHint
    }),
    ...appOf(definition),
    digest: once(() => digestOf(definition))
  }
}

interface SelectedTools {
  readonly tools: ReadonlyArray<Omit<ServerTool, "name">>
  readonly problems: ReadonlyArray<string>
}

const quoted = (names: ReadonlyArray<string>): string =>
  names.length === 0
    ? "none"
    : names
        .slice(0, 20)
        .map((name) => JSON.stringify(cut(oneLine(name), 100)))
        .join(", ")

/** Bytes of a definition, as requests to models have it. */
const sizeOf = ({ description, parameters, tool }: Omit<ServerTool, "name">): number =>
  encoder.encode(JSON.stringify({ name: tool, description, parameters })).length

const encoder = new TextEncoder()

/** Leaves out tools whose definitions are too large, each by itself or all of them together. */
const limitDefinitions = (
  { maxDefinition = 32_000, maxDefinitions = 256_000 }: Server,
  candidates: ReadonlyArray<Omit<ServerTool, "name">>
): SelectedTools => {
  const large: Array<string> = []
  const excess: Array<string> = []
  let total = 0
  const tools = candidates.filter((tool) => {
    const size = sizeOf(tool)
    if (size > maxDefinition) {
      large.push(
        `the tool ${quoted([tool.tool])} is left out: its definition has ${size} bytes, more than \`maxDefinition\` (${maxDefinition})`
      )
      return false
    }
    if (total + size > maxDefinitions) {
      excess.push(tool.tool)
      return false
    }
    total += size
    return true
  })
  const all =
    excess.length === 0
      ? []
      : [
          `${excess.length} tools are left out, because the definitions of all have more bytes than \`maxDefinitions\` (${maxDefinitions}): ${quoted(excess)}; name those that are needed in \`tools\``
        ]
  return { tools, problems: [...large.slice(0, mostProblems), ...all] }
}

const mostProblems = 20

/** Keeps the tools that the configuration wants. A name comes once: it could not be told which one is called. */
const select = (
  server: string,
  config: Server,
  { problems: faults, tools: definitions }: SiftedTools
): SelectedTools => {
  const { pins = {}, tools: only } = config
  const names = new Set(definitions.map(({ name }) => name))
  const problems = [...faults]
  const missing = [...new Set([...(only ?? []), ...Object.keys(pins)])]
    .filter((name) => !names.has(name))
    .map(
      (name) =>
        `the configuration names the tool "${name}", which the server does not have; it has: ${quoted([...names])}`
    )
  if (definitions.length > 0) problems.push(...missing)
  const tools: Array<Omit<ServerTool, "name">> = []
  for (const one of definitions) {
    if (only !== undefined && !only.includes(one.name)) continue
    if (!names.delete(one.name)) {
      problems.push(`the server has two tools with the name ${quoted([one.name])}; the second is left out`)
      continue
    }
    const tool = toolOf(server, one)
    const pin = Object.hasOwn(pins, one.name) ? pins[one.name] : undefined
    if (pin === undefined || pin === tool.digest()) tools.push(tool)
    else problems.push(`the tool "${one.name}" has the digest ${tool.digest()}, not the pinned ${pin}: it is left out`)
  }
  const bounded = limitDefinitions(config, tools)
  return { tools: bounded.tools, problems: [...problems, ...bounded.problems] }
}

/** Makes the catalog. What did not change is not made again. */
export const makeCatalog = (servers: ReadonlyArray<SupervisedServer>) =>
  Effect.sync(() => {
    const selections = new WeakMap<SiftedTools, SelectedTools>()
    const selectionOf = ({ target, tools }: SupervisedServer) =>
      Effect.map(SubscriptionRef.get(tools), (list) => {
        const cachedSelection = selections.get(list)
        if (cachedSelection !== undefined) return cachedSelection
        const selection = select(target.name, target.config, list)
        // Servers without tools share one list.
        if (list.tools.length > 0) selections.set(list, selection)
        return selection
      })
    let last: { readonly of: ReadonlyArray<SelectedTools>; readonly tools: ReadonlyArray<ServerTool> } = {
      of: [],
      tools: []
    }
    const read = Effect.map(Effect.forEach(servers, selectionOf), (of): ReadonlyArray<ServerTool> => {
      const filled = of.filter(({ tools }) => tools.length > 0)
      if (filled.length === last.of.length && filled.every((one, index) => one === last.of[index])) return last.tools
      const bare = filled.flatMap(({ tools }) => tools)
      const names = nameAll(bare)
      last = { of: filled, tools: bare.map((tool, index) => ({ ...tool, name: names[index] ?? tool.tool })) }
      return last.tools
    })
    return {
      read,
      problemsOf: (server: SupervisedServer) => Effect.map(selectionOf(server), ({ problems }) => problems)
    }
  })
