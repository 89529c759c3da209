/** Fits an agent to its model: the part of the stack that applies the profiles. */
import * as Effect from "effect/Effect"
import * as FileTools from "../../backends/FileTools.ts"
import type { ModelRequest, ToolDefinition } from "../../core/ChatModel.ts"
import * as Middleware from "../../core/Middleware.ts"
import * as Ruling from "../../core/Ruling.ts"
import type { Run } from "../../core/Run.ts"
import * as AskUser from "../../middleware/AskUser.ts"
import * as BackgroundSubagents from "../../middleware/BackgroundSubagents.ts"
import * as Skills from "../../middleware/Skills.ts"
import * as Subagents from "../../middleware/Subagents.ts"
import * as Summarization from "../../middleware/Summarization.ts"
import * as Todos from "../../middleware/Todos.ts"
import { type HarnessProfile, resolve } from "../../profiles/HarnessProfile.ts"
import { once } from "../../support/effect/once.ts"

/**
 * Tools as a profile shows them, by the list that was given: requests of a run carry the same list, and get the same
 * one back.
 */
type Views = WeakMap<ReadonlyArray<ToolDefinition>, ReadonlyArray<ToolDefinition>>

/** A profile, and what it makes of tools: nothing, if it does not speak of any. */
interface FittedProfile {
  readonly profile: HarnessProfile
  readonly views: Views | undefined
}

const fittedBy = (profile: HarnessProfile): FittedProfile => {
  const { excludedTools = [], toolDescriptions = {} } = profile
  const isPlain = excludedTools.length === 0 && Object.keys(toolDescriptions).length === 0
  return { profile, views: isPlain ? undefined : new WeakMap() }
}

const viewOf = (
  tools: ReadonlyArray<ToolDefinition>,
  { excludedTools = [], toolDescriptions = {} }: HarnessProfile
): ReadonlyArray<ToolDefinition> =>
  tools
    .filter((tool) => !excludedTools.includes(tool.name))
    .map((tool) => {
      const description = Object.hasOwn(toolDescriptions, tool.name) ? toolDescriptions[tool.name] : undefined
      return description === undefined ? tool : { ...tool, description }
    })

/** The tools that a deep agent can have from this library. A profile may name them for agents without them. */
const libraryTools = once((): ReadonlySet<string> => {
  const middleware = [Todos.make(), Summarization.make({ tool: true }), Skills.make({ sources: [] })]
  const tools = [
    ...FileTools.make({ execute: { background: true } }),
    AskUser.tool(),
    ...middleware.flatMap(({ tools: own }) => (Array.isArray(own) ? own : []))
  ]
  return new Set([
    ...tools.map(({ name }) => name),
    Subagents.toolName,
    ...Object.values<string>(BackgroundSubagents.toolNames)
  ])
})

/** Finds tools of profiles that no agent has: most likely a misspelt name, which would exclude nothing. */
const misspelt =
  (profiles: ReadonlyArray<HarnessProfile>) =>
  (tools: ReadonlySet<string>): string | undefined => {
    const isKnown = (name: string) => tools.has(name) || libraryTools().has(name)
    for (const { excludedTools = [], toolDescriptions = {} } of profiles) {
      const unknown = [...excludedTools, ...Object.keys(toolDescriptions)].find((name) => !isKnown(name))
      if (unknown !== undefined) {
        return `a profile names the tool "${unknown}", which is not a tool of the agent (${[...tools].join(", ")}); correct the name, or remove it from the profile`
      }
    }
    return undefined
  }

/** Fits an agent to the model that it runs on, by the profiles for it: a sub-agent with another model has others. */
export const harness = (profiles: ReadonlyArray<HarnessProfile>): Middleware.Middleware => {
  const resolved = new Map<string, Map<string, FittedProfile>>()
  const profileOf = ({ model }: Run): FittedProfile => {
    const { modelId, provider } = model ?? { modelId: "", provider: "" }
    let models = resolved.get(provider)
    if (models === undefined) resolved.set(provider, (models = new Map()))
    let fitted = models.get(modelId)
    if (fitted === undefined) models.set(modelId, (fitted = fittedBy(resolve(profiles, provider, modelId))))
    return fitted
  }
  const rewritten = (request: ModelRequest, run: Run): ModelRequest => {
    const { profile, views } = profileOf(run)
    if (views === undefined) return request
    let tools = views.get(request.tools)
    if (tools === undefined) {
      tools = viewOf(request.tools, profile)
      views.set(request.tools, tools)
    }
    return tools === request.tools ? request : { ...request, tools }
  }
  return Middleware.make({
    name: "Harness",
    check: misspelt(profiles),
    prompt: (run) =>
      Effect.sync(() => {
        const { basePrompt = "", promptSuffix = "" } = profileOf(run).profile
        return [basePrompt, promptSuffix].filter((part) => part !== "").join("\n\n")
      }),
    wrapModelCall: (request, next, run) => next(rewritten(request, run)),
    rulings: (run, calls) => {
      const { excludedTools = [] } = profileOf(run).profile
      return Effect.succeed(
        calls.map(({ name }) =>
          excludedTools.includes(name) ? Ruling.refuse("profile", `There is no tool "${name}" here.`) : undefined
        )
      )
    }
  })
}
