/** Workflows in the background of a chat, each a task: started by the model, by a person, or again after a crash. */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type { Input } from "../../../../core/Agent.ts"
import { fromUnknown, isObject, Json } from "../../../../core/Json.ts"
import { CurrentRun } from "../../../../core/Run.ts"
import type { Service } from "../../../../core/SessionStore.ts"
import { ToolContext } from "../../../../core/ToolContext.ts"
import type { Usage } from "../../../../core/Usage.ts"
import { type Ask, type TaskEnd, type Session, TaskError, type Worker } from "../../../../middleware/BackgroundTasks.ts"
import type * as FileCheckpoints from "../../../../sessions/FileCheckpoints.ts"
import { recorded } from "../../chat/files/recorded.ts"
import type { App, Context as AppContext, Services } from "../app.ts"
import { agentName, language } from "./agent.ts"
import * as Workflows from "./workflows.ts"

/** The store of a chat, and its workflows by their threads. */
export interface Background {
  readonly store: Service
  /** The files that workflows change, once they are kept. */
  checkpoints: FileCheckpoints.Service | undefined
  readonly live: Map<string, Workflows.Live>
}

/** The arguments of the tool: a saved workflow, or a script. */
const parameters = {
  name: Schema.optionalKey(Schema.String.annotate({ description: "The name of a saved workflow" })),
  args: Schema.optionalKey(Json.annotate({ description: "The value of args" })),
  agents: Schema.optionalKey(Schema.Int.annotate({ description: "The most agents that it may ask" }))
}

const script = Schema.optionalKey(
  Schema.String.annotate({ description: "The program, in place of a name: TypeScript, the body of an async function" })
)

const Task = Schema.fromJsonString(Schema.Struct({ ...parameters, script }))
type Task = typeof Task.Type

const Kept = Schema.Struct({ threadId: Schema.String, name: Schema.String })

const refuse = (problem: string) => Effect.fail(new TaskError({ reason: { _tag: "NotPossible", problem } }))

const toTaskError = ({ message }: { readonly message: string }) =>
  new TaskError({ reason: { _tag: "Unavailable", problem: message } })

const readTask = (text: string): Effect.Effect<Task, TaskError> =>
  Effect.mapError(
    Schema.decodeUnknownEffect(Task)(text),
    () =>
      new TaskError({
        reason: { _tag: "NotPossible", problem: 'A workflow takes JSON: {"name": …} or {"script": …}, and "args"' }
      })
  )

/** The script of a task, and its name. */
const scriptOf = Effect.fnUntraced(function* (app: App, task: Task) {
  const { places, project } = app.context
  if (task.script !== undefined) return { name: "script", script: task.script }
  if (task.name === undefined) return yield* refuse("Give the name of a saved workflow, or a script.")
  return yield* Workflows.findWorkflow(places, project, task.name).pipe(Effect.mapError(toTaskError))
})

const endingOf = ({ output, pending, stopReason }: Effect.Success<ReturnType<typeof Workflows.runInput>>): TaskEnd =>
  stopReason === "suspended"
    ? { status: "suspended", text: pending.map(({ description }) => `- ${description}`).join("\n"), pending }
    : { status: "completed", text: Workflows.wordsOf(isObject(output) ? fromUnknown(output["value"]) : null) }

