/** A session of an editor: the agent of its folder, by the settings, the rules and the trust of the user. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { AcpError } from "../../../acp/AcpError.ts"
import type * as AcpServer from "../../../acp/AcpServer.ts"
import * as Agent from "../../../core/Agent.ts"
import { Backend } from "../../../core/Backend.ts"
import { Sandbox } from "../../../core/Sandbox.ts"
import type { Service as Store } from "../../../core/SessionStore.ts"
import * as Hooks from "../../../middleware/Hooks.ts"
import type { Command } from "../chat/options.ts"
import type { SharedFlags } from "../commands/flags.ts"
import { itemsOf } from "../config/items.ts"
import { choose } from "../config/settings.ts"
import { Failure } from "../failure.ts"
import { commandFolders } from "../project/brought.ts"
import { endSession } from "../project/hooks.ts"
import { fileCommands } from "../slash/fileCommands.ts"
import {
  type App,
  connected,
  type Context as Place,
  openApp,
  type Services,
  type SessionServices
} from "../work/app.ts"
import { contextOf } from "../work/context.ts"
import { openExtensions } from "../work/extensions/open.ts"
import { hold } from "../work/hold.ts"
import { mcpInChat } from "../work/inChat/mcp.ts"
import { modelsInChat } from "../work/inChat/models.ts"
import { makeFolders } from "../work/machine/host.ts"
import * as Threads from "../work/threads.ts"
import { compactCommand, toEditor } from "./commands.ts"
import { makeGate } from "./gate.ts"
import { askTrust } from "./trust.ts"

/** How long a session waits for the lists of models before it shows only its own. */
const patience = "3 seconds"

const toAcp = (error: { readonly message: string }): AcpError => {
  const isSignedOut = error instanceof Failure && error.exit === "noModel"
  return new AcpError({ reason: isSignedOut ? "SignedOut" : "Refused", detail: error.message })
}

/** The flags of a session: the program's flags, in the folder of the editor. */
const contextIn = Effect.fnUntraced(function* (
  flags: SharedFlags,
  { cwd, folders, servers }: AcpServer.SessionOpening
) {
  const context = yield* contextOf({ ...flags, cwd }, false)
  return {
    ...context,
    extensions: yield* openExtensions(context.places, context.project),
    folders: makeFolders([...context.folders.list(), ...folders.map((path) => ({ path, access: "write" as const }))]),
    handed: servers
  } satisfies Place
})

/** The services of a session beside its files: processes, language servers, tasks, services of extensions. */
type Beside = Exclude<SessionServices, Backend | Sandbox>

/** Combines the agent with its model and the services of its session. */
const agentOf = Effect.fnUntraced(function* ({ agent, chatModel }: App, beside: Context.Context<Beside>) {
  const bareAgent = yield* agent({ mode: "ask" })
  return bareAgent.pipe(Agent.provide(chatModel), Agent.provide(Layer.succeedContext(beside)))
})

type Settings = Place["settings"]

const levels = ["off", "low", "medium", "high"] as const

const settingsOf = (
  app: App,
  models: ReadonlyArray<{ readonly name: string; readonly description?: string | undefined }>
): ReadonlyArray<AcpServer.Setting> => {
  const listed = models.some(({ name }) => name === app.model) ? models : [{ name: app.model }, ...models]
  const thinking = app.context.settings.thinking?.value ?? "off"
  return [
    {
      id: "model",
      name: "Model",
      category: "model",
      value: app.model,
      choices: listed.map(({ description, name }) => ({ value: name, name, description }))
    },
    {
      id: "thinking",
      name: "Thinking",
      category: "thought_level",
      value: thinking,
      choices: levels.map((value) => ({ value, name: value }))
    },
    {
      id: "agent",
      name: "Agent",
      value: app.name,
      choices: app.agents.agents.map(({ description, name }) => ({ value: name, name, description }))
    }
  ]
}

const applyChoice = (settings: Settings, id: string, value: string): Settings => {
  if (id === "model") return choose(settings, "model", value)
  if (id === "agent") return choose(settings, "agent", value)
  const level = levels.find((one) => one === value)
  return level === undefined ? settings : choose(settings, "thinking", level)
}

