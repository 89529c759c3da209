/** The workflows of the program: saved scripts over agents, each with a thread of its own. */
import { homedir } from "node:os"
import { basename, join, resolve } from "node:path"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Workflow from "../../../../code/Workflow.ts"
import * as Agent from "../../../../core/Agent.ts"
import type { AgentEvent } from "../../../../core/AgentEvent.ts"
import type { Decision } from "../../../../core/Approval.ts"
import type { Backend } from "../../../../core/Backend.ts"
import * as Checkpoint from "../../../../core/Checkpoint.ts"
import { Journal } from "../../../../core/Journal.ts"
import { Json } from "../../../../core/Json.ts"
import * as Message from "../../../../core/Message.ts"
import type { Service, Thread } from "../../../../core/SessionStore.ts"
import { loadThread, makeJournal } from "../../../../sessions/journal.ts"
import { valueAt } from "../../../../support/json/valueAt.ts"
import { suggestion } from "../../../../support/text/near.ts"
import { cut } from "../../../../support/text/text.ts"
import { itemsOf, type Project } from "../../config/items.ts"
import type { Places } from "../../config/places.ts"
import { fail, orFail } from "../../failure.ts"
import { readSmall } from "../../project/folders.ts"
import type { App } from "../app.ts"
import { hold } from "../hold.ts"
import * as Threads from "../threads.ts"
import { summaryOf, treeOf } from "./tree.ts"

/** A saved workflow, of a trusted project or of the user. */
export type SavedWorkflow = Workflow.SavedWorkflow & { readonly origin: "project" | "user" }

/** The most bytes of a file of the user, and the most files of a folder. */
const limits = { bytes: 256 * 1024, files: 200 } as const

const extension = /\.m?[jt]s$/

const filesOf = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), (): ReadonlyArray<string> => [])
  const files = names.filter((name) => extension.test(name) && !name.endsWith(".d.ts")).toSorted()
  return yield* Effect.forEach(files.slice(0, limits.files), (name) => {
    const path = join(folder, name)
    return Effect.map(readSmall(path, limits.bytes), (outcome = { text: "" }) => ({
      path,
      origin: "user" as const,
      ...outcome
    }))
  })
})

/**
 * Finds the saved workflows of the user and of a trusted project, without running them. A workflow of the project hides the
 * user's workflow of the same name.
 */
export const findWorkflows = Effect.fnUntraced(function* (places: Places, project: Project) {
  // The last item is of the innermost folder, and of the program's own.
  const ofProject = itemsOf(project, "workflow")
    .toReversed()
    .map(({ file, text }) => ({ path: resolve(places.project, file), origin: "project" as const, text }))
  const folders = [join(places.config, "workflows"), join(homedir(), ".claude", "workflows")]
  const files = [...ofProject, ...(yield* Effect.forEach(folders, filesOf)).flat()]
  const workflows = new Map<string, SavedWorkflow>()
  const problems = project.left.flatMap(({ file, kind, problem }) =>
    kind === "workflow" && problem !== undefined ? [`${resolve(places.project, file)}: ${problem}`] : []
  )
  for (const { origin, path, ...outcome } of files) {
    const parsed =
      "problem" in outcome ? Result.fail({ path, problem: outcome.problem }) : Workflow.parse(outcome.text, path)
    if (Result.isFailure(parsed)) problems.push(`${path}: ${parsed.failure.problem}`)
    else if (!workflows.has(parsed.success.name)) workflows.set(parsed.success.name, { ...parsed.success, origin })
  }
  return { workflows: [...workflows.values()], problems }
})

/** Finds a workflow by its name. */
export const findWorkflow = Effect.fnUntraced(function* (places: Places, project: Project, name: string) {
  const { problems, workflows } = yield* findWorkflows(places, project)
  const workflow = workflows.find((one) => one.name === name)
  if (workflow !== undefined) return workflow
  const broken = problems.find((problem) => basename(problem.split(": ")[0] ?? "").replace(extension, "") === name)
  if (broken !== undefined) return yield* fail("usage", broken)
  const names = workflows.map((one) => one.name)
  const isLeft = project.left.some((item) => item.kind === "workflow")
  const more =
    names.length > 0
      ? suggestion(name, names)
      : isLeft
        ? "The folder has some that are not trusted: deepagents trust"
        : "Save one as .deepagents/workflows/NAME.ts"
  return yield* fail("usage", `There is no workflow ${JSON.stringify(name)}. ${more}`)
})

