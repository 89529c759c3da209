/**
 * Commands that go on while an agent does other things: a server, a watcher, a long build, a program that asks for
 * input.
 *
 * Four tools: `start_process`, `read_output` (from an offset, so that nothing is read twice and nothing is lost),
 * `send_input`, `kill_process`. A process belongs to the run: what still runs when the run ends is ended, on this machine
 * also when the program is killed. All of its output is in a file of the sandbox, which stays. With `pty` it has a
 * terminal, where the sandbox has `script`.
 *
 * The sandbox needs a POSIX shell with `mkfifo`; one that has none says so.
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
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import * as Script from "./internal/processes/script.ts"

/**
 * `most` is how many processes of a run may run at once (default 8), `time` how long one may (default 4 hours), `output`
 * how much it may write, in bytes (default 64 MiB): more ends it.
 */
export interface Options {
  readonly most?: number | undefined
  readonly time?: Duration.Input | undefined
  readonly output?: number | undefined
}

/** The end of a process: its exit code, or why it has none. */
type End = { readonly exitCode: number } | { readonly problem: string }

interface Process {
  readonly id: string
  readonly command: string
  readonly folder: string
  readonly fiber: Fiber.Fiber<void>
  readonly end: Deferred.Deferred<End>
}

/** The processes of a run by their ids, how many were asked for, and how many of these are not there yet. */
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

/** The bytes that are read at once, and the time that short commands around a process may take. */
const windowLength = 30_000
const patience = Duration.seconds(20)

/** The time that is waited for a process to say something, or to end. */
const maxWait = 60

const failed = (error: BackendError): ToolError.ToolError => ToolError.make(error.message)

const find = (run: Run, id: string): Effect.Effect<Process, ToolError.ToolError> => {
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

const told = (end: End | undefined): string =>
  end === undefined ? "it runs" : "problem" in end ? end.problem : `it has ended with exit code ${end.exitCode}`

const script = (sandbox: Service, command: string, stdin?: string) =>
  Effect.mapError(sandbox.execute(command, { timeout: patience, stdin }), failed)

/** A window of so many bytes without the character that it breaks off in: the next window begins with that. */
const withoutHalf = (text: string, bytes: number): { readonly text: string; readonly bytes: number } => {
  const whole = text.slice(0, -1)
  const length = text.endsWith("\ufffd") ? new TextEncoder().encode(whole).length : bytes
  return length < bytes && length >= bytes - 3 ? { text: whole, bytes: length } : { text, bytes }
}

/** A window of the output of a process, and where the next one begins. */
const outputOf = Effect.fnUntraced(function* (sandbox: Service, process: Process, offset: number) {
  // Asked for before, so that what is said last is not missed.
  const end = yield* endOf(process)
  const { exitCode, output } = yield* script(sandbox, Script.read(process.folder, offset, windowLength))
  const line = output.indexOf("\n")
  const size = Number(output.slice(0, line))
  if (exitCode !== 0 || !Number.isFinite(size)) {
    return yield* ToolError.make(`the output of ${process.id} can't be read; ${told(end)}`)
  }
  const said = output.slice(line + 1)
  const length = Math.max(0, Math.min(size - offset, windowLength))
  const goesOn = offset + length < size || end === undefined
  const { bytes, text } = goesOn ? withoutHalf(said, length) : { text: said, bytes: length }
  return { text, size, next: Math.min(size, offset + bytes), end }
})

const positive = (value: number | undefined, usual: number): number =>
  value === undefined || !(value >= 0) ? usual : Math.min(Math.trunc(value), Number.MAX_SAFE_INTEGER - windowLength)

const text = (description: string) => Schema.String.annotate({ description })

const id = text("The id of the process, as start_process gave it")

const start = ({ most = 8, output = 64 * 1024 * 1024, time = "4 hours" }: Options) =>
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
      // Taken at once: other calls of the turn start theirs meanwhile.
      known.starting++
      const name = `p${++known.asked}`
      const now = yield* Clock.currentTimeMillis
      const folder = `.processes/${now.toString(36)}-${callId.replaceAll(/[^A-Za-z0-9]/g, "").slice(-12)}-${name}`
      const process = yield* Effect.gen(function* () {
        if (pty) {
          const { exitCode } = yield* script(sandbox, "command -v script")
          if (exitCode !== 0) {
            return yield* ToolError.make(
              "this sandbox has no terminal to give (no program script); start it without pty"
            )
          }
        }
        const end = yield* Deferred.make<End>()
        // A folder that git and searches leave alone.
        yield* Effect.mapError(sandbox.write("/.processes/.gitignore", "*\n"), failed)
        const options = { folder, pty, limit: output, endsWithParent: sandbox.onHost === true }
        const work = sandbox.executeStream(Script.run(command, options), { timeout: time }).pipe(
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
      const first = yield* Effect.result(outputOf(sandbox, process, 0))
      if (first._tag === "Failure") {
        return yield* ToolError.make(`the process could not be started: ${told(yield* endOf(process))}`)
      }
      return outcome(process, first.success, 0)
    })
  })

