/** MCP servers in the chat: `/mcp`, and their prompts as commands. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Content from "../../../../core/Content.ts"
import * as Message from "../../../../core/Message.ts"
import type { McpServers, Prompt, ServerTool, Status } from "../../../../mcp/McpServers.ts"
import { suggestion } from "../../../../support/text/near.ts"
import { cut } from "../../../../support/text/text.ts"
import { oneLine } from "../../../../support/text/untrusted.ts"
import type { Command, Problem, CommandOutcome } from "../../chat/options.ts"
import { signIn } from "../../commands/mcpCommands.ts"
import type { Context, Services } from "../app.ts"

type Server = McpServers["Service"]

const problem = (message: string) => Effect.fail<Problem>({ message })

const stateOf = ({ error, name, problems, state, tools }: Status): string => {
  const facts = [state, ...(state === "connected" ? [`${tools} tools`] : []), ...problems]
  const failed = error === undefined ? "" : `: ${oneLine(error.message)}`
  return `- **${name}** ${facts.map(oneLine).join(", ")}${failed}`
}

const toolOf = ({ annotations, description, tool }: ServerTool): string =>
  `- \`${tool}\`${annotations.readOnly === true ? " (reads only)" : ""} ${oneLine(cut(description, 160))}`

const actions = ["tools", "reconnect", "login"]

/** Shows the servers. `told` runs first, so that new prompts are available at once. */
const mcp = (context: Context, servers: Server, note: (text: string) => void, told: Effect.Effect<unknown>) =>
  Effect.fnUntraced(function* (argument: string): Effect.fn.Return<CommandOutcome, Problem, Services> {
    const [action = "", name = "", flag = ""] = argument.trim().split(/\s+/)
    const states = yield* Effect.andThen(servers.tools, servers.status)
    const show = (all: ReadonlyArray<Status>): CommandOutcome => ({
      _tag: "Show",
      markdown: all.map(stateOf).join("\n")
    })
    if (action === "") return yield* Effect.as(told, show(states))
    if (!actions.includes(action)) {
      return yield* problem(`There is no /mcp ${JSON.stringify(action)}. ${suggestion(action, actions)}`)
    }
    const names = states.map((status) => status.name)
    if ((name !== "" || action !== "tools") && !names.includes(name)) {
      const what =
        name === "" ? `Say which server: /mcp ${action} NAME.` : `There is no server ${JSON.stringify(name)}.`
      return yield* problem(`${what} ${suggestion(name, names)}`)
    }
    if (action === "tools") {
      const tools = (yield* servers.tools).filter(({ server }) => name === "" || server === name)
      const of = (server: string) => tools.filter((tool) => tool.server === server).map(toolOf)
      const parts = names.map((one) => [`**${one}**`, "", ...of(one)]).filter(({ length }) => length > 2)
      const markdown = parts.length === 0 ? "There are no tools." : parts.map((part) => part.join("\n")).join("\n\n")
      return { _tag: "Show", markdown }
    }
    if (action === "login")
      yield* signIn(context, name, flag === "--device", (lines) => Effect.sync(() => note(lines.join("\n"))))
    yield* Effect.mapError(servers.reconnect(name), ({ message }): Problem => ({ message }))
    const isSettled = ({ state }: Status) => state === "connected" || state === "failed"
    yield* servers.changes.pipe(
      Stream.filter((all) => all.some((one) => one.name === name && isSettled(one))),
      Stream.runHead,
      Effect.timeoutOption("20 seconds")
    )
    yield* told
    return show((yield* servers.status).filter((status) => status.name === name))
  })

