/**
 * Offers skills: instructions for particular work, in directories with a `SKILL.md` (agentskills.io), that the model
 * loads when a task needs them.
 *
 * The prompt only lists their names, paths and descriptions. `use_skill` loads a skill's text. A skill with
 * `allowed-tools` restricts the tools to these until the model calls `leave_skill`, or the user sends a new message.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { FileTools } from "effect-deepagents/backends"
 * import { Skills } from "effect-deepagents/middleware"
 *
 * const writer = Agent.make({
 *   name: "writer",
 *   prompt: "You write for the company's blog.",
 *   tools: FileTools.make(),
 *   middleware: [Skills.make({ sources: ["/skills/user", "/skills/project"] })]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentState from "../core/AgentState.ts"
import type { Backend } from "../core/Backend.ts"
import { type ModelRequest, type ToolDefinition, turnPurpose } from "../core/ChatModel.ts"
import type { Message } from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import { valueAt } from "../support/json/valueAt.ts"
import * as shapes from "./internal/shapes.ts"
import { type Allowance, allows, narrower } from "./internal/skills/allowed.ts"
import { list, load, tell } from "./internal/skills/prompt.ts"
import { type ScanResult, scan } from "./internal/skills/scan.ts"

export {
  /** Scans for skills as `make` does once a run: to list them, or to check for problems. */
  scan,
  type ScanResult,
  type Problem,
  type Skill
} from "./internal/skills/scan.ts"

const name = "Skills"

/** The name of the tool that loads a skill. */
const useTool = "use_skill"

/** The name of the tool that lifts a restriction. */
const leaveTool = "leave_skill"

/** The most skill problems that a run reports. */
const maxProblems = 20

/** The tools that the active skill allows, from the round after `turn` (the id of a message) on. */
const Narrowed = Schema.Struct({
  skills: Schema.Array(Schema.String),
  tools: Schema.Array(Schema.String),
  turn: Schema.String
})

/** The skills that were loaded and bring tools: the tools stay for the rest of the thread, as the text does. */
const withTools = AgentState.slot("skills.tools", { schema: Schema.Array(Schema.String), initial: [] })

const narrowed = AgentState.slot("skills.narrowed", { schema: Schema.NullOr(Narrowed), initial: null })

const warn = Effect.fnUntraced(function* (run: Run, { problems }: ScanResult) {
  const firstProblems = problems.length > maxProblems ? problems.slice(0, maxProblems - 1) : problems
  for (const problem of firstProblems) yield* run.warn("skill-invalid", tell(problem))
  if (firstProblems.length < problems.length) {
    yield* run.warn("skill-invalid", `There are ${problems.length - firstProblems.length} more problems with skills.`)
  }
})

const lastTurn = (messages: ReadonlyArray<Message>): string =>
  messages.findLast((message) => message.role === "ai")?.id ?? ""

/** Reports whether the user sent a message since the last turn: then the previous task's skill is no longer active. */
const isNewTask = ({ messages }: Run): boolean => {
  const last = messages.at(-1)
  return last?.role === "human" && last.source === undefined
}

/** The skills at a run's start, and its tools as last offered. */
interface RunSkills {
  readonly found: ScanResult
  tools: ReadonlyArray<ToolDefinition> | undefined
  by: Allowance | null
  loaded: ReadonlyArray<string>
  offered: ReadonlyArray<ToolDefinition>
}

type ToolsBySkill = { readonly [skill: string]: ReadonlyArray<Tool.Tool<unknown>> }

/** The places of skills, and the tools that come with them. */
export interface Options<Tools extends ToolsBySkill = {}> {
  /**
   * Directories of skills (`<source>/<name>/SKILL.md`), or skills. Of two skills with one name the later wins.
   * Missing sources are ignored.
   */
  readonly sources: ReadonlyArray<string>
  /**
   * Tools that come with skills, by the name of the skill. The model has them once it has loaded the skill. Default:
   * none.
   */
  readonly tools?: Tools | undefined
}

const refuseMake = makeMiddlewareCheck(name, shapes.skillsMake)

/**
 * Offers the skills in these directories, scanned once a run. Skills that break the specification are left out, with a
 * `Warning` event (`skill-invalid`) that names the file and the field. It needs the backend with the files.
 *
 * While a skill with `allowed-tools` is active, other tools are neither offered nor run. This keeps the work to its
 * author's intent but is no security boundary: the model may leave the skill, or read its file by other means. It
 * grants nothing: permissions and approvals apply as usual.
 */
