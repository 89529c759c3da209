/**
 * Offers a model only the tools that it needs: it searches a catalogue of hundreds.
 *
 * ```ts
 * import { Agent, type Tool } from "effect-deepagents"
 * import * as ToolSelection from "effect-deepagents/middleware/ToolSelection"
 *
 * declare const catalogue: ReadonlyArray<Tool.Tool>
 *
 * const agent = Agent.make({
 *   name: "operator",
 *   prompt: "You run the shop.",
 *   tools: catalogue,
 *   middleware: [ToolSelection.make({ alwaysOffer: ["ask_user"] })]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentState from "../core/AgentState.ts"
import { type Service, type ToolDefinition, turnPurpose } from "../core/ChatModel.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import { ModelError } from "../core/ModelError.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import { loadPeer } from "../support/effect/peer.ts"
import * as Catalogue from "../support/text/catalogue.ts"
import { countProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"

const name = "ToolSelection"

/** The name of the tool that searches the catalogue. */
const searchTool = "search_tools"

/** The selected tools by name in order of selection, and the id of the human message of the last preselection. */
export const selection = AgentState.slot("tool-selection", {
  schema: Schema.Struct({ tools: Schema.Array(Schema.String), preselectedFor: Schema.optionalKey(Schema.String) }),
  initial: { tools: [] }
})

type Selection = typeof selection.initial

const bringIn =
  (names: ReadonlyArray<string>) =>
  (current: Selection): Selection => ({
    ...current,
    tools: [...current.tools, ...names.filter((name) => !current.tools.includes(name))]
  })

const prompt = `You see only some of your tools. When you need one that you do not see, describe what it should do to ${searchTool}; what it finds is yours from your next turn on.`

const report = (tools: ReadonlyArray<ToolDefinition>): string =>
  tools.length === 0
    ? "No tool fits. Try other words, or go on without one."
    : [
        "You can call these from your next turn on:",
        ...tools.map((tool) => `- ${tool.name}: ${tool.description}`)
      ].join("\n")

/** A tool whose schema the provider loads when its own search finds the tool: the same one each time. */
const deferred = memoize((tool: ToolDefinition): ToolDefinition => {
  const { anthropic, openai } = tool.providerOptions ?? {}
  return {
    ...tool,
    providerOptions: {
      ...tool.providerOptions,
      anthropic: { ...anthropic, deferLoading: true },
      openai: { ...openai, deferLoading: true }
    }
  }
})

const loadSearch = ({ model }: Run) =>
  Effect.map(
    loadPeer(
      "minisearch",
      () => import("minisearch"),
      (detail, cause) =>
        new ModelError({
          provider: model?.provider ?? "none",
          model: model?.modelId ?? "none",
          reason: { _tag: "Unsupported" },
          detail: `${name}: ${detail}`,
          cause
        })
    ),
    (loaded) => loaded.default
  )

const refuseMake = makeMiddlewareCheck(name, shapes.toolSelectionMake)

/**
 * Removes unselected tools from every turn's request, so they can't be called. `search_tools` selects up to `limit` (5)
 * tools a search, ranked by BM25 over their names and descriptions. A selected tool stays for the run, after the
 * earlier ones, so that a provider's prompt cache keeps hitting. The selection is in the state: a run that continues
 * from it starts with the same tools.
 *
 * `alwaysOffer` names tools that need no search. `preselect` selects that many by the last human message before the
 * model call.
 *
 * It covers the tools of the agent and its middleware. Put it after middleware that removes tools.
 */
