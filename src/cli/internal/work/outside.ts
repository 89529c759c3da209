/** The program's rules for text from outside: web pages, history of git, MCP servers, commands that use the network. */
import * as Effect from "effect/Effect"
import * as CommandRisk from "../../../backends/CommandRisk.ts"
import * as CommandRule from "../../../backends/CommandRule.ts"
import * as Middleware from "../../../core/Middleware.ts"
import type { Annotations } from "../../../core/Tool.ts"
import * as BackgroundSubagents from "../../../middleware/BackgroundSubagents.ts"
import * as Taint from "../../../middleware/Taint.ts"
import type { FoundServers } from "../config/servers.ts"

/** A trusted program of the project runs with the person's rights, so its words about its tools add no danger. */
const isBelieved = ({ origin, server }: FoundServers["servers"][number]): boolean =>
  origin === "user" || server.type === "stdio"

/** Tells whether a tool shows changes. Unless it names a revision, these are of the person's own files. */
const isDiff = ({ annotations, name }: { readonly name: string; readonly annotations: Annotations }): boolean =>
  name === "git_diff" && annotations.server === undefined

/**
 * The words of the person's own files and commands count as his. What servers answer does not. Calls that go to an address
 * are asked about by their host already, and tools that look at files go nowhere.
 */
export const rules = (
  tools: ReadonlyArray<{ readonly name: string; readonly annotations: Annotations }>,
  { servers }: FoundServers
): Taint.Options => {
  const trusted = tools.filter((tool) => {
    const { openWorld, runsCommands, untrusted } = tool.annotations
    return isDiff(tool) || (untrusted !== true && (openWorld !== true || runsCommands === true))
  })
  const harmless = tools.filter(
    ({ annotations: { addresses, openWorld, readOnly } }) =>
      addresses !== undefined || (readOnly === true && openWorld !== true)
  )
  return {
    strict: true,
    // The start of a task in the background is said by the program; its result is not.
    trusted: [...trusted.map(({ name }) => name), BackgroundSubagents.toolNames.start],
    harmless: harmless.map(({ name }) => name),
    servers: servers.filter(isBelieved).map(({ name }) => name)
  }
}

/** Commands that show what others wrote into the history of git. */
const history: ReadonlyArray<CommandRule.CommandRule> = [
  "log",
  "show",
  "blame",
  "annotate",
  "shortlog",
  "reflog",
  "whatchanged",
  "cat-file",
  "format-patch",
  "stash list",
  "stash show",
  "branch -*v*",
  "branch * -*v*",
  "diff *..*",
  "diff * *..*"
].map((words) => ({ ruling: "ask", command: `git ${words}:*` }))

/** The source of outside text that a call brings in; `undefined` if it brings in none. */
const sourceOf = ({ annotations, arguments: given, name }: Middleware.PreparedCall): string | undefined => {
  if (isDiff({ name, annotations })) {
    const { revision } = given
    return revision === undefined || revision === "" || revision === "HEAD" ? undefined : name
  }
  const { command } = given
  if (annotations.runsCommands !== true || typeof command !== "string") return undefined
  if (CommandRisk.of(command).some(({ kind }) => kind === "reaches")) return "a command that uses the network"
  return CommandRule.matches(history, command) ? "a command that shows history of git" : undefined
}

/** Marks the conversation before a command, or a diff, whose output is text from outside. */
export const commands: Middleware.Middleware = Middleware.make({
  name: "CommandsFromOutside",
  inherit: true,
  wrapToolCall: (call, next) => {
    const source = sourceOf(call)
    return source === undefined ? next(call) : Effect.andThen(Taint.bringIn(source), next(call))
  }
})
