/** `deepagents run`: one prompt, its answer on the standard output, and an exit code for the end of the run. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as JsonSchema from "effect/JsonSchema"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaRepresentation from "effect/SchemaRepresentation"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Agent from "../../../core/Agent.ts"
import { AgentError } from "../../../core/AgentError.ts"
import * as AgentEvent from "../../../core/AgentEvent.ts"
import type { AgentResult } from "../../../core/AgentResult.ts"
import * as Approval from "../../../core/Approval.ts"
import * as Checkpoint from "../../../core/Checkpoint.ts"
import { isModelError } from "../../../core/ModelError.ts"
import { SessionStore } from "../../../core/SessionStore.ts"
import * as Sessions from "../../../sessions/SessionStore.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import * as Printer from "../../../view/Printer.ts"
import { recorded } from "../chat/files/recorded.ts"
import { type Change, pendingChanges, settleChanges } from "../config/memory.ts"
import { type Exit, exitOf, exits, fail, Failure, orFail } from "../failure.ts"
import { print, tell, write, writeAll } from "../output.ts"
import { endSession } from "../project/hooks.ts"
import { type App, type Context, openApp, sessions } from "../work/app.ts"
import { openCheckpoints } from "../work/checkpoints.ts"
import { hold } from "../work/hold.ts"
import type { Guard } from "../work/machine/host.ts"
import { readPrompt } from "../work/prompt.ts"
import { outsideOf } from "../work/remembering.ts"
import * as Threads from "../work/threads.ts"

export interface RunOptions {
  readonly words: ReadonlyArray<string>
  readonly files: ReadonlyArray<string>
  readonly json: boolean
  readonly outputSchema: string | undefined
  /** True if the agent may write to its memory. */
  readonly remembers: boolean
  /** The thread to continue; a new one by default. */
  readonly thread: string | undefined
}

/** Reads a JSON Schema file. Unsupported parts fail with their place. */
const readSchema = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* orFail("usage", "--output-schema: ")(fs.readFileString(file))
  const schema = Result.try({
    try: () => {
      const document: JsonSchema.JsonSchema = JSON.parse(text)
      const { ast } = SchemaRepresentation.fromJsonSchemaDocument(JsonSchema.fromSchemaDraft2020_12(document), {
        patterns: "apply"
      })
      return Schema.make<Schema.Codec<unknown>>(ast)
    },
    catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
  })
  return Result.isSuccess(schema)
    ? schema.success
    : yield* fail("usage", `--output-schema: ${file} can't be used: ${schema.failure}`)
})

const forPersons = "Only a person may decide on this call, and nobody is there to ask."
const forDemo = "The demo changes nothing here without a person who approves it."

/** Decides requests by the settings, without a person. */
export const unattended = ({ isDemo, settings }: Context): Layer.Layer<Approval.Approvals> | undefined => {
  const mode = settings.approvals?.value
  const decide =
    mode === "yolo"
      ? (request: Approval.Request) =>
          request.byPerson === true ? Approval.reject(request, forPersons) : Approval.approve(request)
      : mode === "plan"
        ? (request: Approval.Request) =>
            Approval.reject(request, "Nothing is changed while a plan is made. Say what you would do instead.")
        : isDemo
          ? (request: Approval.Request) => Approval.reject(request, forDemo)
          : undefined
  return decide === undefined
    ? undefined
    : Layer.succeed(Approval.Approvals, { decide: (request) => Effect.succeed(decide(request)) })
}

const shape = (error: { readonly message: string }): Failure => {
  if (error instanceof Failure) return error
  const exit: Exit =
    isModelError(error) && (error.reason._tag === "Authentication" || error.reason._tag === "Permission")
      ? "noModel"
      : error instanceof AgentError && error.reason._tag === "InvalidOutput"
        ? "output"
        : error instanceof AgentError && (error.reason._tag === "InvalidAgent" || error.reason._tag === "InvalidInput")
          ? "usage"
          : "failed"
  const keys = "deepagents models shows the origin of the key; deepagents models login keeps another key."
  return new Failure({ exit, message: exit === "noModel" ? `${error.message}\n${keys}` : error.message })
}