export const make = <const Tools extends ToolsBySkill = {}>(
  options: Options<Tools>
): Middleware.Middleware<never, Backend | ToolContext | Tool.Services<Tools[keyof Tools][number]>> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const toolsBySkill: ToolsBySkill = options.tools ?? {}
  const ownersByTool = new Map(
    Object.entries(toolsBySkill).flatMap(([skill, tools]) => tools.map((tool) => [tool.name, skill] as const))
  )
  // The skills of each run. They could be scanned again at any time.
  const runs = Attached.make<Run, RunSkills>()

  const knownOf = Effect.fnUntraced(function* (run: Run) {
    const existing = runs.get(run)
    if (existing !== undefined) return existing
    const fresh: RunSkills = {
      found: yield* scan(options.sources),
      tools: undefined,
      by: null,
      loaded: [],
      offered: []
    }
    runs.set(run, fresh)
    return fresh
  })

  const useSkill = Tool.make(useTool, {
    description: "Loads the instructions of a skill. Do it before you begin work that the skill is for.",
    parameters: { name: Schema.String.annotate({ description: "The name of the skill, as it is listed." }) },
    // The skills are the developer's, as the prompt is. A backend that reads them from outside marks the run itself.
    annotations: { readOnly: true, idempotent: true, openWorld: false, aliases: ["Skill"] },
    execute: Effect.fnUntraced(function* ({ name }) {
      const { messages, run } = yield* ToolContext
      const { found, offered } = yield* knownOf(run)
      const own = valueAt(toolsBySkill, name) ?? []
      const { allowed: listed, text: instructions } = yield* load(found.skills, name, offered, leaveTool)
      const names = own.map((tool) => tool.name)
      const allowed = listed === undefined ? undefined : [...listed, ...names]
      const text =
        names.length === 0
          ? instructions
          : `${instructions}\n\nFrom the next turn on you have the tools of this skill: ${names.join(", ")}.`
      yield* run.custom("skill", { name })
      if (names.length > 0) {
        yield* run.state.update(withTools, (before) => (before.includes(name) ? before : [...before, name]))
      }
      if (allowed === undefined) return text
      const turn = lastTurn(yield* messages)
      return ToolOutput.make(text, {
        state: [
          AgentState.change(narrowed, (before) =>
            before === null
              ? { skills: [name], tools: allowed, turn }
              : {
                  skills: [...new Set([...before.skills, name])],
                  tools: [...narrower(before.tools, allowed), ...names],
                  turn: before.turn
                }
          )
        ]
      })
    })
  })

  const leaveSkill = Tool.make(leaveTool, {
    description: "Says that the work with a skill is done: all tools are offered again.",
    parameters: {},
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    execute: () =>
      Effect.succeed(ToolOutput.make("All tools are offered again.", { state: [AgentState.assign(narrowed, null)] }))
  })

  /** The tools of a request: the same list for as long as nothing changes. */
  const offer = (
    cache: RunSkills,
    request: ModelRequest,
    by: Allowance | null,
    loaded: ReadonlyArray<string>
  ): ModelRequest => {
    if (cache.tools !== request.tools || cache.by !== by || cache.loaded !== loaded) {
      cache.tools = request.tools
      cache.by = by
      cache.loaded = loaded
      cache.offered = request.tools.filter((tool) => {
        const { name } = tool
        const owner = ownersByTool.get(name)
        if (owner !== undefined && !loaded.includes(owner)) return false
        if (name === leaveTool) return by !== null
        if (by !== null) return name === Tool.finalAnswer || allows(by, tool)
        return name !== useTool || cache.found.skills.length > 0
      })
    }
    return { ...request, tools: cache.offered }
  }

  type Own = Tool.Services<Tools[keyof Tools][number]>
  // Only the type of the options knows the needs of the tools.
  const skillTools = Object.values(toolsBySkill).flat() as ReadonlyArray<Tool.Tool<Own>>
  return Middleware.make<never, Backend | ToolContext | Own>({
    name,
    state: [narrowed, withTools],
    tools: [useSkill, leaveSkill, ...skillTools],
    prompt: Effect.fnUntraced(function* (run: Run) {
      if (isNewTask(run) && (yield* run.state.get(narrowed)) !== null) yield* run.state.set(narrowed, null)
      const { found } = yield* knownOf(run)
      yield* warn(run, found)
      for (const skill of Object.keys(toolsBySkill)) {
        if (found.skills.some((one) => one.name === skill)) continue
        yield* run.warn("skill-invalid", `There are tools for the skill ${JSON.stringify(skill)}, which no source has.`)
      }
      return list(found.skills, useTool)
    }),
    wrapModelCall: (request, next, run) =>
      request.purpose === turnPurpose
        ? Stream.unwrap(
            Effect.map(
              Effect.all([knownOf(run), run.state.get(narrowed), run.state.get(withTools)]),
              ([cache, by, loaded]) => next(offer(cache, request, by, loaded))
            )
          )
        : next(request),
    // A round resumed from a checkpoint was offered to the model by an earlier run.
    rulings: (run, calls) =>
      Effect.map(run.state.get(narrowed), (by) =>
        calls.map((call) => {
          const { name } = call
          if (by === null || name === leaveTool || allows(by, call) || lastTurn(run.messages) === by.turn) {
            return undefined
          }
          return Ruling.refuse(
            "Skills",
            `Not executed: "${name}" is not among the tools of the skill that is in use (${by.skills.join(", ")}). Call ${leaveTool} first, if the work with it is done.`
          )
        })
      )
  })
}