/** One workflow as a task. Its place is its thread: another process goes on with it. */
const makeSession = (
  app: () => App,
  background: Background,
  services: Context.Context<Services>,
  begun: { readonly session: string } | typeof Kept.Type
): Session => {
  const { live, store } = background
  let record = "threadId" in begun ? begun : undefined
  let usage: Usage | undefined
  let isCancelled = false
  // An edited script takes the place of the running one, which ends first.
  const turn = Semaphore.makeUnsafe(1)

  const run = (own: typeof Kept.Type, input: Input, goesOn: boolean) =>
    Effect.suspend(() =>
      Workflows.runInput(
        app(),
        store,
        own,
        input,
        (_event, now) =>
          Effect.sync(() => {
            usage = now.progress.usage
            live.set(own.threadId, now)
          }),
        recorded({
          checkpoints: background.checkpoints,
          store,
          threadId: own.threadId,
          title: `workflow ${own.name}`,
          goesOn,
          warn: (message) => Effect.runFork(Effect.logWarning(message))
        })
      )
    ).pipe(
      Effect.map(endingOf),
      Effect.catch((error) => Effect.succeed<TaskEnd>({ status: "failed", text: error.message })),
      // A person stopped it: it does not go on by itself.
      Effect.onInterrupt(() =>
        Effect.suspend(() => (isCancelled ? Workflows.noteStopped(store, live.get(own.threadId)) : Effect.void))
      ),
      turn.withPermits(1),
      Effect.provideContext(services)
    )

  /** Gives a thread another input; a new thread for the first one. */
  const give = Effect.fnUntraced(function* (text: string) {
    const task = yield* readTask(text)
    const { name, script } = yield* scriptOf(app(), task)
    const session = "session" in begun ? begun.session : ""
    const create = Effect.mapError(Workflows.createThread(store, app(), name, session), toTaskError)
    const own = record ?? { threadId: yield* create, name }
    record = own
    const { agents, args = null } = task
    return run(
      own,
      app().workflow.input({ script, args, ...(agents === undefined ? {} : { limits: { agents } }) }),
      false
    )
  })

  const goOn = Effect.fnUntraced(function* (ask: Extract<Ask, { readonly _tag: "Decisions" | "Resume" }>) {
    if (record === undefined) return yield* refuse("It has not begun.")
    const decisions = ask._tag === "Decisions" ? ask.decisions : []
    const input = Workflows.inputToGoOn(store, app(), record, { decisions })
    return run(record, yield* Effect.mapError(input, toTaskError), true)
  })

  return {
    begin: (ask) =>
      (ask._tag === "Start" ? give(ask.description) : ask._tag === "Message" ? give(ask.text) : goOn(ask)).pipe(
        Effect.provideContext(services)
      ),
    steer: () => Effect.succeed("begin"),
    cancel: Effect.sync(() => {
      isCancelled = true
    }),
    usage: () => usage,
    keepsWork: true,
    kept: () => record,
    // Its own limits end it.
    maxDuration: Duration.infinity
  }
}

/** Takes the services that are there now, such as the desk of the person. A workflow outlives the run that starts it, so services of the run are left out. */
const servicesNow = (node: Context.Context<Services>) =>
  Effect.map(Effect.context<never>(), (now) =>
    Context.merge(node, now).pipe(Context.omit(ToolContext), Context.add(CurrentRun, undefined))
  )

/** Opens a workflow that a person starts. It goes on with the session when that is resumed. */
export const openByPerson = (
  app: () => App,
  background: Background,
  node: Context.Context<Services>,
  session: string
) => Effect.map(servicesNow(node), (services) => makeSession(app, background, services, { session }))

/** Opens a workflow that another process began. */
export const reopen = (
  app: () => App,
  background: Background,
  node: Context.Context<Services>,
  kept: typeof Kept.Type
) => Effect.map(servicesNow(node), (services) => makeSession(app, background, services, kept))

const makeWorker = (
  app: () => App,
  background: Background,
  node: Context.Context<Services>,
  { saved, withScripts }: { readonly saved: ReadonlyArray<Workflows.SavedWorkflow>; readonly withScripts: boolean }
): Worker => {
  const names = saved.map(({ description, name }) => `- ${name}: ${description}`)
  return {
    name: agentName,
    description: [
      "Runs a workflow: a program over many agents, for work of more parts than you can hold in mind. What it did stays done: update_task, with JSON of the same arguments or of an edited script, goes on with it.",
      ...(names.length === 0 ? [] : ["Saved workflows:", ...names]),
      ...(withScripts ? [language] : [])
    ].join("\n"),
    parameters: withScripts ? { ...parameters, script } : parameters,
    open: openByPerson(app, background, node, ""),
    reopen: (kept) =>
      Option.match(Schema.decodeUnknownOption(Kept)(kept), {
        onNone: () => Effect.undefined,
        onSome: (own) => reopen(app, background, node, own)
      })
  }
}

/**
 * Makes the worker of the model's tool `workflow`, for a chat. Without the setting `scripts` it runs saved workflows
 * alone, and is not there if none is saved.
 */
export const workersOf = Effect.fnUntraced(function* (
  { places, project, settings }: Pick<AppContext, "places" | "project" | "settings">,
  background: Background,
  app: () => App,
  node: Context.Context<Services>
) {
  const { workflows: saved } = yield* Workflows.findWorkflows(places, project)
  const withScripts = settings.scripts !== undefined && settings.scripts.value !== false
  return saved.length === 0 && !withScripts ? [] : [makeWorker(app, background, node, { saved, withScripts })]
})
