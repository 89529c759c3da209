/** The agent of a folder with its surroundings: model, files, shell, skills, memory, sessions. */
import { join, resolve } from "node:path"
import type { NodeServices } from "@effect/platform-node/NodeServices"
import * as ContextOf from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Schema from "effect/Schema"
import * as AgentFile from "../../../agents/AgentFile.ts"
import * as FileTools from "../../../backends/FileTools.ts"
import * as Processes from "../../../backends/Processes.ts"
import * as CodeMode from "../../../code/CodeMode.ts"
import * as NodeScripts from "../../../code/NodeScripts.ts"
import type * as Scripts from "../../../code/Scripts.ts"
import * as Agent from "../../../core/Agent.ts"
import type { Backend } from "../../../core/Backend.ts"
import type { ChatModel } from "../../../core/ChatModel.ts"
import type * as Middleware from "../../../core/Middleware.ts"
import type { Sandbox } from "../../../core/Sandbox.ts"
import type { SessionStore } from "../../../core/SessionStore.ts"
import * as Documents from "../../../documents/Documents.ts"
import * as Mcp from "../../../mcp/Mcp.ts"
import type { Servers } from "../../../mcp/McpConfig.ts"
import type { McpError } from "../../../mcp/McpError.ts"
import { McpServers } from "../../../mcp/McpServers.ts"
import * as AskUser from "../../../middleware/AskUser.ts"
import * as BackgroundTasks from "../../../middleware/BackgroundTasks.ts"
import * as Budget from "../../../middleware/Budget.ts"
import * as Hooks from "../../../middleware/Hooks.ts"
import type * as Network from "../../../net/Network.ts"
import * as SqliteSessions from "../../../sessions/SqliteSessions.ts"
import * as SqlSessions from "../../../sessions/SqlSessions.ts"
import * as FetchUrl from "../../../web/FetchUrl.ts"
import type { WebReader } from "../../../web/WebReader.ts"
import * as WebSearch from "../../../web/WebSearch.ts"
import * as CurrentDatetime from "../../../workspace/CurrentDatetime.ts"
import * as Git from "../../../workspace/Git.ts"
import * as LspDiagnostics from "../../../workspace/LspDiagnostics.ts"
import { approvalsOf } from "../approvals/defaults.ts"
import type { LearnedRules } from "../approvals/learned.ts"
import { isPermitted, isReading, permitting, type Permits, readPermits, settling } from "../approvals/permits.ts"
import { type Search, searchOf } from "../commands/search.ts"
import { agentOf, type Agents, findAgents } from "../config/agents.ts"
import { itemsOf, type Project } from "../config/items.ts"
import type { SessionMemory } from "../config/memory.ts"
import { makeFolder, type Places, sessionsFile } from "../config/places.ts"
import { compiled, network, policyFiles, readPolicies } from "../config/policies.ts"
import { chooseModel, modelLayer } from "../config/providers.ts"
import { findServers, type FoundServers, serversLayer } from "../config/servers.ts"
import type { Approvals, Settings } from "../config/settings.ts"
import { readDatabase } from "../config/storeAddress.ts"
import { type Failure, layerOrFail, orFail } from "../failure.ts"
import { pluginsOf } from "../project/brought.ts"
import { findHooks, noteAllowed, type ProgramHook } from "../project/hooks.ts"
import { instructing } from "../project/instructing.ts"
import { type Instructions, readInstructions } from "../project/instructions.ts"
import * as Demo from "./demo.ts"
import { languageServers } from "./diagnostics.ts"
import { extensionModel, freeTools, sessionLayer } from "./extensions/extensions.ts"
import type { Extensions } from "./extensions/open.ts"
import { nextModels, persistence } from "./fallback.ts"
import type { Enclosure } from "./machine/enclosure.ts"
import { environment, freeCommands, localZone } from "./machine/environment.ts"
import * as Host from "./machine/host.ts"
import * as Isolated from "./machine/isolated.ts"
import * as Outside from "./machine/outside.ts"
import { describeSandbox } from "./machine/sandboxed.ts"
import { retrievalTools } from "./retrieval.ts"
import { withFileAgents } from "./subagents.ts"
import { coderTools, teamOf } from "./team.ts"
import { makeWorkflow, type ProgramWorkflow } from "./workflows/agent.ts"

