/** The program's rules for text from outside: web pages, history of git, MCP servers, commands that use the network. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as CommandRisk from "../../../../backends/CommandRisk.ts"
import * as Middleware from "../../../../core/Middleware.ts"
import type { Annotations } from "../../../../core/Tool.ts"
import * as BackgroundSubagents from "../../../../middleware/BackgroundSubagents.ts"
import * as Taint from "../../../../middleware/Taint.ts"
import { isIsolated } from "../../approvals/isolated.ts"
import type { FoundServers } from "../../config/servers.ts"

/** A trusted program of the project runs with the person's rights, so its words about its tools add no danger. */
const isBelieved = ({ origin, server }: FoundServers["servers"][number]): boolean =>
  origin === "user" || server.type === "stdio"

/**
 * Trusts the results of the program's own tools that show the person's files and commands. Its reading tools ask nothing:
 * calls that go to an address are asked about by their host already. Tools of extensions and servers are not given here:
 * the strict rules hold for them.
 */
export const rules = (
  ownTools: ReadonlyArray<{ readonly name: string; readonly annotations: Annotations }>,
  { servers }: FoundServers
): Taint.Options => {
  const trusted = ownTools.filter(({ annotations }) => {
    const { openWorld, runsCommands, untrusted, untrustedBy } = annotations
    return untrustedBy !== undefined || (untrusted !== true && (openWorld !== true || runsCommands === true))
  })
  const harmless = ownTools.filter(({ annotations }) => annotations.readOnly === true)
  return {
    strict: true,
    // The program itself announces the start of a task in the background. The result is a model's.
    trusted: [...trusted.map(({ name }) => name), BackgroundSubagents.toolNames.start],
    harmless: harmless.map(({ name }) => name),
    servers: servers.filter(isBelieved).map(({ name }) => name)
  }
}

/** Tells whether a risk is only that of `npx` with a program which is installed in the folder: it fetches only others. */
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
  const isByArgument = Object.entries(annotations.untrustedBy ?? {}).some(([argument, harmless]) => {
    const value = given[argument]
    return value !== undefined && (typeof value !== "string" || !harmless.includes(value))
  })
  if (isByArgument) return name
  const { command } = given
  // An isolated command reaches no network.
  if (annotations.runsCommands !== true || typeof command !== "string" || isIsolated({ name, arguments: given }))
    return undefined
  const risks = CommandRisk.of(command)
  const reaching = risks.filter(({ kind }) => kind === "reaches")
  const isLocal = yield* Effect.forEach(reaching, ({ detail }) => isInstalled(fs, folder, detail))
  // By its options, npx fetches a package in spite of the installed program.
  const isFetching = risks.some(({ detail, kind }) => kind === "runs" && detail.startsWith("what npx "))
  return isLocal.includes(false) || isFetching ? "a command that uses the network" : undefined
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