const jsonIn = Schema.decodeUnknownOption(Schema.fromJsonString(Json))

/** Reads the value of `args`: one word that is JSON, or the list of the words. */
export const readArgs = (words: ReadonlyArray<string>): Json => {
  const [only] = words
  if (only === undefined) return null
  const value = words.length === 1 ? jsonIn(only) : Option.none()
  return Option.isSome(value) ? value.value : [...words]
}

/** Reads the value of `args` from one line: JSON, or the list of its words. */
export const readText = (text: string): Json =>
  Option.getOrElse(jsonIn(text), () => readArgs(text.split(/\s+/).filter((word) => word !== "")))

// ---- Threads

const textAt = ({ metadata }: Thread, key: string): string => {
  const value = valueAt(metadata, key)
  return typeof value === "string" ? value : ""
}

/** The end of the last input on the thread of a workflow; `open` while it works, or if it was cut off. */
export type Outcome = "open" | "completed" | "unfinished" | "waiting"

/** A workflow on its thread. */
export interface StoredWorkflow {
  readonly threadId: string
  readonly name: string
  readonly folder: string
  /** The session that it belongs to, if a person started it in a chat. */
  readonly session: string
  readonly outcome: Outcome
  /** The last report of its progress: a line, and the tree below it. */
  readonly report: string
  readonly updatedAt: number
}

const outcomes: ReadonlyArray<Outcome> = ["open", "completed", "unfinished", "waiting"]

/** Reads the thread of a workflow; `undefined` for other threads. */
export const storedOf = (thread: Thread): StoredWorkflow | undefined => {
  const name = textAt(thread, "workflow")
  const outcome = outcomes.find((one) => one === textAt(thread, "outcome"))
  return name === "" || outcome === undefined
    ? undefined
    : {
        threadId: thread.threadId,
        name,
        folder: textAt(thread, "workflowOf"),
        session: textAt(thread, "session"),
        outcome,
        report: textAt(thread, "report"),
        updatedAt: thread.updatedAt
      }
}

/** Lists the workflows that were started in a folder, the last one first. */
export const listStored = Effect.fnUntraced(function* (store: Service, { project }: Places) {
  const { items } = yield* orFail("failed")(store.list({ where: { workflowOf: project }, limit: 100 }))
  return items.flatMap((thread) => storedOf(thread) ?? [])
})

/** Finds the thread of a workflow by its id, or by a unique beginning or end of it. */
export const findStored = Effect.fnUntraced(function* (store: Service, id: string) {
  const record = storedOf(yield* Threads.find(store, id))
  return record ?? (yield* fail("usage", `${id} is no workflow; deepagents workflow status lists them`))
})

/** Makes the thread of a workflow. Lists of sessions leave it out. */
export const createThread = Effect.fnUntraced(function* (
  store: Service,
  app: Pick<App, "context" | "model">,
  name: string,
  session = ""
) {
  const threadId = yield* Threads.newId
  const metadata = {
    title: `workflow ${name}`,
    workflow: name,
    workflowOf: app.context.places.project,
    model: app.model,
    session,
    outcome: "open",
    report: ""
  }
  yield* orFail("failed")(store.create({ threadId, metadata }))
  return threadId
})

/** Notes the state of a workflow with its thread. A store that refuses it stops nothing. */
const note = (store: Service, threadId: string, state: { readonly outcome: Outcome; readonly report: string }) =>
  Effect.ignore(
    Effect.flatMap(store.info(threadId), ({ metadata }) =>
      store.describe(threadId, { ...metadata, outcome: state.outcome, report: cut(state.report, 4_000) })
    )
  )

const lastInput = Schema.decodeUnknownOption(Schema.fromJsonString(Workflow.Input))

/**
 * The input with which a workflow goes on: its run, if that one was cut off or waits for decisions; else its last input
 * again, which finds all that it did. Other limits are another input.
 */
