/** The commands about models and their keys, agents, skills, settings, trust and extensions. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import { json, off } from "../flags.ts"
import { runWithoutAgent } from "../root.ts"

export const inSetup = runWithoutAgent(() => import("../setupCommands.ts"))
const inConfig = runWithoutAgent(() => import("../configCommand.ts"))
const inTrust = runWithoutAgent(() => import("../trustCommand.ts"))
const inExtensions = runWithoutAgent(() => import("../extensionCommands.ts"))

const login = Command.make(
  "login",
  {
    provider: Argument.String("provider").pipe(Argument.optional),
    chatgpt: Flag.Boolean("chatgpt").pipe(
      Flag.withDescription("Signs in to OpenAI, whose models then use your ChatGPT plan instead of a key"),
      off
    )
  },
  ({ chatgpt, provider }) =>
    inSetup((Setup, context) =>
      (chatgpt ? Setup.loginByChatGpt : Setup.login)(context, Option.getOrUndefined(provider))
    )
).pipe(
  Command.withDescription("Keeps the key of a provider in the keychain, or sealed in a file. Type it, or pipe it in")
)

const logout = Command.make("logout", { provider: Argument.String("provider") }, ({ provider }) =>
  inSetup((Setup, context) => Setup.logout(context, provider))
).pipe(Command.withDescription("Forgets the key of a provider, or ends the sign-in with ChatGPT"))

const refresh = Command.make(
  "refresh",
  {
    from: Argument.String("from").pipe(
      Argument.withDescription("An address or a file: a catalogue, or the price file of litellm, which is the default"),
      Argument.optional
    ),
    json
  },
  (options) => inSetup((Setup, context) => Setup.refresh(context, Option.getOrUndefined(options.from), options.json))
).pipe(
  Command.withDescription("Renews windows, prices and abilities of models: from a list on the net, and the providers")
)

export const models = Command.make("models", { json }, (options) =>
  inSetup((Setup, context) => Setup.models(context, options.json))
).pipe(
  Command.withDescription("Usable models, and the keys of their providers"),
  Command.withSubcommands([login, logout, refresh])
)

export const agents = Command.make(
  "agents",
  { name: Argument.String("name").pipe(Argument.optional), json },
  (options) =>
    inSetup((Setup, context) =>
      Option.match(options.name, {
        onNone: () => Setup.agents(context, options.json),
        onSome: (name) => Setup.agent(context, name)
      })
    )
).pipe(Command.withDescription("Lists the agents with their files, or shows one agent"))

export const skills = Command.make("skills", { json }, (options) =>
  inSetup((Setup, context) => Setup.skills(context, options.json))
).pipe(Command.withDescription("Lists the skills, and the problems of invalid skills"))

const explain = Command.make(
  "explain",
  {
    name: Argument.String("name").pipe(Argument.withDescription("A setting, a tool, or a path from / of the folder")),
    call: Argument.String("arguments").pipe(
      Argument.withDescription("The arguments of a call of the tool, as JSON"),
      Argument.optional
    )
  },
  ({ call, name }) => inConfig((Config, context) => Config.explain(context, name, Option.getOrUndefined(call)))
).pipe(
  Command.withDescription("Names the setting, or the rule of a policy, that decides"),
  Command.withExamples([
    { command: "deepagents config explain model", description: "Shows all places that set it" },
    { command: `deepagents config explain execute '{"command": "git push"}'`, description: "A call" },
    { command: "deepagents config explain /secrets/key", description: "A file" }
  ])
)

export const config = Command.make("config", { json }, (options) =>
  inConfig((Config, context) => Config.config(context, options.json))
).pipe(
  Command.withDescription("Lists all settings and rules of policies with their origin"),
  Command.withSubcommands([explain])
)

const items = Argument.String("item").pipe(
  Argument.withDescription("Names, kinds or files; without them, all items of the folder"),
  Argument.variadic()
)

const trustAdd = Command.make("add", { items }, (options) =>
  inTrust((Trust, context) => Trust.decide(context, options.items, true))
).pipe(Command.withDescription("Trusts these items as they are now"))

const trustDrop = Command.make("drop", { items }, (options) =>
  inTrust((Trust, context) => Trust.decide(context, options.items, false))
).pipe(Command.withDescription("Withdraws the trust of these items"))

export const trust = Command.make("trust", { json }, (options) =>
  inTrust((Trust, context) => Trust.list(context, options.json))
).pipe(
  Command.withDescription(
    "Lists the items of this folder that an agent would follow or run, and whether you trust them"
  ),
  Command.withSubcommands([trustAdd, trustDrop])
)

const extensionAdd = Command.make(
  "add",
  {
    source: Argument.String("source").pipe(
      Argument.withDescription("A file, a folder, or a package of npm, such as npm:deepagents-house")
    )
  },
  ({ source }) => inExtensions((Extensions, context) => Extensions.add(context, source))
).pipe(Command.withDescription("Adds an extension, and trusts it as it is now"))

const extensionRemove = Command.make("remove", { name: Argument.String("name") }, ({ name }) =>
  inExtensions((Extensions, context) => Extensions.remove(context, name))
).pipe(Command.withDescription("Removes an extension, by its name or its source"))

export const extensions = Command.make("extensions", { json }, (options) =>
  inExtensions((Extensions, context) => Extensions.list(context, options.json))
).pipe(
  Command.withDescription("Extensions that count here, and what each adds"),
  Command.withSubcommands([extensionAdd, extensionRemove])
)
