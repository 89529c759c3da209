/** `deepagents workflow`: lists, shows, runs and resumes saved workflows. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Workflow from "../../../code/Workflow.ts"
import type * as Agent from "../../../core/Agent.ts"
import * as AgentEvent from "../../../core/AgentEvent.ts"
import type { Decision } from "../../../core/Approval.ts"
import { fromUnknown, isObject } from "../../../core/Json.ts"
import { isModelError } from "../../../core/ModelError.ts"
import { SessionStore } from "../../../core/SessionStore.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import { exits, fail, Failure } from "../failure.ts"
import { ago, print, printJson, table, tell, write } from "../output.ts"
import { type App, type Context, openApp, sessions } from "../work/app.ts"
import { isHeld } from "../work/hold.ts"
import { lineOf, summaryOf } from "../work/workflows/tree.ts"
import * as Workflows from "../work/workflows/workflows.ts"
import { unattended } from "./run.ts"

/** Lists the saved workflows. */
export const list = Effect.fnUntraced(function* ({ places, project }: Context, asJson: boolean) {
  const { problems, workflows } = yield* Workflows.findWorkflows(places, project)
  const leftFiles = project.left
    .filter((item) => item.kind === "workflow" && item.problem === undefined)
    .map(({ file }) => file)
  if (asJson) {
    const listed = workflows.map(({ description, name, origin, path, phases }) => ({
      name,
      description,
      origin,
      path,
      phases
    }))
    return yield* printJson({ workflows: listed, problems, left: leftFiles })
  }
  yield* print(...table(workflows.map(({ description, name, origin }) => [name, origin, description])))
  for (const problem of problems) yield* tell(`! ${visible(problem)}`)
  if (leftFiles.length > 0)
    yield* tell(`Left out, as they are not trusted: ${oneLine(leftFiles.join(", "))} (deepagents trust)`)
  if (workflows.length + leftFiles.length === 0) {
    yield* tell("There is no workflow yet: save a script as .deepagents/workflows/NAME.ts (docs/workflows.md)")
  }
  return undefined
})

/** Shows a saved workflow with its script. */
export const show = Effect.fnUntraced(function* ({ places, project }: Context, name: string) {
  const { description, origin, path, phases, script } = yield* Workflows.findWorkflow(places, project, name)
  return yield* print(
    ...table([
      ["name", name],
      ["description", description],
      ["phases", phases.join(", ")],
      [origin, path]
    ]),
    "",
    visible(script.trimEnd())
  )
})

/** The failure of a run, with the steps that continue it. */
const shape = (threadId: string) => (error: { readonly message: string }) => {
  if (error instanceof Failure) return error
  const how = `Go on: deepagents workflow resume ${threadId}`
  if (error instanceof Workflow.WorkflowStopped) {
    const more = error.reason === "Limit" ? " --agents N" : error.reason === "Budget" ? " --budget N" : ""
    const edit = `with a corrected script: deepagents workflow run NAME --session ${threadId}`
    const next = error.reason === "Script" ? `Go on ${edit}` : `${how}${more}`
    const lines = error.message.split("\n").slice(0, -1)
    return new Failure({ exit: "unfinished", message: [...lines, next].map(visible).join("\n") })
  }
  return new Failure({ exit: isModelError(error) ? "noModel" : "failed", message: `${visible(error.message)}\n${how}` })
}

interface RunOptions {
  readonly json: boolean
}

