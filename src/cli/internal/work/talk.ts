/** `deepagents` and `deepagents resume`: the chat on a new or a stored thread. */
import { dirname, join } from "node:path"
import * as Prompt from "effect/cli/Prompt"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Agent from "../../../core/Agent.ts"
import { SessionStore } from "../../../core/SessionStore.ts"
import * as Hooks from "../../../middleware/Hooks.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { writeKept } from "../approvals/keptFile.ts"
import type { LearnedRules } from "../approvals/learned.ts"
import { facts } from "../chat/facts.ts"
import { chat } from "../chat/open.ts"
import { login } from "../commands/setupCommands.ts"
import { itemsOf } from "../config/items.ts"
import { keyed, ollama } from "../config/providers.ts"
import { choose } from "../config/settings.ts"
import { fail, orFail } from "../failure.ts"
import { bindingsWith } from "../input/bindings.ts"
import { canAsk, tell } from "../output.ts"
import { commandFolders } from "../project/brought.ts"
import { beforeCompact, endSession } from "../project/hooks.ts"
import { askPerson } from "../question.ts"
import type { Terminal } from "../screen/terminal.ts"
import { fileCommands } from "../slash/fileCommands.ts"
import { type App, connected, type Context, openApp, type Services, sessions } from "./app.ts"
import { openCheckpoints } from "./checkpoints.ts"
import { commandsOf, firstModels } from "./extensions/extensions.ts"
import { writeHeader } from "./header.ts"
import { hold } from "./hold.ts"
import { addDir } from "./inChat/addDir.ts"
import { failuresOf, mcpInChat } from "./inChat/mcp.ts"
import { keepSetting, modelsInChat } from "./inChat/models.ts"
import { retrievalInChat } from "./inChat/retrieval.ts"
import { setupInChat } from "./inChat/setup.ts"
import { trustInChat } from "./inChat/trust.ts"
import { workflowsInChat } from "./inChat/workflows.ts"
import { describeSandbox, describeUnapproved } from "./machine/sandboxed.ts"
import { makeRemembering } from "./remembering.ts"
import { findStatusLine } from "./statusLine.ts"
import * as Threads from "./threads.ts"
import { type Background, workersOf } from "./workflows/worker.ts"
import { storedOf } from "./workflows/workflows.ts"

type ModelChoice =
  | { readonly _tag: "key"; readonly name: string }
  | { readonly _tag: "local"; readonly name: string }
  | { readonly _tag: "demo" }

type Choice = Prompt.SelectChoice<ModelChoice>

/** Runs work that needs the terminal for itself. */
type Aside = Terminal["lend"]

/** Asks for a provider and its key on the first run at a terminal. */
const firstRun = Effect.fnUntraced(function* (context: Context, aside: Aside) {
  const { isDemo, places, settings } = context
  const all = yield* keyed(places)
  if (isDemo || !(yield* canAsk) || settings.model !== undefined || all.some(({ key }) => key !== undefined))
    return context
  const local = yield* ollama
  const choices: ReadonlyArray<Choice> = [
    ...all.map(({ name }): Choice => ({
      title: `${name} (a key, kept on this machine)`,
      value: { _tag: "key", name }
    })),
    ...(local ?? []).map((name): Choice => ({ title: `ollama: ${name} (runs here)`, value: { _tag: "local", name } })),
    { title: "a demo (a scripted model, no key)", value: { _tag: "demo" } }
  ]
  const choice = yield* Effect.catch(
    aside(
      askPerson(Prompt.Select<ModelChoice>({ message: "Nothing is set up yet. Which model shall answer?", choices }))
    ),
    () => fail("interrupted", "\nNothing was set up.")
  )
  if (choice._tag === "demo") return { ...context, isDemo: true }
  if (choice._tag === "local") return { ...context, settings: choose(settings, "model", `ollama:${choice.name}`) }
  yield* aside(login(context, choice.name))
  return context
})

/** Combines the agent with its model. */
const setupOf = Effect.fnUntraced(function* ({ agent, chatModel, model, name }: App) {
  const bareAgent = yield* agent({ mode: "ask" })
  return { agent: Agent.provide(bareAgent, chatModel), name, model, chatModel }
})

/** Opens the agent of a chat and its thread. A resumed thread keeps its agent, unless a flag names another. */
const openThread = Effect.fnUntraced(function* (
  context: Context,
  options: { readonly resume: boolean; readonly id?: string | undefined; readonly first?: string | undefined }
) {
  const { places, settings } = context
  const store = yield* SessionStore
  const thread = options.resume
    ? yield* options.id === undefined ? Threads.lastOf(store, places) : Threads.find(store, options.id)
    : undefined
  if (thread !== undefined && storedOf(thread) !== undefined) {
    return yield* fail("usage", `${thread.threadId} is a workflow: deepagents workflow resume ${thread.threadId}`)
  }
  const agent = thread === undefined || settings.agent?.from === "flag" ? "" : Threads.agentOf(thread)
  const app = yield* openApp(agent === "" ? context : { ...context, settings: choose(settings, "agent", agent) })
  return { app, threadId: thread?.threadId ?? (yield* Threads.create(store, app, options.first ?? "")) }
})