export const make = (options?: {
  /** Tools that need no search. Default: none. */
  readonly alwaysOffer?: ReadonlyArray<string> | undefined
  /** The most tools that one search selects. Default: 5. */
  readonly limit?: number | undefined
  /** The number of tools that the last human message selects before the model call. Default: 0. */
  readonly preselect?: number | undefined
  /**
   * Has the provider search, where it can: Claude and OpenAI load a tool's schema when their own search finds the tool,
   * and their cache stays valid. Other models get `search_tools`. Default: `false`.
   */
  readonly native?: boolean | undefined
}): Middleware.Middleware<never, ToolContext> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const limit = options?.limit ?? 5
  const preselect = options?.preselect ?? 0
  const always = new Set([...(options?.alwaysOffer ?? []), searchTool, Tool.finalAnswer])
  const isNative = (model: Service | undefined): boolean =>
    options?.native === true && model?.abilities?.includes("toolSearch") === true
  const catalogues = Attached.make<Run, Catalogue.Catalogue<ToolDefinition>>()
  let latest: Catalogue.Catalogue<ToolDefinition> | undefined

  /** Indexes the tools once for all runs of an agent while they stay the same. */
  const catalogueOf = Effect.fnUntraced(function* (run: Run, tools: ReadonlyArray<ToolDefinition>) {
    const searched = tools.filter((tool) => !always.has(tool.name))
    if (latest === undefined || !Catalogue.same(latest.tools, searched))
      latest = Catalogue.make(yield* loadSearch(run), searched)
    catalogues.set(run, latest)
    return latest
  })

  const search = Tool.make(searchTool, {
    description: "Finds tools by what they do, and makes them available to you.",
    parameters: {
      query: Schema.String.annotate({ description: "What the tool should do, in a few words, or its name" })
    },
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    execute: ({ query }) =>
      Effect.map(ToolContext, ({ run }) => {
        const matches = catalogues.get(run)?.search(query, limit) ?? []
        return ToolOutput.make(report(matches), {
          state: [AgentState.change(selection, bringIn(matches.map((tool) => tool.name)))]
        })
      })
  })

  const preselected = Effect.fnUntraced(function* (run: Run, catalogue: Catalogue.Catalogue<ToolDefinition>) {
    const question = run.messages.findLast((message) => message.role === "human")
    const current = yield* run.state.get(selection)
    if (preselect === 0 || question === undefined || question.id === current.preselectedFor) return current
    const matches = catalogue.search(Message.text(question), preselect)
    yield* run.state.update(selection, (before) => ({
      ...bringIn(matches.map((tool) => tool.name))(before),
      preselectedFor: question.id
    }))
    return yield* run.state.get(selection)
  })

  return Middleware.make<never, ToolContext>({
    name,
    check: () => countProblem(name, { limit }, 1) ?? countProblem(name, { preselect }),
    state: [selection],
    tools: [search],
    prompt: (run) => Effect.succeed(isNative(run.model) ? "" : prompt),
    wrapModelCall: (request, next, run) => {
      const { toolChoice, tools } = request
      const forced = typeof toolChoice === "string" ? [] : "tool" in toolChoice ? [toolChoice.tool] : toolChoice.oneOf
      const isFixed = (tool: ToolDefinition) => always.has(tool.name) || forced.includes(tool.name)
      if (request.purpose !== turnPurpose || tools.every(isFixed)) return next(request)
      if (isNative(request.session?.model ?? run.model)) {
        const loaded = (tool: ToolDefinition) => (tool.name === searchTool ? { ...tool, hidden: true as const } : tool)
        return next({ ...request, tools: tools.map((tool) => (isFixed(tool) ? loaded(tool) : deferred(tool))) })
      }
      return Stream.unwrap(
        Effect.gen(function* () {
          const catalogue = yield* catalogueOf(run, tools)
          const { tools: selected } = yield* preselected(run, catalogue)
          const selectedTools = selected.flatMap((name) =>
            forced.includes(name) ? [] : (catalogue.byName.get(name) ?? [])
          )
          const visibleTools = [...tools.filter(isFixed), ...selectedTools]
          const isShown = new Set(visibleTools)
          // Tools may call tools that the model does not see.
          const others = tools.flatMap((tool) => (isShown.has(tool) ? [] : [{ ...tool, hidden: true as const }]))
          return next({ ...request, tools: [...visibleTools, ...others] })
        })
      )
    }
  })
}
