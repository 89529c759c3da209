/** The commands about servers. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import { json, off } from "../flags.ts"
import { runWithoutAgent } from "../root.ts"

const server = Argument.String("server")
const inServers = runWithoutAgent(() => import("../mcpCommands.ts"))

const description = "Servers of the Model Context Protocol: list, add, login, test"

const listing = <const Name extends string>(name: Name) =>
  Command.make(name, { json }, (options) => inServers((Servers, context) => Servers.list(context, options.json)))
const list = listing("list").pipe(
  Command.withDescription("Lists the servers of your files, and of this folder's, once it is trusted")
)

const add = Command.make(
  "add",
  {
    name: server,
    at: Argument.String("command-or-url"),
    args: Argument.String("argument").pipe(Argument.variadic()),
    env: Flag.String("env").pipe(
      Flag.withMetavar("name[=value]"),
      Flag.withDescription("A variable of its process; without a value, the value in the environment at its start"),
      Flag.atLeast(0)
    ),
    headers: Flag.String("header").pipe(
      Flag.withMetavar("name: value"),
      Flag.withDescription('A header; write a secret as "Authorization: Bearer ${TOKEN}"'),
      Flag.atLeast(0)
    ),
    project: Flag.Boolean("project").pipe(
      Flag.withDescription("Writes to .mcp.json of this folder instead of your own file"),
      off
    )
  },
  (options) => inServers((Servers, context) => Servers.add(context, options))
).pipe(
  Command.withDescription("Adds a server: a command to start, or a URL"),
  Command.withExamples([
    {
      command: "deepagents mcp add everything -- npx -y @modelcontextprotocol/server-everything",
      description: "A process"
    },
    { command: "deepagents mcp add tickets https://tickets.example.com/mcp", description: "A server elsewhere" }
  ])
)

const login = Command.make(
  "login",
  {
    server,
    device: Flag.Boolean("device").pipe(
      Flag.withDescription("Shows a code that you type in on another device: for a machine without a browser"),
      off
    )
  },
  (options) => inServers((Servers, context) => Servers.login(context, options.server, options.device))
).pipe(Command.withDescription("Signs in to a server on its page, and keeps the tokens like keys"))

const test = Command.make("test", { server: Argument.optional(server), json }, (options) =>
  inServers((Servers, context) => Servers.test(context, Option.getOrUndefined(options.server), options.json))
).pipe(Command.withDescription("Connects to all servers, or to one, and checks their tools"))

export const mcpCommand = listing("mcp").pipe(
  Command.withDescription(description),
  Command.withSubcommands([list, add, login, test])
)
