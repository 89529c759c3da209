/**
 * Makes tools for background processes: a server, a watcher, a long build, a program that asks for input.
 *
 * `start_process` starts a command, `read_output` reads its output from an offset, `send_input` writes to it, and
 * `kill_process` ends it. Processes end with their run, and on this machine also when the program is killed. Their output
 * stays in a file of the sandbox. `pty` gives a process a terminal, if the sandbox has `script`.
 *
 * The sandbox needs a POSIX shell with `mkfifo`.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { FileTools } from "effect-deepagents/backends"
 * import { Processes } from "effect-deepagents/workspace"
 *
 * const coder = Agent.make({
 *   name: "coder",
 *   prompt: "You run the development server, and mend what it complains about.",
 *   tools: [...FileTools.make({ execute: true }), ...Processes.make()]
 * })
 * ```
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as CommandRisk from "../backends/CommandRisk.ts"
import type { BackendError } from "../core/BackendError.ts"
import type { Run } from "../core/Run.ts"
import { Sandbox, type Service } from "../core/Sandbox.ts"
import { readOptions, refuseTools } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import { check } from "../support/options/check.ts"
import * as Script from "./internal/processes/script.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of the tools. */
export interface Options {
  /** Maximum number of running processes of a run. Default: 8. */
  readonly most?: number | undefined
  /** Time limit of a process. Default: 4 hours. */
  readonly time?: Duration.Input | undefined
  /** Maximum output of a process in bytes. More output ends it. Default: 64 MiB. */
  readonly output?: number | undefined
}

/** The exit code of a process, or the reason why it has none. */
type End = { readonly exitCode: number } | { readonly problem: string }

interface Process {
  readonly id: string
  readonly command: string
  readonly folder: string
  readonly fiber: Fiber.Fiber<void>
  readonly end: Deferred.Deferred<End>
}

/** The processes of a run by id, with counters of requested and starting processes. */
interface Processes {
  readonly all: Map<string, Process>
  asked: number
  starting: number
}

const runs = Attached.make<Run, Processes>()

const processesOf = (run: Run): Processes => {
  const known = runs.get(run) ?? { all: new Map<string, Process>(), asked: 0, starting: 0 }
  runs.set(run, known)
  return known
}

/** Maximum bytes of one read. */
const windowLength = 30_000

/** Time limit of commands that read from or write to a process. */
const commandTimeout = Duration.seconds(20)

/** Maximum seconds to wait for output, or for the end of a process. */
const maxWait = 60

const convertError = (error: BackendError): ToolError.ToolError => ToolError.make(error.message)

const findProcess = (run: Run, id: string): Effect.Effect<Process, ToolError.ToolError> => {
  const { all } = processesOf(run)
  const known = all.get(id)
  const ids = [...all.keys()].join(", ")
  return known === undefined
    ? Effect.fail(
        ToolError.make(
          `there is no process ${JSON.stringify(id.slice(0, 50))}${ids === "" ? ": none was started" : `; there are: ${ids}`}`
        )
      )
    : Effect.succeed(known)
}

const endOf = ({ end }: Process): Effect.Effect<End | undefined> =>
  Effect.flatMap(Deferred.isDone(end), (isDone) => (isDone ? Deferred.await(end) : Effect.succeed(undefined)))

const describeEnd = (end: End | undefined): string =>
  end === undefined ? "it runs" : "problem" in end ? end.problem : `it has ended with exit code ${end.exitCode}`

const runScript = (sandbox: Service, command: string, stdin?: string) =>
  Effect.mapError(sandbox.execute(command, { timeout: commandTimeout, stdin }), convertError)

/** Removes an incomplete character at the end. The next read begins with it. */
const removeHalf = (text: string, bytes: number): { readonly text: string; readonly bytes: number } => {
  const whole = text.slice(0, -1)
  const length = text.endsWith("\ufffd") ? new TextEncoder().encode(whole).length : bytes
  return length < bytes && length >= bytes - 3 ? { text: whole, bytes: length } : { text, bytes }
}

/** Reads output from an offset, and finds the next offset. */
const readOutput = Effect.fnUntraced(function* (sandbox: Service, process: Process, offset: number) {
  // The end is read first, so that the last output is not missed.
  const end = yield* endOf(process)
  const { exitCode, output } = yield* runScript(sandbox, Script.makeRead(process.folder, offset, windowLength))
  const line = output.indexOf("\n")
  const size = Number(output.slice(0, line))
  if (exitCode !== 0 || !Number.isFinite(size)) {
    return yield* ToolError.make(`the output of ${process.id} can't be read; ${describeEnd(end)}`)
  }
  const text = output.slice(line + 1)
  const length = Math.max(0, Math.min(size - offset, windowLength))
  const hasMore = offset + length < size || end === undefined
  const { bytes, text: whole } = hasMore ? removeHalf(text, length) : { text, bytes: length }
  return { text: whole, size, next: Math.min(size, offset + bytes), end }
})

