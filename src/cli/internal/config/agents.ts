/** Finds agents: of the program, of the user's files, and of a trusted project. */
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as AgentFile from "../../../agents/AgentFile.ts"
import * as Prompts from "../../../agents/Prompts.ts"
import { suggestion } from "../../../support/text/near.ts"
import { fail } from "../failure.ts"
import { readSmall } from "../project/folders.ts"
import type { Plugin } from "../project/plugins.ts"
import { itemsOf, type Project } from "./items.ts"
import type { Places } from "./places.ts"
import { onMachine } from "./policies.ts"

export type Origin = "program" | "plugin" | "user" | "project"

export interface Agents {
  readonly agents: ReadonlyArray<AgentFile.AgentFile & { readonly origin: Origin }>
  readonly problems: ReadonlyArray<AgentFile.InvalidAgentFile>
}

const own: ReadonlyArray<AgentFile.AgentFile & { readonly origin: Origin }> = [
  {
    name: "deep",
    description: "Code and research: plans, reads and changes files, runs commands, gives parts to sub-agents.",
    prompt: Prompts.deep,
    subagents: ["researcher", "reviewer"],
    // Its shell does these.
    disallowedTools: ["git_commit", "git_branch", "git_branches", "git_worktree", "git_worktrees"]
  },
  {
    name: "researcher",
    description: "Answers one question by reading much: files, documents, pages. Changes nothing.",
    prompt: Prompts.researcher,
    readOnly: true,
    generalPurpose: false
  },
  {
    name: "reviewer",
    description: "Reviews a change, and says what is wrong with it. Changes nothing.",
    prompt: Prompts.reviewer,
    readOnly: true,
    generalPurpose: false
  },
  {
    name: "coder",
    description: "Does one part of a change, in a copy of the repository: reads and changes files, runs commands.",
    prompt: Prompts.coder,
    generalPurpose: false
  },
  {
    name: "planner",
    description: "Reads, and gives a plan in steps that somebody else can take. Changes nothing.",
    prompt: Prompts.planner,
    readOnly: true,
    generalPurpose: false
  }
].map((agent) => ({ ...agent, path: "effect-deepagents", origin: "program" }))

/** Turns the globs of a file's policy, which begin at the project, into globs of the machine. */
const placeRules = (agent: AgentFile.AgentFile, places: Places): AgentFile.AgentFile => {
  const { files } = agent.policy ?? {}
  if (files === undefined) return agent
  const rules = files.rules.map((rule) => ({ ...rule, paths: rule.paths.map(onMachine(places)) }))
  return { ...agent, policy: { ...agent.policy, files: { ...files, rules } } }
}

/** An agent, or what is wrong with its file. */
const agentIn = (text: string, path: string, origin: Origin, places: Places) => {
  const claude = origin === "plugin" || path.includes("/.claude/")
  const parsed = AgentFile.parse(text, { path, claude })
  return Effect.result(Effect.map(parsed, (agent) => ({ ...placeRules(agent, places), origin })))
}

/** The most bytes of a file. */
const mostBytes = 65_536

/** The agents in a folder of the user or of a plugin. */
const inFolder = Effect.fnUntraced(function* (folder: string, origin: Origin, places: Places) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), (): ReadonlyArray<string> => [])
  const files = names.filter((name) => name.endsWith(".md")).toSorted()
  return yield* Effect.forEach(files, (name) => {
    const path = join(folder, name)
    return Effect.flatMap(readSmall(path, mostBytes), (outcome = { problem: "it is not there" }) =>
      "problem" in outcome
        ? Effect.succeed(Result.fail(new AgentFile.InvalidAgentFile({ path, problem: outcome.problem })))
        : agentIn(outcome.text, path, origin, places)
    )
  })
})

/**
 * Finds all agents. A project overrides the user, the user the plugins, and these the program, by the name of an agent.
 */
export const findAgents = Effect.fnUntraced(function* (
  places: Places,
  project: Project,
  plugins: ReadonlyArray<Plugin>
) {
  const folders = [join(homedir(), ".claude", "agents"), join(places.config, "agents")]
  const results = [
    ...(yield* Effect.forEach(plugins, ({ folder }) => inFolder(join(folder, "agents"), "plugin", places))).flat(),
    ...(yield* Effect.forEach(folders, (folder) => inFolder(folder, "user", places))).flat(),
    ...(yield* Effect.forEach(itemsOf(project, "agent"), ({ file, text }) =>
      agentIn(text, resolve(places.project, file), "project", places)
    ))
  ]
  const fromFiles = results.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  return {
    agents: [...new Map([...own, ...fromFiles].map((agent) => [agent.name, agent])).values()],
    problems: results.flatMap((one) => (Result.isFailure(one) ? [one.failure] : []))
  } satisfies Agents
})

/** Finds an agent by its name. Fails with the problem of its file, if the file is invalid. */
export const agentOf = ({ agents, problems }: Agents, name: string) => {
  const match = agents.find((agent) => agent.name === name)
  if (match !== undefined) return Effect.succeed(match)
  const broken = problems.find(({ path }) => path.endsWith(`/${name}.md`))
  const names = agents.map((agent) => agent.name)
  return fail("usage", broken?.message ?? `There is no agent ${JSON.stringify(name)}. ${suggestion(name, names)}`)
}
