/** Help for the default agent: coders in worktrees of the repository, and sub-agents in the background. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import type * as AgentFile from "../../../agents/AgentFile.ts"
import type * as Agent from "../../../core/Agent.ts"
import * as Middleware from "../../../core/Middleware.ts"
import * as Ruling from "../../../core/Ruling.ts"
import * as BackgroundSubagents from "../../../middleware/BackgroundSubagents.ts"
import type { Worker } from "../../../middleware/BackgroundTasks.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import * as Worktrees from "../../../workspace/Worktrees.ts"
import type { Agents } from "../config/agents.ts"
import type { Places } from "../config/places.ts"
import type { Approvals } from "../config/settings.ts"
import { foldersOf } from "../project/folders.ts"
import { agentName } from "./workflows/agent.ts"

/** The name of the agent that works in worktrees. A file with this name takes its place. */
const coder = "coder"

/** The tools for coders, which rules for calls may name. */
export const coderTools = ["code_in_worktree", "merge_branches"].map((name) => ({
  name,
  annotations: { openWorld: false }
}))

/** The folder of worktrees in a project. */
const folder = ".worktrees"

/** Names the worktrees of work that was cut off. Nothing of it is lost: it is in their folders. */
const leftovers = Effect.fnUntraced(function* ({ project }: Places) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(join(project, folder)), (): ReadonlyArray<string> => [])
  return names
    .filter((name) => name !== ".gitignore")
    .slice(0, 20)
    .map(
      (name) =>
        `${folder}/${oneLine(name)} has the work of a coder that was cut off, or is at work in another session: look at it, commit what is good, and have it removed (git worktree remove ${folder}/${oneLine(name)})`
    )
})

/** Tells whether a project is in a repository of git. */
const isRepository = Effect.fnUntraced(function* ({ project }: Places) {
  const fs = yield* FileSystem.FileSystem
  const [root = project] = yield* foldersOf(project)
  return yield* Effect.orElseSucceed(fs.exists(join(root, ".git")), () => false)
})

/** The tools for coders. A branch is a change, so plan mode refuses it. */
const coding = <O, E, R>(agent: Agent.Agent<O, E, R>, mode: Effect.Effect<Approvals>) => {
  const tools = Worktrees.tools({ agent })
  const [code] = tools
  return Middleware.make({
    name: "Coders",
    tools,
    rulings: (_run, calls) =>
      Effect.map(mode, (now) =>
        calls.map(({ name }) =>
          name === code.name && now === "plan"
            ? Ruling.refuse("plan", "This is plan mode: nothing is changed, and no branch is made.")
            : undefined
        )
      )
  })
}

/** Asks a person before a script of the model runs as a workflow, in each mode. Saved workflows are trusted already. */
const askingForScripts = Middleware.make({
  name: "Workflows",
  asks: true,
  rulings: (_run, calls) =>
    Effect.sync(() =>
      calls.map((call) => {
        const { script } = call.arguments
        return call.name === agentName && typeof script === "string"
          ? Ruling.ask(agentName, { description: `Runs this program over agents:\n${script}` })
          : undefined
      })
    )
})

/** Makes the middleware of the default agent. An agent that can't be compiled is left out: its file is told elsewhere. */
export const teamOf = Effect.fnUntraced(function* <O, E, R>(
  context: { readonly places: Places; readonly isDemo: boolean; readonly hasBackground?: boolean | undefined },
  workflows: ReadonlyArray<Worker>,
  own: { readonly deep: AgentFile.AgentFile; readonly agents: Agents["agents"] },
  mode: Effect.Effect<Approvals>,
  compile: (file: AgentFile.AgentFile) => Effect.Effect<Agent.Agent<O, E, R>, AgentFile.InvalidAgentFile>
) {
  const { hasBackground = false, isDemo, places } = context
  const { agents, deep } = own
  if (isDemo || deep.name !== "deep") return { middleware: [], problems: [] }
  const compileAll = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
    const members = names.flatMap((name) => agents.find((one) => one.name === name) ?? [])
    const all = yield* Effect.forEach(members, (one) => Effect.result(compile(one)))
    return all.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  })
  const isInGit = yield* isRepository(places)
  const coders = isInGit ? yield* compileAll([coder]) : []
  const helpers = hasBackground ? yield* compileAll(deep.subagents ?? []) : []
  return {
    middleware: [
      ...coders.map((agent) => coding(agent, mode)),
      ...(helpers.length + workflows.length === 0
        ? []
        : [BackgroundSubagents.make({ agents: [...helpers, ...workflows] }), askingForScripts])
    ],
    problems: isInGit ? yield* leftovers(places) : []
  }
})