/** Runs an input on a thread, prints its progress and its value, and fails with the code of another end. */
const perform = Effect.fnUntraced(function* (
  app: App,
  stored: Pick<Workflows.StoredWorkflow, "name" | "threadId">,
  input: Agent.Input,
  { json }: RunOptions
) {
  const store = yield* SessionStore
  const { threadId } = stored
  const approver = unattended(app.context)
  for (const problem of app.problems) yield* tell(`! ${visible(problem)}`)
  let summary = ""
  const run = Workflows.runInput(app, store, stored, input, (event, { progress }) => {
    summary = summaryOf(progress)
    if (json) return Effect.orDie(write(`${JSON.stringify(AgentEvent.encode(event))}\n`))
    const line = lineOf(event, progress)
    return line === undefined ? Effect.void : tell(line)
  }).pipe((work) => (approver === undefined ? work : Effect.provide(work, approver)))
  const result = yield* run.pipe(
    Effect.mapError(shape(threadId)),
    Effect.tapError(({ exit, message }) =>
      json
        ? write(`${JSON.stringify({ _tag: "Result", exitCode: exits[exit], threadId, error: message })}\n`)
        : Effect.void
    ),
    Effect.onInterrupt(() => tell(`\nInterrupted. It goes on by: deepagents workflow resume ${threadId}`))
  )
  const { output, pending, stopReason, usage } = result
  const isWaiting = stopReason === "suspended"
  const value = isObject(output) ? fromUnknown(output["value"]) : null
  if (json) {
    const exitCode = exits[isWaiting ? "waiting" : "done"]
    yield* write(`${JSON.stringify({ _tag: "Result", exitCode, threadId, stopReason, usage, value, pending })}\n`)
  } else if (!isWaiting) {
    yield* print(visible(Workflows.wordsOf(value)))
    yield* tell(`${summary} (${threadId})`)
  }
  if (!isWaiting) return undefined
  const waiting = pending.map(({ description, id }) => `  ${id.slice(0, 8)}  ${oneLine(description).slice(0, 160)}`)
  return yield* fail(
    "waiting",
    [
      "The workflow waits for decisions, and is kept:",
      ...waiting,
      "Decide: deepagents inbox approve ID (reject, answer); the other agents have gone on meanwhile"
    ].join("\n")
  )
})

/** Runs a saved workflow. On the thread of an earlier run it finds all that was done there. */
export const run = Effect.fnUntraced(
  function* (
    context: Context,
    name: string,
    options: RunOptions & {
      readonly words: ReadonlyArray<string>
      readonly agents: number | undefined
      readonly session: string | undefined
    }
  ) {
    const { script } = yield* Workflows.findWorkflow(context.places, context.project, name)
    const app = yield* openApp(context)
    const store = yield* SessionStore
    const before = options.session === undefined ? undefined : yield* Workflows.findStored(store, options.session)
    const threadId = before?.threadId ?? (yield* Workflows.createThread(store, app, name))
    const { agents, words } = options
    const limits = agents === undefined ? {} : { limits: { agents } }
    const input = app.workflow.input({ script, args: Workflows.readArgs(words), ...limits })
    return yield* perform(app, { name, threadId }, input, options)
  },
  (work, { places }) => Effect.provide(work, sessions(places))
)

/** Goes on with a workflow that was cut off, stopped, or waits. */
export const resume = Effect.fnUntraced(
  function* (
    context: Context,
    id: string,
    options: RunOptions & {
      readonly agents?: number | undefined
      readonly decisions?: ReadonlyArray<Decision> | undefined
    }
  ) {
    const store = yield* SessionStore
    const record = yield* Workflows.findStored(store, id)
    if (record.outcome === "completed") {
      const command = `deepagents workflow run ${record.name} --session ${record.threadId}`
      return yield* fail("usage", `It is completed. Run its script as it is now, and keep what was done: ${command}`)
    }
    const app = yield* openApp(context)
    const input = yield* Workflows.inputToGoOn(store, app, record, options)
    return yield* perform(app, record, input, options)
  },
  (work, { places }) => Effect.provide(work, sessions(places))
)

/** Lists the workflows of this folder that ran, or reports one. */
export const status = Effect.fnUntraced(
  function* ({ places }: Context, id: string | undefined, asJson: boolean) {
    const store = yield* SessionStore
    const records =
      id === undefined ? yield* Workflows.listStored(store, places) : [yield* Workflows.findStored(store, id)]
    const all = yield* Effect.forEach(records, (one) =>
      Effect.map(one.outcome === "open" ? isHeld(places, one.threadId) : Effect.succeed(false), (isAtWork) => ({
        ...one,
        outcome: one.outcome !== "open" ? one.outcome : isAtWork ? "at work" : "cut off"
      }))
    )
    if (asJson) return yield* printJson(all)
    const now = yield* Clock.currentTimeMillis
    if (all.length === 0) return yield* tell("No workflow was run in this folder yet: deepagents workflow run NAME")
    yield* print(
      ...table(
        all.map(({ name, outcome, report, threadId, updatedAt }) => [
          threadId,
          name,
          outcome,
          ago(now - updatedAt),
          cut(oneLine(report.split("\n")[0] ?? ""), 200)
        ])
      )
    )
    if (id !== undefined) yield* print(...all.flatMap(({ report }) => report.split("\n").slice(1).map(visible)))
    const open = all.find(({ outcome }) => outcome !== "completed" && outcome !== "at work")
    return open === undefined ? undefined : yield* tell(`(deepagents workflow resume ${open.threadId} goes on with it)`)
  },
  (work, { places }) => Effect.provide(work, sessions(places))
)