/** The command line and its settings. */
export interface Context {
  readonly places: Places
  readonly settings: Settings
  /** The trusted items of the folder. */
  readonly project: Project
  /** The memory of the project, as it was when the program began. */
  readonly memory: SessionMemory
  /** Tells why an agent can't write to its memory now. Without it, no agent can. */
  readonly memoryGuard?: Host.Guard | undefined
  readonly isDemo: boolean
  readonly isolation: Isolated.Isolation
  /** Reads the approvals for good of a chat. Default, also for `undefined`: the project's approvals. */
  readonly learned?: (() => ReadonlyArray<LearnedRules> | undefined) | undefined
  /** The mode of a chat or a served thread now. Default: the mode of the settings. */
  readonly mode?: Effect.Effect<Approvals> | undefined
  /** The model of a served thread now. Default: the model of the settings. */
  readonly model?: Effect.Effect<string> | undefined
  readonly extensions: Extensions
  /** The folders beside the working folder. */
  readonly folders: Host.Folders
  /** The ids of calls that a hook allowed, for the desk of a chat. */
  readonly allowed?: Set<string> | undefined
  /** True if a person is there while tasks run in the background. */
  readonly hasBackground?: boolean | undefined
  /** Makes further workers in the background of a chat, of the agent that `app` gives. */
  readonly workers?: ((app: () => App) => Effect.Effect<ReadonlyArray<BackgroundTasks.Worker>>) | undefined
  /** The servers that an editor hands over. */
  readonly handed?: Servers | undefined
  /** The open connections of a chat. Without them, each run connects anew. */
  readonly servers?: McpServers["Service"] | undefined
}

export type Services = NodeServices

/** Services of tools, beside files and approvals. */
type Needs =
  | HttpClient.HttpClient
  | WebReader
  | WebSearch.WebSearch
  | McpServers
  | ChatModel
  | Backend
  | Sandbox
  | ChildProcessSpawner
  | LspDiagnostics.LanguageServer
  | BackgroundTasks.BackgroundTasks
  | Enclosure
  | Scripts.Scripts

type Failures = Failure | McpError | Budget.BudgetExceeded

export type ProgramAgent = AgentFile.FileAgent<Failures, SessionServices>

/** The services that last as long as a session. */
export type SessionServices =
  | Backend
  | Sandbox
  | Processes.ProcessTable
  | LspDiagnostics.LanguageServer
  | BackgroundTasks.BackgroundTasks
  | Enclosure

/**
 * An agent with its model and files. `agent` makes it for a way to ask: `ask` asks during the run, `suspend` ends the run.
 */
export interface App {
  readonly context: Context
  readonly agents: Agents
  readonly servers: FoundServers
  readonly instructions: Instructions
  readonly hooks: ReadonlyArray<ProgramHook>
  /** The rules for calls. */
  readonly permits: Permits
  /** Files that were left out, and why. */
  readonly problems: ReadonlyArray<string>
  readonly name: string
  readonly model: string
  readonly agent: (options: {
    readonly mode: "ask" | "suspend"
    readonly output?: Schema.ConstraintCodec<unknown, unknown> | undefined
  }) => Effect.Effect<ProgramAgent, Failure>
  /** Makes workflows over the sub-agents of the program. */
  readonly workflow: ProgramWorkflow<Agent.Error<ProgramAgent>, Agent.Services<ProgramAgent>>
  readonly chatModel: Layer.Layer<ChatModel, Failure>
  /** Gives another model for the same agent. */
  readonly modelLayer: (spec: string) => Layer.Layer<ChatModel, Failure>
  /** The files, commands, processes and language servers of a session. */
  readonly files: (threadId: string) => Layer.Layer<SessionServices, Failure, Services>
}

/** Loads the network, search and the reader of pages when a run begins. */
const web = (
  search: Search,
  rules: Network.Rules
): Layer.Layer<HttpClient.HttpClient | WebReader | WebSearch.WebSearch> =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./machine/web.ts")),
      ({ layer }) => layer(search, rules)
    )
  )

/** Connects to all servers until the scope ends, for all runs of a chat. */
export const connected = Effect.fnUntraced(function* (context: Context, hasApps = false) {
  const { servers } = yield* findServers(context.places, context.project, context.handed)
  if (servers.length === 0) return context
  const services = yield* Layer.build(serversLayer(context.places, servers, undefined, hasApps))
  return { ...context, servers: ContextOf.get(services, McpServers) } satisfies Context
})

/** The skill folders of an agent. A person accepted the copies of the project and the memory. */
export const skillSources = (context: Context) =>
  Effect.map(Host.ownSkills(context), (own) => [...own, ...Host.copiedSkills(context)])

/** A memory file that was read when the program began. */
interface MemoryText {
  readonly path: string
  readonly text: string
  readonly readOnly?: boolean | undefined
}

/** The memory files of an agent. */
export const memorySources = ({ memory, places, project }: Context): ReadonlyArray<MemoryText> => [
  ...itemsOf(project, "memory").map(({ file, text }) => ({
    path: resolve(places.project, file),
    text,
    readOnly: true
  })),
  { path: join(memory.notes, "agent.md"), text: memory.text }
]

const modeOf = ({ isDemo, mode, settings }: Context): Effect.Effect<Approvals> =>
  isDemo ? Effect.succeed("yolo") : (mode ?? Effect.succeed(settings.approvals?.value ?? "ask"))