const parseCount = (value: number | undefined, usual: number): number =>
  value === undefined || !(value >= 0) ? usual : Math.min(Math.trunc(value), Number.MAX_SAFE_INTEGER - windowLength)

const text = (description: string) => Schema.String.annotate({ description })

const id = text("The id of the process, as start_process gave it")

const makeStart = ({ most = 8, output = 64 * 1024 * 1024, time = "4 hours" }: Options) =>
  Tool.make("start_process", {
    description:
      "Starts a command in the background and gives its id and its first output. It goes on until it ends by itself, by kill_process, or with your work. Read more with read_output. All of its output is in a file.",
    parameters: {
      command: Schema.NonEmptyString.annotate({ description: "A command line for a POSIX shell" }),
      pty: Schema.optionalKey(
        Schema.Boolean.annotate({ description: "Gives it a terminal, for programs that ask for one" })
      )
    },
    annotations: { destructive: true, openWorld: true, volatile: true, runsCommands: true },
    describe: ({ command }) => `In the background: ${CommandRisk.describe(typeof command === "string" ? command : "")}`,
    execute: Effect.fnUntraced(function* ({ command, pty = false }) {
      const { callId, run } = yield* ToolContext
      const sandbox = yield* Sandbox
      const known = processesOf(run)
      const running = [...known.all.values()].filter(({ end }) => !Deferred.isDoneUnsafe(end)).map((one) => one.id)
      if (running.length + known.starting >= most) {
        return yield* ToolError.make(
          `${most} processes run already: ${running.join(", ")}; end one with kill_process first`
        )
      }
      if (command.includes("\0")) return yield* ToolError.make("a command can't have a NUL character")
      // Counted at once, since other calls of the turn start processes too.
      known.starting++
      const name = `p${++known.asked}`
      const now = yield* Clock.currentTimeMillis
      const folder = `.processes/${now.toString(36)}-${callId.replaceAll(/[^A-Za-z0-9]/g, "").slice(-12)}-${name}`
      const process = yield* Effect.gen(function* () {
        if (pty) {
          const { exitCode } = yield* runScript(sandbox, "command -v script")
          if (exitCode !== 0) {
            return yield* ToolError.make(
              "this sandbox has no terminal to give (no program script); start it without pty"
            )
          }
        }
        const end = yield* Deferred.make<End>()
        // Git and searches ignore this folder.
        yield* Effect.mapError(sandbox.write("/.processes/.gitignore", "*\n"), convertError)
        const options = { folder, pty, limit: output, endsWithParent: sandbox.onHost === true }
        const work = sandbox.executeStream(Script.makeRun(command, options), { timeout: time }).pipe(
          Stream.runFold(
            (): End => ({ problem: "it did not begin" }),
            (before, event) => (event._tag === "Exited" ? { exitCode: event.exitCode } : before)
          ),
          Effect.catch((error) =>
            Effect.succeed<End>({
              problem: error.reason._tag === "TimedOut" ? "it was ended: its time was up" : error.message
            })
          ),
          Effect.onInterrupt(() => Deferred.succeed(end, { problem: "it was ended" })),
          Effect.flatMap((came) => Deferred.succeed(end, came)),
          Effect.asVoid
        )
        const begun: Process = { id: name, command, folder, fiber: yield* Effect.forkIn(work, run.scope), end }
        known.all.set(name, begun)
        return begun
      }).pipe(Effect.ensuring(Effect.sync(() => known.starting--)))
      yield* Effect.raceFirst(Deferred.await(process.end), Effect.sleep("500 millis"))
      const first = yield* Effect.result(readOutput(sandbox, process, 0))
      if (first._tag === "Failure") {
        return yield* ToolError.make(`the process could not be started: ${describeEnd(yield* endOf(process))}`)
      }
      return renderOutput(process, first.success, 0)
    })
  })

type Window = Effect.Success<ReturnType<typeof readOutput>>