/** Chats until the person leaves. `id` names the thread to resume. */
export const talk = Effect.fnUntraced(
  function* (
    given: Context,
    options: {
      readonly resume: boolean
      readonly id?: string | undefined
      readonly first?: string | undefined
      /** The terminal, if it already shows a prompt. */
      readonly terminal?: Terminal | undefined
    }
  ) {
    const aside: Aside = (work) => (options.terminal === undefined ? work : options.terminal.lend(work))
    const { guard, remembering } = yield* makeRemembering(given.places, yield* SessionStore)
    const allowed = new Set<string>()
    const begun = yield* firstRun(given, aside)
    let mode = () => begun.settings.approvals?.value ?? "ask"
    let learned: ReadonlyArray<LearnedRules> | undefined
    const { isPlain, isTerminal } = facts()
    const hasBackground = isTerminal && !isPlain && begun.settings.plain?.value !== true
    const node = yield* Effect.context<Services>()
    const background: Background | undefined = hasBackground
      ? { store: yield* SessionStore, live: new Map(), checkpoints: undefined }
      : undefined
    const workers: Context["workers"] =
      background === undefined
        ? undefined
        : (app) => Effect.provideContext(workersOf(begun, background, app, node), node)
    const context = yield* connected({
      ...begun,
      memoryGuard: guard,
      allowed,
      mode: Effect.sync(() => mode()),
      learned: () => learned,
      hasBackground,
      workers
    })
    const { places, settings } = context
    const { app, threadId } = yield* openThread(context, options)
    let current = app
    for (const problem of app.problems) yield* aside(tell(`! ${visible(problem)}`))
    const setup = Effect.fnUntraced(function* (chosen: { readonly agent?: string; readonly model?: string }) {
      const named = chosen.agent === undefined ? settings : choose(settings, "agent", chosen.agent)
      const other = chosen.model === undefined ? named : choose(named, "model", chosen.model)
      const nextApp = yield* openApp({ ...context, settings: other })
      current = nextApp
      return yield* setupOf(nextApp)
    })
    const commands = yield* fileCommands(yield* commandFolders(context), itemsOf(context.project, "command"))
    const fixed = [
      ...(yield* setupInChat(context)),
      yield* addDir(context),
      yield* trustInChat(context),
      ...(yield* retrievalInChat(context)),
      ...commands,
      ...commandsOf(context.extensions.loaded)
    ]
    const ofServers = yield* mcpInChat(context)
    const { models, onFavourite } = yield* modelsInChat(places, settings)
    const refused = new Set<string>()
    yield* Effect.addFinalizer(() => endSession(app.hooks, threadId))
    yield* chat({
      terminal: options.terminal,
      threadId,
      setup: yield* setupOf(app),
      choose: (chosen) => Effect.provideContext(setup(chosen), node),
      agents: app.agents.agents.map(({ description, name }) => ({ name, description })),
      models: Effect.map(models, (all) => [...all, ...firstModels(context.extensions.loaded)]),
      onFavourite,
      notes: failuresOf(context),
      header: yield* writeHeader(
        places,
        app.model,
        app.permits.containment === "unapproved" ? describeUnapproved : describeSandbox(settings)
      ),
      remembering,
      commands: () => [...fixed, ...ofServers()],
      instructions: app.instructions.files,
      isAllowed: (callId) => allowed.has(callId),
      onWait: ({ description, toolName }) => {
        const input = { session_id: threadId, message: `${toolName} waits for you: ${description}` }
        Effect.runForkWith(node)(Hooks.fire(app.hooks, "Notification", input, ["permission_prompt"]))
      },
      beforeCompact: (id, focus) => Effect.provideContext(beforeCompact(app.hooks, id, focus), node),
      limits: { cost: settings.budget?.value, tokens: settings.tokens?.value },
      mode: settings.approvals?.value,
      onMode: (now) => {
        mode = now
      },
      permits: app.permits,
      // A key is answered at once; the file follows.
      onLearned: (now) => {
        learned = now
        const ofProject = now.filter(({ scope }) => scope === "project")
        void Effect.runForkWith(node)(Effect.ignore(writeKept(places, app.permits.where.cwd, ofProject)))
      },
      plain: settings.plain?.value,
      theme: settings.theme?.value,
      onTheme: (theme) => keepSetting(places, () => ({ theme })).pipe(Effect.provideContext(node), orFail("failed")),
      statusLine: yield* findStatusLine(context),
      vim: settings.vim?.value,
      onVim: (vim) => keepSetting(places, () => ({ vim })).pipe(Effect.provideContext(node), orFail("failed")),
      bindings: bindingsWith(settings.keys?.value ?? {}),
      resumes: options.resume,
      first: options.first,
      folder: places.project,
      checkpoints: yield* Effect.tap(
        openCheckpoints(context, (message) => aside(tell(`! Files are not kept for /undo: ${visible(message)}`))),
        (checkpoints) =>
          Effect.sync(() => {
            if (background !== undefined) background.checkpoints = checkpoints
          })
      ),
      workflows: background === undefined ? undefined : yield* workflowsInChat(context, () => current, background),
      history: join(dirname(context.memory.notes), "history"),
      draft: join(places.data, "threads", threadId, "draft"),
      // The lock lasts for the turn. The scope among the services is the one of the chat.
      hold: (id) =>
        Effect.flatMap(Effect.scope, (scope) =>
          hold(places, id, refused.has(id)).pipe(
            Effect.onExit((exit) => Effect.sync(() => (Exit.isFailure(exit) ? refused.add(id) : refused.delete(id)))),
            Effect.provideService(Scope.Scope, scope),
            Effect.provideContext(node)
          )
        ),
      resumeCommand: (id) => `deepagents resume ${id}`
    }).pipe(Effect.provide(app.files(threadId)), orFail("failed"))
  },
  (effect, { places }) => Effect.scoped(Effect.provide(effect, sessions(places)))
)
