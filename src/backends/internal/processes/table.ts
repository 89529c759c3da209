/** The processes in the background of a run or a session, by id. */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as PubSub from "effect/PubSub"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { BackendError } from "../../../core/BackendError.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import type { Service as SandboxService } from "../../../core/Sandbox.ts"
import { Sandbox } from "../../../core/Sandbox.ts"
import * as ToolError from "../../../core/ToolError.ts"
import * as Script from "./script.ts"

/** Limits of a table, and the folder of outputs. */
export interface Settings {
  readonly most: number
  readonly time: Duration.Duration
  readonly output: number
  /** A path of the backend. */
  readonly folder: string | undefined
}

/** The exit code of a process, or the reason why it has none. */
export type End = { readonly exitCode: number } | { readonly problem: string }

/** A process in the background. `end` is `undefined` while it runs. `output` is the path of its output. */
export interface Process {
  readonly id: string
  readonly command: string
  readonly output: string
  readonly end: End | undefined
}

/** A part of an output, in bytes: it begins at `offset`, and the next part begins at `next`. */
export interface Window {
  readonly process: Process
  readonly text: string
  readonly offset: number
  readonly next: number
  readonly size: number
  /** Reports whether the text that was waited for came; `undefined` if none was. */
  readonly isFound: boolean | undefined
}

/** The conditions that end the wait of a read. */
export interface Reading {
  readonly offset?: number | undefined
  /** Seconds. */
  readonly wait?: number | undefined
  readonly until?: string | undefined
}

/** The operations on processes in the background. Failures have words for the model. */
export interface Service {
  readonly start: (
    command: string,
    options?: {
      /** Gives the command a pseudo-terminal. Default: `false`. */
      readonly pty?: boolean | undefined
      /** The run that is told of its end. Default: none. */
      readonly owner?: string | undefined
    }
  ) => Effect.Effect<Process, ToolError.ToolError, Sandbox>
  readonly list: Effect.Effect<ReadonlyArray<Process>>
  readonly read: (id: string, reading?: Reading) => Effect.Effect<Window, ToolError.ToolError>
  readonly send: (id: string, text: string, close: boolean) => Effect.Effect<void, ToolError.ToolError>
  readonly kill: (id: string) => Effect.Effect<Process, ToolError.ToolError>
  /** The processes that end from now on. */
  readonly ended: Stream.Stream<Process>
  /** The ended processes that nobody was told of; of one run, if there is an `owner`. */
  readonly untold: (owner?: string) => Effect.Effect<ReadonlyArray<Process>>
  readonly told: (ids: ReadonlyArray<string>) => Effect.Effect<void>
}

interface Entry {
  readonly id: string
  readonly command: string
  /** The folder, as a shell has it and as the backend has it. */
  readonly place: string
  readonly path: string
  readonly sandbox: SandboxService
  readonly owner: string | undefined
  readonly fiber: Fiber.Fiber<void> | undefined
  readonly end: Deferred.Deferred<End>
  isTold: boolean
}

/** Maximum bytes of one read. */
const windowLength = 30_000

/** Time limit of commands that read from or write to a process. */
const commandTimeout = Duration.seconds(20)

/** Maximum seconds to wait for output, or for the end of a process. */
export const maxWait = 60

/** Seconds to wait for a text, if the model does not say. */
const usualWait = 30

/** The most ended processes that stay in a table. */
const maxEnded = 50

const convertError = (error: BackendError): ToolError.ToolError => ToolError.make(error.message)

const endOf = ({ end }: Entry): Effect.Effect<End | undefined> =>
  Effect.flatMap(Deferred.isDone(end), (isDone) => (isDone ? Deferred.await(end) : Effect.succeed(undefined)))

const toProcess = (entry: Entry): Effect.Effect<Process> =>
  Effect.map(endOf(entry), (end) => ({
    id: entry.id,
    command: entry.command,
    output: `${entry.path}/${Script.outputFile}`,
    end
  }))

/** Describes the state of a process. */
export const describeEnd = (end: End | undefined): string =>
  end === undefined ? "it runs" : "problem" in end ? end.problem : `it has ended with exit code ${end.exitCode}`