/** Opens a session. A stored thread keeps its agent, unless a flag names another. */
export const openSession = (
  flags: SharedFlags,
  opening: AcpServer.SessionOpening,
  opened: Effect.Effect<Store, Failure, Scope.Scope>
) =>
  Effect.gen(function* () {
    const { isNew, threadId } = opening
    const store = yield* opened
    const node = yield* Effect.context<Scope.Scope | Services>()
    const inNode = <A>(work: Effect.Effect<A, { readonly message: string }, Scope.Scope | Services>) =>
      Effect.mapError(Effect.provideContext(work, node), toAcp)
    const allowed = new Set<string>()
    let mode = () => "ask" as NonNullable<Settings["approvals"]>["value"]
    let learned: Place["learned"] = undefined
    const contextNow = Effect.map(contextIn(flags, opening), (context): Place => ({
      ...context,
      allowed,
      mode: Effect.sync(() => mode()),
      learned: () => learned?.()
    }))
    let context = yield* Effect.flatMap(contextNow, connected)
    if (!isNew && Option.isNone(flags.agent)) {
      const thread = yield* Effect.option(store.info(threadId))
      const agent = Option.match(thread, { onNone: () => "", onSome: Threads.agentOf })
      if (agent !== "") context = { ...context, settings: choose(context.settings, "agent", agent) }
    }
    let app = yield* openApp(context)
    const machine = yield* Layer.build(app.files(threadId))
    // The editor has files of its own.
    const beside = Context.omit(Backend, Sandbox)(machine)
    const sandbox = Context.get(machine, Sandbox)
    let agent = yield* agentOf(app, beside)
    const gate = makeGate({
      mode: context.settings.approvals?.value ?? "ask",
      permits: () => app.permits,
      isAllowed: (callId) => allowed.has(callId),
      onWait: ({ description, toolName }) => {
        const input = { session_id: threadId, message: `${toolName} waits for you: ${description}` }
        Effect.runForkWith(node)(Hooks.fire(app.hooks, "Notification", input, ["permission_prompt"]))
      }
    })
    mode = gate.now
    learned = gate.learned
    yield* Effect.addFinalizer(() => endSession(app.hooks, threadId))
    const { models } = yield* modelsInChat(context.places, context.settings)
    const listed = context.isDemo
      ? []
      : yield* Effect.timeoutOrElse(models, { duration: patience, orElse: () => Effect.succeed([]) })
    let fixed: ReadonlyArray<Command> = []
    let ofServers: () => ReadonlyArray<Command> = () => []

    /** Makes the agent anew, after a choice or an answer about trust. */
    const rebuild = Effect.fnUntraced(function* (next: Place) {
      const nextApp = yield* openApp(next)
      agent = yield* agentOf(nextApp, beside)
      app = nextApp
      context = next
    })
    const listCommands = Effect.gen(function* () {
      fixed = yield* fileCommands(yield* commandFolders(context), itemsOf(context.project, "command"))
      ofServers = yield* mcpInChat(context)
    })
    yield* listCommands
    let isTrustAsked = false
    const session: AcpServer.Session = {
      agent: () => agent,
      machine: sandbox,
      gate,
      metadata: () => ({ agent: app.name, model: app.model, folder: context.places.project }),
      settings: () => settingsOf(app, listed),
      change: (id, value) => inNode(rebuild({ ...context, settings: applyChoice(context.settings, id, value) })),
      commands: () => [
        ...[...fixed, ...ofServers()].map((command) => toEditor(command, gate, sandbox)),
        compactCommand(threadId, app.chatModel, store)
      ],
      prepare: (ask) =>
        Effect.gen(function* () {
          const turn = yield* Effect.scope
          // The lock lasts for the turn. The scope among the services is the one of the session.
          yield* hold(context.places, threadId).pipe(
            Effect.provideContext(Context.add(node, Scope.Scope, turn)),
            Effect.mapError(({ message }) => new AcpError({ reason: "Busy", detail: message }))
          )
          if (isTrustAsked) return
          isTrustAsked = true
          const isTrusted = yield* inNode(askTrust(context.places, ask))
          if (isTrusted) {
            yield* inNode(
              Effect.gen(function* () {
                const { settings } = context
                const next = yield* Effect.flatMap(contextNow, connected)
                yield* rebuild({ ...next, settings })
                yield* listCommands
              })
            )
          }
        })
    }
    return session
  }).pipe(Effect.mapError(toAcp))