/** Tells the model its machine and folders. */
const tellPlace = (context: Context, permits: Permits, shell: string, model: string): Middleware.Middleware =>
  environment({
    folder: context.places.project,
    shell,
    model: context.model ?? Effect.succeed(model),
    sandbox: describeSandbox(context.settings),
    freeCommands:
      permits.holdsHome() || (permits.restrictsFiles && permits.containment === "unapproved")
        ? ""
        : freeCommands[permits.containment],
    folders: context.folders,
    mode: modeOf(context)
  })

/** The sessions of the user: in the data folder, or in the database of the environment. */
export const sessions = (places: Places): Layer.Layer<SessionStore, Failure, FileSystem.FileSystem> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const database = yield* readDatabase
      if (database !== undefined) return database.named(Layer.provide(SqlSessions.layer, database.client))
      yield* makeFolder(places.data)
      return layerOrFail("failed")(SqliteSessions.layer({ file: sessionsFile(places) }))
    })
  )

/** Makes the approvals of agents. In a chat the desk decides, which knows the mode; else rules decide here. */
const approvalsFor = (
  { memory, settings }: Context,
  permits: Permits,
  tools: Parameters<typeof approvalsOf>[1],
  mode: "ask" | "suspend"
) => ({
  ...approvalsOf(mode === "ask" ? "ask" : (settings.approvals?.value ?? "ask"), tools, memory.notes),
  except: (call: Middleware.PreparedCall) =>
    isReading(permits, call) ||
    (mode === "suspend" &&
      (isPermitted(permits, call) ||
        (settings.approvals?.value === "auto-edit" &&
          permits.isContained({ name: call.name, arguments: call.arguments }))))
})

/** Chooses the place of commands, by the mode and the approvals of the person. */
const isolatingFor = (context: Context, permits: Permits) =>
  Isolated.isolating({
    permits,
    isolation: context.isolation,
    mode: modeOf(context),
    learned: () => context.learned?.() ?? permits.kept,
    isAllowed: (callId) => context.allowed?.has(callId) === true
  })

/** Makes the files, commands, processes and language servers of a session. */
const filesFor =
  (context: Context, permits: Permits): App["files"] =>
  (threadId) =>
    Layer.provideMerge(
      Layer.mergeAll(
        Processes.layer({ time: "7 days", folder: Host.processesOf(context.places, threadId) }),
        languageServers(context),
        BackgroundTasks.layer(),
        sessionLayer(context.extensions.loaded)
      ),
      Host.machine(context, threadId, permits.hidden)
    )