const renderOutput = (process: Process, window: Window, offset: number): ToolOutput.ToolOutput => {
  const { end, next, size, text: output } = window
  const more = next < size ? `; there is more: read on from offset ${next}` : `; the next output is at offset ${next}`
  const head = `[process ${process.id}: ${describeEnd(end)}; output from ${offset} to ${next} of ${size} bytes${more}; all of it is in the file /${process.folder}/${Script.files.output}]`
  return ToolOutput.make(output === "" ? head : `${output.trimEnd()}\n${head}`, {
    details: {
      kind: "process",
      id: process.id,
      offset: next,
      running: end === undefined,
      ...(end !== undefined && "exitCode" in end ? { exitCode: end.exitCode } : {})
    }
  })
}

const readTool = Tool.make("read_output", {
  description:
    "Reads the output of a process from an offset, in bytes: give the one that was told last, to read only what is new. With wait it waits until there is something, or it has ended.",
  parameters: {
    id,
    offset: Schema.optionalKey(Schema.Finite.annotate({ description: "Where to begin; 0 if left out" })),
    wait: Schema.optionalKey(Schema.Finite.annotate({ description: `How many seconds to wait, at most ${maxWait}` }))
  },
  annotations: { readOnly: true, idempotent: true, volatile: true, paged: true },
  execute: Effect.fnUntraced(function* ({ id: name, offset, wait }) {
    const { run } = yield* ToolContext
    const sandbox = yield* Sandbox
    const process = yield* findProcess(run, name)
    const from = parseCount(offset, 0)
    const until = (yield* Clock.currentTimeMillis) + 1_000 * Math.min(maxWait, parseCount(wait, 0))
    let window = yield* readOutput(sandbox, process, from)
    while (window.end === undefined && window.next <= from && (yield* Clock.currentTimeMillis) < until) {
      yield* Effect.raceFirst(Deferred.await(process.end), Effect.sleep("500 millis"))
      window = yield* readOutput(sandbox, process, from)
    }
    return renderOutput(process, window, from)
  })
})

const sendTool = Tool.make("send_input", {
  description: "Writes to the input of a process: a line, unless you say otherwise.",
  parameters: {
    id,
    text: text("What is written"),
    newline: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Whether a line end follows; true if left out" })
    ),
    close: Schema.optionalKey(
      Schema.Boolean.annotate({
        description: "Whether the input ends with it, as a program sees it that reads to the end"
      })
    )
  },
  annotations: { destructive: true, openWorld: true, volatile: true, runsCommands: true },
  execute: Effect.fnUntraced(function* ({ close = false, id: name, newline = true, text: given }) {
    const { run } = yield* ToolContext
    const sandbox = yield* Sandbox
    const process = yield* findProcess(run, name)
    const end = yield* endOf(process)
    if (end !== undefined) return yield* ToolError.make(`nothing reads that: ${describeEnd(end)}`)
    const input = newline ? `${given}\n` : given
    const after = close ? ' && kill -USR1 "$(cat shell)"' : ""
    // A full pipe blocks if the process does not read.
    const { exitCode } = yield* Effect.mapError(
      sandbox.execute(`cd ${Script.quoteWord(process.folder)} && cat >in${after}`, {
        timeout: commandTimeout,
        stdin: input
      }),
      (error) => ToolError.make(`${name} did not take it: ${error.message}`)
    )
    return exitCode === 0 ? `Sent to ${name}.` : yield* ToolError.make(`${name} did not take it`)
  })
})

const killTool = Tool.make("kill_process", {
  description: "Ends a process and all that it started.",
  parameters: { id },
  annotations: { destructive: true, idempotent: true },
  execute: Effect.fnUntraced(function* ({ id: name }) {
    const { run } = yield* ToolContext
    const sandbox = yield* Sandbox
    const process = yield* findProcess(run, name)
    const before = yield* endOf(process)
    if (before !== undefined) return `${name}: ${describeEnd(before)}.`
    yield* Effect.ignore(runScript(sandbox, `kill "$(cat ${Script.quoteWord(process.folder)}/pid)"`))
    yield* Effect.raceFirst(Deferred.await(process.end), Effect.sleep("2 seconds"))
    yield* Fiber.interrupt(process.fiber)
    return `${name} is ended.`
  })
})

const checkMake = check(shapes.processesMake)

/**
 * Makes the tools. `start_process`, `send_input` and `kill_process` are annotated as destructive, so rules of approvals
 * apply as for `execute`. An approval of a start shows the risk of the command.
 */
export const make = (options: Options = {}): ReadonlyArray<Tool.Tool<Sandbox | ToolContext>> => {
  const [own, problem] = readOptions(checkMake, options)
  return refuseTools(problem, [makeStart(own), readTool, sendTool, killTool])
}