const why: { readonly [E in Exit]?: string } = {
  rounds: "The run reached its limit of rounds (--max-turns); this answer was forced.",
  budget: "The run reached its limit (--budget, --tokens); this answer was forced.",
  refused: "The model, or a filter of its provider, refused.",
  cut: "The model's limit of output cut the answer."
}

const asText = (result: AgentResult<unknown>, isStructured: boolean): string =>
  isStructured ? JSON.stringify(result.output) : visible(result.text)

/** The end of a run with a result, and its message. */
interface RunEnd {
  readonly exit: Exit
  readonly message: string
}

/** Fails with the exit code of the end. With output as events, an early failure is the last line. */
const concluded =
  (json: boolean) =>
  <R>(work: Effect.Effect<RunEnd, Failure, R>) =>
    work.pipe(
      Effect.tapError(({ exit, message }) =>
        json && exit !== "closed"
          ? Effect.ignore(write(`${JSON.stringify({ _tag: "Result", exitCode: exits[exit], error: message })}\n`))
          : Effect.void
      ),
      Effect.flatMap(({ exit, message }) => (exit === "done" ? Effect.void : fail(exit, message)))
    )

const pathsOf = (changes: ReadonlyArray<Change>): string => changes.map(({ path }) => path).join(", ")

/**
 * Keeps the agent's changes of its memory after the run, unless the session has text from outside. A file with changes
 * from before the run waits for a person: nobody has decided on those.
 */
const remember = Effect.fnUntraced(function* (
  places: Context["places"],
  threadId: string,
  earlier: ReadonlyArray<Change>
) {
  const earlierKeys = new Set(earlier.map((change) => JSON.stringify(change)))
  const changes = (yield* pendingChanges(places)).filter((change) => !earlierKeys.has(JSON.stringify(change)))
  if (changes.length === 0) return
  const outside = yield* outsideOf(yield* SessionStore, threadId)
  const leave = (some: ReadonlyArray<Change>, why: string) =>
    tell(oneLine(`Not remembered: ${pathsOf(some)}. ${why}; decide in a chat: /memory`))
  if (outside.length > 0) {
    return yield* leave(changes, `The session has text from outside (${outside.join(", ")})`)
  }
  const waiting = new Set(earlier.map(({ path }) => path))
  const mixed = changes.filter(({ path }) => waiting.has(path))
  const fresh = changes.filter(({ path }) => !waiting.has(path))
  if (mixed.length > 0) yield* leave(mixed, "It has changes from before this run")
  if (fresh.length === 0) return
  yield* settleChanges(places, fresh, true)
  yield* tell(oneLine(`Remembered: ${pathsOf(fresh)}. It counts from the next session on.`))
})

const unremembered = "memory can't be changed in a run; the user allows it with --remember"
const planned = "nothing is changed in plan mode"

/** Allows an agent to write to its memory, if the person said so. */
const guardOf =
  ({ settings }: Context, { remembers }: RunOptions): Guard =>
  () =>
    settings.approvals?.value === "plan" ? planned : remembers ? undefined : unremembered