type Window = Effect.Success<ReturnType<typeof outputOf>>

const outcome = (process: Process, window: Window, offset: number): ToolOutput.ToolOutput => {
  const { end, next, size, text: said } = window
  const more = next < size ? `; there is more: read on from offset ${next}` : `; the next output is at offset ${next}`
  const head = `[process ${process.id}: ${told(end)}; output from ${offset} to ${next} of ${size} bytes${more}; all of it is in the file /${process.folder}/${Script.files.output}]`
  return ToolOutput.make(said === "" ? head : `${said.trimEnd()}\n${head}`, {
    details: {
      kind: "process",
      id: process.id,
      offset: next,
      running: end === undefined,
      ...(end !== undefined && "exitCode" in end ? { exitCode: end.exitCode } : {})
    }
  })
}

const read = Tool.make("read_output", {
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
    const process = yield* find(run, name)
    const from = positive(offset, 0)
    const until = (yield* Clock.currentTimeMillis) + 1_000 * Math.min(maxWait, positive(wait, 0))
    let window = yield* outputOf(sandbox, process, from)
    while (window.end === undefined && window.next <= from && (yield* Clock.currentTimeMillis) < until) {
      yield* Effect.raceFirst(Deferred.await(process.end), Effect.sleep("500 millis"))
      window = yield* outputOf(sandbox, process, from)
    }
    return outcome(process, window, from)
  })
})

const send = Tool.make("send_input", {
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
    const process = yield* find(run, name)
    const end = yield* endOf(process)
    if (end !== undefined) return yield* ToolError.make(`nothing reads that: ${told(end)}`)
    const input = newline ? `${given}\n` : given
    const after = close ? ' && kill -USR1 "$(cat shell)"' : ""
    // A pipe that nobody reads takes no more at some time.
    const { exitCode } = yield* Effect.mapError(
      sandbox.execute(`cd ${Script.word(process.folder)} && cat >in${after}`, { timeout: patience, stdin: input }),
      (error) => ToolError.make(`${name} did not take it: ${error.message}`)
    )
    return exitCode === 0 ? `Sent to ${name}.` : yield* ToolError.make(`${name} did not take it`)
  })
})

const kill = Tool.make("kill_process", {
  description: "Ends a process and all that it started.",
  parameters: { id },
  annotations: { destructive: true, idempotent: true },
  execute: Effect.fnUntraced(function* ({ id: name }) {
    const { run } = yield* ToolContext
    const sandbox = yield* Sandbox
    const process = yield* find(run, name)
    const before = yield* endOf(process)
    if (before !== undefined) return `${name}: ${told(before)}.`
    yield* Effect.ignore(script(sandbox, `kill "$(cat ${Script.word(process.folder)}/pid)"`))
    yield* Effect.raceFirst(Deferred.await(process.end), Effect.sleep("2 seconds"))
    yield* Fiber.interrupt(process.fiber)
    return `${name} is ended.`
  })
})

/**
 * Makes the tools. `start_process`, `send_input` and `kill_process` are annotated as destructive: rules of approvals ask
 * about them as about `execute`, and whoever decides on a start is told the risk of the command.
 */
export const make = (options: Options = {}): ReadonlyArray<Tool.Tool<Sandbox | ToolContext>> => [
  start(options),
  read,
  send,
  kill
]