export const inputToGoOn = Effect.fnUntraced(function* (
  store: Service,
  app: App,
  { name, threadId }: Pick<StoredWorkflow, "name" | "threadId">,
  more: { readonly decisions?: ReadonlyArray<Decision> | undefined; readonly agents?: number | undefined } = {}
) {
  const { checkpoint, ended } = yield* orFail("failed")(loadThread(store, threadId))
  const isOpen = ended === undefined || ended === "suspended"
  if (isOpen && more.agents === undefined) return Checkpoint.resume(undefined, { decisions: more.decisions ?? [] })
  const inputMessage = checkpoint?.messages.findLast((message) => message.role === "human")
  const input = inputMessage === undefined ? Option.none() : lastInput(Message.text(inputMessage))
  if (Option.isNone(input)) {
    return yield* fail("failed", `${threadId} has no input to go on with: deepagents workflow run ${name}`)
  }
  const { limits: before, ...rest } = input.value
  const limits = more.agents === undefined ? before : { ...before, agents: more.agents }
  return app.workflow.input(limits === undefined ? rest : { ...rest, limits })
})

/** The progress of a workflow that is at work in this process. */
export interface Live {
  readonly threadId: string
  readonly name: string
  readonly startedAt: number
  progress: Workflow.Progress
}

/** Notes that somebody stopped a workflow. */
export const noteStopped = (store: Service, live: Live | undefined): Effect.Effect<void> =>
  live === undefined
    ? Effect.void
    : note(store, live.threadId, { outcome: "unfinished", report: reportOf(live.progress) })

const reportOf = (progress: Workflow.Progress): string => [summaryOf(progress), ...treeOf(progress)].join("\n")

/** How often the report of a workflow is stored while it works, in milliseconds. */
const reportEvery = 2_000

/**
 * Runs an input on the thread of a workflow to its end, and notes its outcome. Nobody else works on the thread
 * meanwhile. A workflow that stops fails, and goes on by `deepagents workflow resume`. `record` keeps the files that it
 * changes.
 */
export const runInput = <E, R>(
  app: App,
  store: Service,
  { name, threadId }: Pick<StoredWorkflow, "name" | "threadId">,
  input: Agent.Input,
  onEvent: (event: AgentEvent, live: Live) => Effect.Effect<void, E, R>,
  record: <A, E2, R2>(work: Effect.Effect<A, E2, R2>) => Effect.Effect<A, E2, R2 | Backend> = (work) => work
) =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* hold(app.context.places, threadId)
      const startedAt = yield* Clock.currentTimeMillis
      const live: Live = { threadId, name, startedAt, progress: Workflow.noProgress }
      let reportedAt = 0
      const report = (outcome: Outcome) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          reportedAt = now
          return note(store, threadId, {
            outcome,
            report: [summaryOf(live.progress), ...treeOf(live.progress)].join("\n")
          })
        })
      const work = Effect.gen(function* () {
        yield* report("open")
        const agent = yield* app.workflow.agent
        const handle = yield* Agent.start(agent, input, { threadId })
        const watching = yield* Effect.forkScoped(
          Stream.runForEach(
            handle.events,
            Effect.fnUntraced(function* (event) {
              live.progress = Workflow.advance(live.progress, event)
              yield* onEvent(event, live)
              const now = yield* Clock.currentTimeMillis
              if (now - reportedAt > reportEvery) yield* report("open")
            })
          )
        )
        const result = yield* Effect.raceFirst(handle.await, Effect.andThen(Fiber.join(watching), Effect.never))
        yield* Fiber.join(watching)
        return result
      })
      return yield* Effect.onExit(record(work), (exit) =>
        // A workflow that is interrupted is cut off: it resumes as after a crash.
        Exit.isSuccess(exit)
          ? report(exit.value.stopReason === "suspended" ? "waiting" : "completed")
          : report(Cause.hasInterruptsOnly(exit.cause) ? "open" : "unfinished")
      )
    })
  ).pipe(
    Effect.provide([app.chatModel, app.files(threadId)]),
    // Only whole turns are kept: of a thousand agents, parts would be most of the work.
    Effect.provideService(Journal, makeJournal(store, {}))
  )

/** The words of a result: text as it is, data as JSON. */
export const wordsOf = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))
