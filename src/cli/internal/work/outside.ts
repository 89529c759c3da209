/** The program's rules for text from outside: web pages, history of git, MCP servers, commands that use the network. */
import * as Effect from "effect/Effect"
import * as CommandRisk from "../../../backends/CommandRisk.ts"
import * as Middleware from "../../../core/Middleware.ts"
import type { Annotations } from "../../../core/Tool.ts"
import * as BackgroundSubagents from "../../../middleware/BackgroundSubagents.ts"
import * as Taint from "../../../middleware/Taint.ts"
import type { FoundServers } from "../config/servers.ts"

/** A trusted program of the project runs with the person's rights, so its words about its tools add no danger. */
const isBelieved = ({ origin, server }: FoundServers["servers"][number]): boolean =>
  origin === "user" || server.type === "stdio"

/**
 * The words of the person's own files and commands count as his. What servers answer does not. Calls that go to an address
 * are asked about by their host already, and tools that look at files go nowhere.
 */
export const rules = (
  tools: ReadonlyArray<{ readonly name: string; readonly annotations: Annotations }>,
  { servers }: FoundServers
): Taint.Options => {
  const trusted = tools.filter(
    ({ annotations: { openWorld, runsCommands, untrusted } }) =>
      untrusted !== true && (openWorld !== true || runsCommands === true)
  )
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

/** Tells whether a command uses the network, as far as its words say so. */
const isReaching = (command: unknown): boolean =>
  typeof command === "string" && CommandRisk.of(command).some(({ kind }) => kind === "reaches")

/** Marks the conversation before a command that uses the network: its output is text from outside. */
export const commands: Middleware.Middleware = Middleware.make({
  name: "ReachingCommands",
  inherit: true,
  wrapToolCall: (call, next) =>
    call.annotations.runsCommands === true && isReaching(call.arguments["command"])
      ? Effect.andThen(Taint.bringIn("a command that uses the network"), next(call))
      : next(call)
})
