/** The program's rules for text from outside: web pages, history of git, MCP servers, commands that use the network. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as CommandRisk from "../../../backends/CommandRisk.ts"
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

/** Tells whether a risk is that of a program which is installed in the folder: `npx` fetches only others. */
const isInstalled = (fs: FileSystem.FileSystem, folder: string, detail: string): Effect.Effect<boolean> => {
  const [, tool] = /^the network, by npx ([\w.-]+)$/.exec(detail) ?? []
  return tool === undefined
    ? Effect.succeed(false)
    : Effect.orElseSucceed(fs.exists(join(folder, "node_modules/.bin", tool)), () => false)
}

/** The source of outside text that a call brings in; `undefined` if it brings in none. */
const sourceOf = Effect.fnUntraced(function* (
  { annotations, arguments: given, name }: Middleware.PreparedCall,
  fs: FileSystem.FileSystem,
  folder: string
) {
  if (isDiff({ name, annotations })) {
    const { revision } = given
    return revision === undefined || revision === "" || revision === "HEAD" ? undefined : name
  }
  const { command } = given
  if (annotations.runsCommands !== true || typeof command !== "string") return undefined
  const reaching = CommandRisk.of(command).filter(({ kind }) => kind === "reaches")
  const isLocal = yield* Effect.forEach(reaching, ({ detail }) => isInstalled(fs, folder, detail))
  return isLocal.includes(false) ? "a command that uses the network" : undefined
})

/** Marks the conversation before a command, or a diff, whose output is text from outside. */
export const commands = (fs: FileSystem.FileSystem, folder: string): Middleware.Middleware =>
  Middleware.make({
    name: "CommandsFromOutside",
    inherit: true,
    wrapToolCall: (call, next) =>
      Effect.flatMap(sourceOf(call, fs, folder), (source) =>
        source === undefined ? next(call) : Effect.andThen(Taint.bringIn(source), next(call))
      )
  })