const runScript = (sandbox: SandboxService, command: string, stdin?: string) =>
  Effect.mapError(sandbox.execute(command, { timeout: commandTimeout, stdin }), convertError)

/** Removes an incomplete character at the end. The next read begins with it. */
const removeHalf = (text: string, bytes: number): { readonly text: string; readonly bytes: number } => {
  const whole = text.slice(0, -1)
  const length = text.endsWith("\ufffd") ? new TextEncoder().encode(whole).length : bytes
  return length < bytes && length >= bytes - 3 ? { text: whole, bytes: length } : { text, bytes }
}

/** Reads output from an offset, and finds the next offset. */
const readOnce = Effect.fnUntraced(function* (entry: Entry, offset: number) {
  // The end is read first, so that the last output is not missed.
  const end = yield* endOf(entry)
  const { exitCode, output } = yield* runScript(entry.sandbox, Script.makeRead(entry.place, offset, windowLength))
  const line = output.indexOf("\n")
  const size = Number(output.slice(0, line))
  if (exitCode !== 0 || !Number.isFinite(size)) {
    return yield* ToolError.make(`the output of ${entry.id} can't be read; ${describeEnd(end)}`)
  }
  const text = output.slice(line + 1)
  const length = Math.max(0, Math.min(size - offset, windowLength))
  const hasMore = offset + length < size || end === undefined
  const { bytes, text: whole } = hasMore ? removeHalf(text, length) : { text, bytes: length }
  return { text: whole, size, next: Math.min(size, offset + bytes), end }
})

const parseCount = (value: number | undefined, usual: number): number =>
  value === undefined || !(value >= 0) ? usual : Math.min(Math.trunc(value), Number.MAX_SAFE_INTEGER - windowLength)

/** Reads, and waits for new output, or for a text in it. */
const readOutput = Effect.fnUntraced(function* (entry: Entry, { offset, until, wait }: Reading) {
  const from = parseCount(offset, 0)
  const seconds = Math.min(maxWait, parseCount(wait, until === undefined ? 0 : usualWait))
  const deadline = (yield* Clock.currentTimeMillis) + 1_000 * seconds
  let excerpt = { offset: from, text: "" }
  let tail = ""
  for (let at = from; ;) {
    const window = yield* readOnce(entry, at)
    const isFound = until === undefined ? undefined : (tail + window.text).includes(until)
    // What does not fit in one answer is read by its offset.
    excerpt =
      window.next - excerpt.offset > windowLength
        ? { offset: at, text: window.text }
        : { ...excerpt, text: excerpt.text + window.text }
    const hasMore = window.next < window.size && window.next > at
    const isDone = until === undefined ? window.next > at : isFound === true
    const isOver = window.end !== undefined && !(until !== undefined && hasMore)
    if (isDone || isOver || (!hasMore && (yield* Clock.currentTimeMillis) >= deadline)) {
      const { next, size } = window
      return { ...excerpt, next, size, isFound, process: yield* toProcess(entry) } satisfies Window
    }
    tail = (tail + window.text).slice(-(until?.length ?? 0))
    at = window.next
    if (!hasMore) yield* Effect.raceFirst(Deferred.await(entry.end), Effect.sleep("300 millis"))
  }
})

/** The state of a process of an earlier program, in words. */
const endOfRow = (state: string): End =>
  state.startsWith("code ")
    ? { exitCode: Number(state.slice(5)) }
    : {
        problem:
          state === "ended"
            ? "it still ran after the program that started it was gone, and was ended now"
            : "it is gone: it ended with the program that started it"
      }

/** Settles the processes that earlier programs left, and puts them into the table to be told. */
const adopt = Effect.fnUntraced(function* (folder: string, place: string, sandbox: SandboxService) {
  const { output } = yield* runScript(sandbox, Script.makeSettle(place))
  const { last, rows } = Script.readRows(output)
  const entries = yield* Effect.forEach(
    rows,
    Effect.fnUntraced(function* (row) {
      const end = yield* Deferred.make<End>()
      yield* Deferred.succeed(end, endOfRow(row.state))
      const entry: Entry = {
        id: row.id,
        command: row.command,
        place: `${place}/${row.folder}`,
        path: `${folder}/${row.folder}`,
        sandbox,
        owner: undefined,
        fiber: undefined,
        end,
        isTold: false
      }
      return entry
    })
  )
  return { entries, last }
})