// oxlint-disable-next-line eslint/complexity -- a default for each setting that may be missing
export const openApp = Effect.fnUntraced(function* (context: Context): Effect.fn.Return<App, Failure, Services> {
  const { isDemo, places, project, settings } = context
  const { plugins, problems: wrongPlugins } = yield* pluginsOf(context)
  const agents = yield* findAgents(places, project, plugins)
  const instructions = yield* readInstructions(places, project)
  const skills = yield* skillSources(context)
  const agentFile = yield* agentOf(agents, settings.agent?.value ?? "deep")
  const servers = yield* findServers(places, project, context.handed)
  const names = servers.servers.map(({ name }) => name)
  // The default agent has all servers. Agents of files name theirs.
  const file = agentFile.origin === "program" && agentFile.name === "deep" ? { ...agentFile, mcp: names } : agentFile
  const search = yield* searchOf(settings)
  const model = isDemo ? "demo:script" : (file.model ?? (yield* chooseModel(places, settings)))
  const policies = yield* readPolicies(policyFiles(places, project))
  const retrieval = yield* retrievalTools(places)
  const ownTools = [
    FetchUrl.make({ robots: true }),
    WebSearch.make(),
    ...Git.make(),
    CurrentDatetime.make({ zone: localZone() }),
    ...retrieval.tools
  ]
  const programTools = [...FileTools.make({ execute: { background: true } }), ...ownTools]
  const { loaded } = context.extensions
  const more = freeTools(loaded, programTools)
  const all = [...programTools, ...more.tools]
  const policy = yield* compiled(policies, all, places, yield* Host.ownFolders(context))
  const permits = yield* readPermits(context, [...all, ...coderTools])
  const isIsolating = permits.containment === "unapproved"
  const tools = [...ownTools, ...more.tools, ...(isIsolating ? Isolated.commandTools() : [])]
  const { budget, tokens } = settings
  // With --yolo nobody is asked.
  const isGuarded = !isDemo && settings.approvals?.value !== "yolo"
  const node = yield* Effect.context<Services>()
  const layerOf = (spec: string, thinking: AgentFile.AgentFile["thinking"]) =>
    isDemo
      ? Demo.model
      : (extensionModel(loaded, settings, spec, thinking) ??
        Layer.provide(modelLayer(places, settings, spec, thinking), Layer.succeedContext(node)))
  const mcp =
    context.servers === undefined
      ? Layer.provide(serversLayer(places, servers.servers), Layer.succeedContext(node))
      : Layer.succeed(McpServers, context.servers)
  const limits: ReadonlyArray<Middleware.Middleware> =
    budget === undefined && tokens === undefined
      ? []
      : [Budget.make({ cost: budget?.value, tokens: tokens?.value, onExhausted: "finalAnswer" })]
  const fs = yield* FileSystem.FileSystem
  const hookSetup = yield* findHooks(context, policy?.network ?? network)
  const hooks = [...hookSetup.hooks, ...loaded.flatMap(({ extension }) => extension.hooks ?? [])]
  const shell = yield* Host.findShell(settings)
  const parts = {
    tools,
    servers: { names, make: (some: ReadonlyArray<string>) => Mcp.make({ servers: some }) },
    documents: Documents.formats,
    memory: memorySources(context),
    skills,
    maxRounds: settings.maxTurns?.value,
    model: layerOf,
    taint: isGuarded
      ? { ...Outside.rules(programTools, servers), except: (call: Middleware.PreparedCall) => isReading(permits, call) }
      : undefined,
    middleware: [
      ...(policy?.middleware ?? []),
      ...(hooks.length === 0
        ? []
        : [Hooks.make({ hooks, cwd: places.project, onDecision: noteAllowed(context.allowed ?? new Set()) })]),
      ...(isIsolating ? isolatingFor(context, permits) : []),
      permitting(permits),
      AskUser.make(),
      instructing(instructions, context, fs),
      LspDiagnostics.make(),
      tellPlace(context, permits, shell, model),
      ...(isGuarded ? [Outside.commands(fs, places.project)] : []),
      ...loaded.flatMap(({ extension }) => extension.middleware ?? []),
      ...(settings.scripts?.value === "review" ? [CodeMode.make({ review: true })] : []),
      ...(settings.scripts?.value === true ? [CodeMode.make()] : []),
      ...persistence(isDemo ? [] : nextModels(settings, model).map((name) => layerOf(name, undefined))),
      // Behind the other models, so that it counts them and knows their prices.
      ...limits
    ]
  }
  const own =
    file.origin === "program" && file.name === "deep"
      ? yield* withFileAgents(places, file, agents.agents, (one, others) =>
          AgentFile.compile<Failures, Needs>(one, { ...parts, agents: others })
        )
      : { deep: file, agents: agents.agents, problems: [] }
  const workers = context.workers === undefined ? [] : yield* context.workers(() => app)
  const team = yield* teamOf(context, workers, own, modeOf(context), (one) =>
    AgentFile.compile<Failures, Needs>(one, { ...parts, taint: undefined, agents: own.agents })
  )
  const rule = (made: AgentFile.FileAgent<Failures, Needs>): ProgramAgent => {
    const ruled = policy === undefined ? made : Agent.provide(policy.apply(made), policy.files)
    return ruled.pipe(
      Agent.provide(web(search, policy?.network ?? network)),
      Agent.provide(mcp),
      Agent.provide(NodeScripts.layer()),
      Agent.provide(Layer.succeed(ChildProcessSpawner, ContextOf.get(node, ChildProcessSpawner)))
    )
  }
  const app: App = {
    context,
    agents,
    servers,
    instructions,
    hooks,
    permits,
    problems: [
      ...permits.problems,
      ...retrieval.problems,
      ...servers.problems,
      ...wrongPlugins,
      ...hookSetup.problems,
      ...context.extensions.problems,
      ...more.problems,
      ...agents.problems.map(({ message }) => `${message} (it is left out)`),
      ...own.problems,
      ...team.problems,
      ...instructions.problems
    ],
    name: file.name,
    model,
    agent: ({ mode, output }) =>
      orFail("usage")(
        AgentFile.compile<Failures, Needs>(own.deep, {
          ...parts,
          lead: team.middleware,
          middleware: [...parts.middleware, ...(mode === "suspend" ? [settling(permits)] : [])],
          agents: own.agents,
          output,
          approvals: approvalsFor(context, permits, all, mode)
        }).pipe(Effect.map(rule))
      ),
    workflow: makeWorkflow(settings, own, (one) => {
      const approvals = approvalsFor(context, permits, all, context.hasBackground === true ? "ask" : "suspend")
      return Effect.map(AgentFile.compile<Failures, Needs>(one, { ...parts, agents: own.agents, approvals }), rule)
    }),
    chatModel: layerOf(model, file.thinking ?? settings.thinking?.value),
    modelLayer: (spec) => layerOf(spec, file.thinking ?? settings.thinking?.value),
    files: filesFor(context, permits)
  }
  return app
})