/** Assigns the words of a command to the arguments of a prompt. The last argument takes the rest. */
const filled = ({ arguments: wanted, name, server }: Prompt, argument: string) => {
  const values = new Map<string, string>()
  let rest = argument.trim()
  for (const [index, one] of wanted.entries()) {
    const isLast = index === wanted.length - 1
    const [, quoted, word] = (isLast ? undefined : /^(?:"([^"]*)"|(\S+))/.exec(rest)) ?? []
    const value = isLast ? rest : (quoted ?? word ?? "")
    if (value !== "") values.set(one.name, value)
    else if (one.isRequired) return problem(`It needs ${one.name}: ${usage(server, name)} ${hint(wanted)}`)
    rest = rest.slice(quoted === undefined ? value.length : value.length + 2).trimStart()
  }
  return Effect.succeed(Object.fromEntries(values))
}

const usage = (server: string, name: string): string => `/${commandName(server, name)}`

const hint = (wanted: Prompt["arguments"]): string =>
  wanted.map(({ isRequired, name }) => (isRequired ? `<${oneLine(name)}>` : `[${oneLine(name)}]`)).join(" ")

/** Makes a name fit for a slash command. */
const commandName = (server: string, name: string): string =>
  [server, name].map((part) => part.replaceAll(/[^\w-]+/g, "-")).join(":")

/** Joins the turns of a prompt into one message of the person, marked as coming from a server. */
const asOne = (messages: ReadonlyArray<Message.Message>): Message.HumanMessage =>
  Message.human(
    messages.flatMap((message) =>
      message.role === "human" ? message.content : [Content.text(`(You answered: ${Message.text(message)})`)]
    )
  )

const promptCommand = (prompt: Prompt): Command => ({
  name: commandName(prompt.server, prompt.name),
  description: oneLine(prompt.title ?? prompt.description),
  argument: prompt.arguments.length === 0 ? undefined : hint(prompt.arguments),
  run: (argument) =>
    Effect.gen(function* () {
      const args = yield* filled(prompt, argument)
      const messages = yield* Effect.mapError(prompt.get(args), ({ message }): Problem => ({ message }))
      return { _tag: "Send", input: asOne(messages) } satisfies CommandOutcome
    })
})

/** Tells of each server that fails, once until it is connected again. */
export const failuresOf = ({ servers }: Context): Stream.Stream<string> => {
  if (servers === undefined) return Stream.empty
  const reportedNames = new Set<string>()
  return Stream.flatMap(servers.changes, (all) => {
    for (const { name, state } of all) if (state === "connected") reportedNames.delete(name)
    const failed = all.filter(({ name, state }) => state === "failed" && !reportedNames.has(name))
    for (const { name } of failed) reportedNames.add(name)
    return Stream.fromIterable(
      failed.map(({ error, name }) => {
        const why = oneLine(error?.message ?? "it is not connected")
        return cut(`The server ${oneLine(name)} can't be used: ${why} (/mcp shows all)`, 400)
      })
    )
  })
}

/** Gives the commands, which follow the prompts of the servers until the scope ends. */
export const mcpInChat = Effect.fnUntraced(function* (context: Context) {
  const { servers } = context
  const node = yield* Effect.context<Services>()
  let prompts: ReadonlyArray<Command> = []
  // One listing at a time: an older result must not replace a newer one.
  const listed = Semaphore.makeUnsafe(1).withPermit(
    Effect.suspend(() =>
      servers === undefined
        ? Effect.void
        : Effect.map(servers.prompts, (found) => {
            prompts = found.map(promptCommand)
          })
    )
  )
  if (servers !== undefined) {
    const connected = Stream.map(servers.changes, (all) =>
      all.map(({ name, state }) => `${name} ${state === "connected"}`).join("\n")
    )
    yield* connected.pipe(
      Stream.changes,
      Stream.runForEach(() => listed),
      Effect.forkScoped
    )
  }
  const own: Command = {
    name: "mcp",
    argument: "[tools | reconnect | login] [server]",
    description: "the servers of the Model Context Protocol, and their state",
    run: (argument, note) =>
      servers === undefined
        ? problem("There is no server: deepagents mcp add NAME -- COMMAND, or a URL")
        : Effect.provideContext(mcp(context, servers, note, Effect.timeoutOption(listed, "5 seconds"))(argument), node)
  }
  return () => [own, ...prompts]
})