/** The folder of outputs: among the files that nobody asked for, unless it is given. */
const folderOf = ({ paths }: SandboxService, { folder }: Settings): string =>
  folder ?? `${paths?.scratch ?? ""}/.processes`

/** Finds the folder of outputs, as a shell of the sandbox has it. Git and searches ignore the folder. */
const openFolder = Effect.fnUntraced(function* (sandbox: SandboxService, folder: string) {
  yield* Effect.mapError(sandbox.write(`${folder}/.gitignore`, "*\n"), convertError)
  const { exitCode, output } = yield* Effect.mapError(
    sandbox.execute("pwd -P", { cwd: folder, timeout: commandTimeout }),
    convertError
  )
  const place = output.replace(/\n$/, "")
  return exitCode === 0 && place.startsWith("/")
    ? place
    : yield* ToolError.make(`the folder of outputs, ${folder}, can't be used`)
})

/**
 * Makes a table whose processes end with a scope. With the sandbox of a session that is kept, it settles at once what
 * earlier programs left in the folder.
 */
// oxlint-disable-next-line eslint/max-lines-per-function -- functions over the state of one table
export const makeTable = Effect.fnUntraced(function* (
  settings: Settings,
  scope: Scope.Scope,
  keptSandbox: SandboxService | undefined
): Effect.fn.Return<Service> {
  const all = new Map<string, Entry>()
  const places = new WeakMap<object, string>()
  const ends = yield* PubSub.unbounded<Process>()
  let lastNumber = 0
  let starting = 0

  const placeIn = Effect.fnUntraced(function* (sandbox: SandboxService) {
    const place = places.get(sandbox) ?? (yield* openFolder(sandbox, folderOf(sandbox, settings)))
    places.set(sandbox, place)
    return place
  })
  const find = (id: string): Effect.Effect<Entry, ToolError.ToolError> => {
    const entry = all.get(id)
    const ids = [...all.keys()].join(", ")
    return entry === undefined
      ? Effect.fail(
          ToolError.make(
            `there is no process ${JSON.stringify(id.slice(0, 50))}${ids === "" ? ": none was started" : `; there are: ${ids}`}`
          )
        )
      : Effect.succeed(entry)
  }
  const tell = (entry: Entry): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (entry.isTold) return Effect.void
      entry.isTold = true
      return Effect.ignore(runScript(entry.sandbox, Script.makeTold(entry.place)))
    })
  /** Forgets the oldest ended processes. Their outputs stay. */
  const prune = (): void => {
    const ended = [...all.values()].filter(({ end, isTold }) => isTold && Deferred.isDoneUnsafe(end))
    for (const { id } of ended.slice(0, -maxEnded)) all.delete(id)
  }

  const launch = Effect.fnUntraced(function* (
    command: string,
    sandbox: SandboxService,
    pty: boolean,
    owner: string | undefined
  ) {
    const id = `p${++lastNumber}`
    const place = yield* placeIn(sandbox)
    if (pty) {
      const { exitCode } = yield* runScript(sandbox, "command -v script")
      if (exitCode !== 0) {
        return yield* ToolError.make(
          "this sandbox has no terminal to give (no program script); start it without a terminal"
        )
      }
    }
    const makeId = yield* IdGenerator
    const now = yield* Clock.currentTimeMillis
    const name = `${id}-${now.toString(36)}-${makeId()
      .replaceAll(/[^A-Za-z0-9]/g, "")
      .slice(-12)}`
    const end = yield* Deferred.make<End>()
    const script = Script.makeRun(command, {
      folder: `${place}/${name}`,
      pty,
      limit: settings.output,
      endsWithParent: sandbox.onHost === true
    })
    const work = sandbox.executeStream(script, { timeout: settings.time }).pipe(
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
      Effect.andThen(Effect.suspend(() => Effect.flatMap(toProcess(entry), (one) => PubSub.publish(ends, one)))),
      Effect.asVoid
    )
    const fiber = yield* Effect.forkIn(work, scope)
    const path = `${folderOf(sandbox, settings)}/${name}`
    const entry: Entry = { id, command, place: `${place}/${name}`, path, sandbox, owner, fiber, end, isTold: false }
    all.set(id, entry)
    prune()
    return entry
  })

  if (keptSandbox !== undefined) {
    const place = yield* Effect.option(placeIn(keptSandbox))
    const earlier = yield* Effect.option(
      Effect.flatMap(Effect.fromOption(place), (folder) => adopt(folderOf(keptSandbox, settings), folder, keptSandbox))
    )
    if (Option.isNone(earlier))
      yield* Effect.logWarning(`earlier processes in ${folderOf(keptSandbox, settings)} can't be found`)
    else {
      for (const entry of earlier.value.entries) all.set(entry.id, entry)
      lastNumber = earlier.value.last
    }
    // After the processes have ended: the next session tells them.
    yield* Scope.addFinalizer(
      scope,
      Effect.suspend(() => {
        const open = [...all.values()].filter(({ isTold }) => !isTold).map((entry) => entry.place)
        return open.length === 0 ? Effect.void : Effect.ignore(runScript(keptSandbox, Script.makeClosed(open)))
      })
    )
  }

  return {
    start: Effect.fnUntraced(function* (command, options) {
      const sandbox = yield* Sandbox
      const running = [...all.values()].filter(({ end }) => !Deferred.isDoneUnsafe(end)).map(({ id }) => id)
      if (running.length + starting >= settings.most) {
        return yield* ToolError.make(
          `${settings.most} processes run already: ${running.join(", ")}; end one with kill_process first`
        )
      }
      if (command.includes("\0")) return yield* ToolError.make("a command can't have a NUL character")
      // Counted at once, since other calls of the turn start processes too.
      starting++
      const entry = yield* launch(command, sandbox, options?.pty === true, options?.owner).pipe(
        Effect.ensuring(Effect.sync(() => starting--))
      )
      yield* Effect.raceFirst(Deferred.await(entry.end), Effect.sleep("500 millis"))
      return yield* toProcess(entry)
    }),
    list: Effect.suspend(() => Effect.forEach([...all.values()], toProcess)),
    read: (id, reading = {}) =>
      Effect.gen(function* () {
        const entry = yield* find(id)
        const window = yield* readOutput(entry, reading)
        if (window.process.end !== undefined) yield* tell(entry)
        return window
      }),
    send: Effect.fnUntraced(function* (id, text, close) {
      const entry = yield* find(id)
      const end = yield* endOf(entry)
      if (end !== undefined) return yield* ToolError.make(`nothing reads that: ${describeEnd(end)}`)
      // A full pipe blocks if the process does not read.
      const { exitCode } = yield* Effect.mapError(
        runScript(entry.sandbox, Script.makeSend(entry.place, close), text),
        (error) => ToolError.make(`${id} did not take it: ${error.message}`)
      )
      if (exitCode !== 0) return yield* ToolError.make(`${id} did not take it`)
    }),
    kill: Effect.fnUntraced(function* (id) {
      const entry = yield* find(id)
      if ((yield* endOf(entry)) === undefined) {
        // On this machine the interruption ends the process. The agent can write the file with its id.
        if (entry.sandbox.onHost !== true) {
          const outcome = yield* Effect.option(runScript(entry.sandbox, Script.makeKill(entry.place)))
          const isAsked = Option.isSome(outcome) && outcome.value.exitCode === 0
          if (isAsked) yield* Effect.raceFirst(Deferred.await(entry.end), Effect.sleep("2 seconds"))
        }
        if (entry.fiber !== undefined) yield* Fiber.interrupt(entry.fiber)
      }
      yield* tell(entry)
      return yield* toProcess(entry)
    }),
    ended: Stream.fromPubSub(ends),
    untold: (owner) =>
      Effect.suspend(() =>
        Effect.forEach(
          [...all.values()].filter(
            ({ end, isTold, owner: its }) =>
              !isTold && Deferred.isDoneUnsafe(end) && (owner === undefined || owner === its)
          ),
          toProcess
        )
      ),
    told: (ids) =>
      Effect.forEach(
        ids,
        (id) =>
          Effect.suspend(() => {
            const entry = all.get(id)
            return entry === undefined ? Effect.void : tell(entry)
          }),
        { discard: true }
      )
  }
})
