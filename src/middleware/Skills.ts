/**
 * Skills: instructions for particular work, in directories with a `SKILL.md` (agentskills.io), that the model loads
 * when a task needs them.
 *
 * The prompt has only their names, paths and descriptions. `use_skill` gives the text of one; a skill that names
 * `allowed-tools` narrows the tools to those until the model calls `leave_skill`, or the user says something new.
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
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import { type Allowed, allows, narrower } from "./internal/skills/allowed.ts"
import { list, load, tell } from "./internal/skills/prompt.ts"
import { type Found, scan } from "./internal/skills/scan.ts"

export {
  /** Looks for skills, as `make` does once a run: for a list of them, or a check of what is wrong. */
  scan,
  type Found,
  type Problem,
  type Skill
} from "./internal/skills/scan.ts"

/** The name of this middleware: one of yours with it takes its place in a deep agent. */
const name = "Skills"

/** The name of the tool that loads a skill. */
const useTool = "use_skill"

/** The name of the tool that takes the narrowing back. */
const leaveTool = "leave_skill"

/** Problems with skills that are reported in a run, at most. */
const maxProblems = 20

/** The tools that a skill in use leaves, from the round after `turn` (the id of a message) on. */
const Narrowed = Schema.Struct({
  skills: Schema.Array(Schema.String),
  tools: Schema.Array(Schema.String),
  turn: Schema.String
})

const narrowed = AgentState.slot("skills.narrowed", { schema: Schema.NullOr(Narrowed), initial: null })

const warn = Effect.fnUntraced(function* (run: Run, { problems }: Found) {
  const shown = problems.length > maxProblems ? problems.slice(0, maxProblems - 1) : problems
  for (const problem of shown) yield* run.warn("skill-invalid", tell(problem))
  if (shown.length < problems.length) {
    yield* run.warn("skill-invalid", `There are ${problems.length - shown.length} more problems with skills.`)
  }
})

const lastTurn = (messages: ReadonlyArray<Message>): string =>
  messages.findLast((message) => message.role === "ai")?.id ?? ""

/**
 * Reports whether the user has said something since the last turn: then the skill of the task before is no longer in
 * use.
 */
const isNewTask = ({ messages }: Run): boolean => {
  const last = messages.at(-1)
  return last?.role === "human" && last.source === undefined
}

/** Knowledge of one run: the skills that were there at its start, and its tools as they were last offered. */
interface Known {
  readonly found: Found
  given: ReadonlyArray<ToolDefinition> | undefined
  by: Allowed | null
  offered: ReadonlyArray<ToolDefinition>
}

/**
 * `sources` are directories of skills (`<source>/<name>/SKILL.md`), or skills themselves; of two skills of one name the
 * later counts. One that is not there is passed over.
 */
interface Options {
  readonly sources: ReadonlyArray<string>
}

/**
 * Offers the skills in these directories, looked for once a run. What breaks the specification is left out, with a
 * `Warning` event (`skill-invalid`) that says in which file and which field. It needs the backend that has the files.
 *
 * While a skill with `allowed-tools` is in use, other tools are neither offered nor run. That keeps the work to what
 * its author meant; it is no wall, since the model may leave the skill, or read its file by other means. Nothing is
 * granted by it: permissions and approvals hold as ever.
 */
export const make = (options: Options): Middleware.Middleware<never, Backend | ToolContext> => {
  // The skills that a run found, for as long as it lives. They could be looked for again at any time.
  const runs = Attached.make<Run, Known>()

  const knownOf = Effect.fnUntraced(function* (run: Run) {
    const known = runs.get(run)
    if (known !== undefined) return known
    const fresh: Known = { found: yield* scan(options.sources), given: undefined, by: null, offered: [] }
    runs.set(run, fresh)
    return fresh
  })

  const useSkill = Tool.make(useTool, {
    description: "Loads the instructions of a skill. Do it before you begin work that the skill is for.",
    parameters: { name: Schema.String.annotate({ description: "The name of the skill, as it is listed." }) },
    annotations: { readOnly: true, idempotent: true },
    execute: Effect.fnUntraced(function* ({ name }) {
      const { messages, run } = yield* ToolContext
      const { found, offered } = yield* knownOf(run)
      const there = offered.map((tool) => tool.name)
      const { allowed, text } = yield* load(found.skills, name, there, leaveTool)
      yield* run.custom("skill", { name })
      if (allowed === undefined) return text
      const turn = lastTurn(yield* messages)
      return ToolOutput.make(text, {
        state: [
          AgentState.change(narrowed, (before) =>
            before === null
              ? { skills: [name], tools: allowed, turn }
              : {
                  skills: [...new Set([...before.skills, name])],
                  tools: narrower(before.tools, allowed),
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
    annotations: { readOnly: true, idempotent: true },
    execute: () =>
      Effect.succeed(ToolOutput.make("All tools are offered again.", { state: [AgentState.assign(narrowed, null)] }))
  })

  /** The tools of a request: the same list for as long as nothing changes. */
  const offer = (known: Known, request: ModelRequest, by: Allowed | null): ModelRequest => {
    if (known.given !== request.tools || known.by !== by) {
      known.given = request.tools
      known.by = by
      known.offered = request.tools.filter(({ name }) => {
        if (name === leaveTool) return by !== null
        if (by !== null) return name === Tool.finalAnswer || allows(by, name)
        return name !== useTool || known.found.skills.length > 0
      })
    }
    return { ...request, tools: known.offered }
  }

  return Middleware.make<never, Backend | ToolContext>({
    name,
    state: [narrowed],
    tools: [useSkill, leaveSkill],
    prompt: Effect.fnUntraced(function* (run: Run) {
      if (isNewTask(run) && (yield* run.state.get(narrowed)) !== null) yield* run.state.set(narrowed, null)
      const { found } = yield* knownOf(run)
      yield* warn(run, found)
      return list(found.skills, useTool)
    }),
    wrapModelCall: (request, next, run) =>
      request.purpose === turnPurpose
        ? Stream.unwrap(
            Effect.map(Effect.zip(knownOf(run), run.state.get(narrowed)), ([known, by]) =>
              next(offer(known, request, by))
            )
          )
        : next(request),
    // A round that is taken up from a checkpoint was offered to the model in an earlier run.
    rulings: (run, calls) =>
      Effect.map(run.state.get(narrowed), (by) =>
        calls.map(({ name }) => {
          if (by === null || name === leaveTool || allows(by, name) || lastTurn(run.messages) === by.turn) {
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