/** Runs the input on a thread, and writes the output. Without a title, the turn of the thread goes on. */
const perform = Effect.fnUntraced(function* (
  app: App,
  input: Agent.Input,
  { threadId, title }: { readonly threadId: string; readonly title?: string },
  options: RunOptions
) {
  const stdio = yield* Stdio.Stdio
  const isLooking = (yield* stdio.stderrIsTerminal) && !options.json
  const output = options.outputSchema === undefined ? undefined : yield* readSchema(options.outputSchema)
  const approver = unattended(app.context)
  for (const problem of app.problems) yield* tell(`! ${visible(problem)}`)
  const agent = yield* app.agent({ mode: approver === undefined ? "suspend" : "ask", output })
  const earlier = options.remembers ? yield* pendingChanges(app.context.places) : []
  const store = yield* SessionStore
  const warnings: Array<string> = []
  const warn = (message: string): void => void warnings.push(`! ${visible(message)}`)
  const checkpoints = yield* openCheckpoints(app.context, (message) =>
    tell(`! Files are not kept for /undo: ${visible(message)}`)
  )
  const record = recorded({ checkpoints, store, threadId, title: title ?? "", goesOn: title === undefined, warn })
  const journal = Sessions.journalWith({ busy: "refuse", parts: true })
  const result = yield* Effect.scoped(
    Effect.gen(function* () {
      yield* hold(app.context.places, threadId)
      const handle = yield* Agent.start(agent, input, { threadId })
      const printing = options.json
        ? writeAll(Stream.map(handle.events, (event) => `${JSON.stringify(AgentEvent.encode(event))}\n`))
        : Stream.runForEach(handle.events, (event) => {
            // People who wait for the run read the reason for the delay, and the model that answers, in a log too.
            const isTold = event._tag === "Warning" && (event.code === "model-retry" || event.code === "model-fallback")
            const line = isLooking || isTold ? Printer.line(event) : undefined
            return line === undefined ? Effect.void : tell(line)
          })
      const watching = yield* Effect.forkScoped(printing)
      const ended = yield* Effect.raceFirst(handle.await, Effect.andThen(Fiber.join(watching), Effect.never))
      yield* Fiber.join(watching)
      return ended
    }).pipe(record)
  ).pipe(
    Effect.mapError(shape),
    Effect.ensuring(endSession(app.hooks, threadId)),
    Effect.provide([app.chatModel, app.files(threadId), journal]),
    (work) => (approver === undefined ? work : Effect.provide(work, approver)),
    Effect.onInterrupt(() => tell(`\nInterrupted. The session is kept: deepagents resume ${threadId}`))
  )
  if (warnings.length > 0) yield* tell(...warnings)
  if (options.remembers) yield* remember(app.context.places, threadId, earlier)
  const exit = exitOf(result.stopReason)
  if (options.json) {
    const { output: value, pending, rounds, stopReason, text, usage } = result
    const last = { _tag: "Result", exitCode: exits[exit], threadId, stopReason, rounds, usage, text, pending }
    yield* write(`${JSON.stringify(output === undefined ? last : { ...last, output: value })}\n`)
  } else if (exit !== "waiting") {
    yield* print(asText(result, output !== undefined).trimEnd())
  }
  if (exit === "done" && isLooking) yield* tell(`(deepagents resume ${threadId} continues it)`)
  const waiting = result.pending.map(
    ({ description, id }) => `  ${id.slice(0, 8)}  ${oneLine(description).slice(0, 160)}`
  )
  const message =
    exit === "waiting"
      ? [
          "The run waits for a decision, and is kept:",
          ...waiting,
          `Decide: deepagents inbox approve ID (reject, answer), or in the terminal: deepagents resume ${threadId}`
        ].join("\n")
      : (why[exit] ?? "")
  return { exit, message } satisfies RunEnd
}, Effect.scoped)

/** Runs a prompt on a new or a stored thread. */
const start = Effect.fnUntraced(
  function* (context: Context, options: RunOptions) {
    const prompt = yield* readPrompt(options)
    const app = yield* openApp({ ...context, memoryGuard: guardOf(context, options) })
    const store = yield* SessionStore
    const thread = options.thread === undefined ? undefined : yield* Threads.find(store, options.thread)
    const threadId = thread?.threadId ?? (yield* Threads.create(store, app, prompt.title))
    return yield* perform(app, prompt.message, { threadId, title: prompt.title }, options)
  },
  (effect, { places }) => Effect.provide(effect, sessions(places))
)

/** Runs a prompt, and exits with its code. */
export const run = <R>(context: Effect.Effect<Context, Failure, R>, options: RunOptions) =>
  concluded(options.json)(Effect.flatMap(context, (ready) => start(ready, options)))

/** Continues a thread after decisions. */
export const proceed = (
  context: Context,
  threadId: string,
  decisions: ReadonlyArray<Approval.Decision>,
  json: boolean
) => {
  const options: RunOptions = {
    words: [],
    files: [],
    json,
    outputSchema: undefined,
    remembers: false,
    thread: threadId
  }
  return concluded(json)(
    Effect.flatMap(openApp(context), (app) =>
      perform(app, Checkpoint.resume(undefined, { decisions }), { threadId }, options)
    )
  )
}
