/**
 * The processes in which commands run. Each does one command line at a time. One is kept for the next, for a while; one
 * that had to be ended is replaced.
 *
 * A thread would not do: a thread that is out of memory takes the whole process with it.
 */
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Order, Report } from "./messages.ts"

/** The heap of a process, in megabytes. */
export const heap = 512

/** More commands than these wait for others to end. */
const mostProcesses = 4

/** The time that a process waits for the next command, in milliseconds. */
const idleTime = 30_000

/** A process that has more memory than this is not kept, in bytes. */
const mostKept = 256 * 1024 * 1024

/** The process ended, or could not be started. */
export interface GoneProcess {
  readonly _tag: "Gone"
  readonly problem: string
}

export interface Process {
  readonly inbox: Queue.Queue<Report | GoneProcess>
  readonly isReady: () => boolean
  readonly tell: (order: Order) => void
  /** Says that it can be kept: it has done its command, and has this much memory. */
  readonly settled: (rss: number) => void
}

interface RunningProcess extends Process {
  readonly child: ChildProcess
  isGone: boolean
  isSettled: boolean
}

const isReports = (message: unknown): message is ReadonlyArray<Report> => Array.isArray(message)

/** The variables of this process that a shell needs. Commands do not see them. */
const passedOn = ["TZ", "NODE_EXTRA_CA_CERTS", "NODE_USE_ENV_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]

const environment = () =>
  Object.fromEntries(
    passedOn.flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value]]
    })
  )

const nobody = (): void => undefined

const launch = Effect.fnUntraced(function* (program: URL) {
  const inbox = yield* Queue.unbounded<Report | GoneProcess>()
  return yield* Effect.try({
    try: (): RunningProcess => {
      const child = fork(fileURLToPath(program), [], {
        serialization: "advanced",
        stdio: ["ignore", "ignore", "ignore", "ipc"],
        execArgv: [`--max-old-space-size=${heap}`],
        env: environment()
      })
      let isReady = false
      const running: RunningProcess = {
        child,
        inbox,
        isReady: () => isReady,
        isGone: false,
        isSettled: true,
        tell: (order) => void child.send(order, nobody),
        settled: (rss) => {
          running.isSettled = rss <= mostKept
        }
      }
      const reportGone = (problem: string): void => {
        if (running.isGone) return
        running.isGone = true
        Queue.offerUnsafe(inbox, { _tag: "Gone", problem })
      }
      child.on("message", (reports) => {
        if (!isReports(reports)) return
        for (const report of reports) {
          if (report._tag === "Ready") isReady = true
          Queue.offerUnsafe(inbox, report)
        }
      })
      child.on("error", (cause) => reportGone(cause.message))
      child.on("exit", (code, signal) =>
        reportGone(signal === null ? `it ended with code ${code}` : `${signal} ended it`)
      )
      return running
    },
    catch: (cause): GoneProcess => ({ _tag: "Gone", problem: cause instanceof Error ? cause.message : String(cause) })
  })
})

/** Decides whether the child keeps this process alive. */
const hold = ({ child }: RunningProcess, isHeld: boolean): void => {
  if (isHeld) {
    child.ref()
    child.channel?.ref()
  } else {
    child.unref()
    child.channel?.unref()
  }
}

/** Lends processes. */
export interface Processes {
  /** Lends a process for a command. It ends with the effect unless it has settled. */
  readonly use: <A, E>(run: (process: Process) => Effect.Effect<A, E>) => Effect.Effect<A, E | GoneProcess>
}

/** Makes the processes of a layer: the last one ends with the scope. */
export const make = (program: URL): Effect.Effect<Processes, never, Scope.Scope> =>
  Effect.gen(function* () {
    const semaphore = Semaphore.makeUnsafe(mostProcesses)
    const all = new Set<RunningProcess>()
    let spare: RunningProcess | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let isClosed = false

    const end = (running: RunningProcess): void => {
      all.delete(running)
      running.child.kill("SIGKILL")
    }
    const begin = Effect.map(launch(program), (running) => {
      all.add(running)
      return running
    })
    const keep = (running: RunningProcess): void => {
      if (isClosed || spare !== undefined || running.isGone) return end(running)
      spare = running
      hold(running, false)
      timer = setTimeout(() => {
        spare = undefined
        end(running)
      }, idleTime)
      timer.unref()
    }
    const take = Effect.suspend(() => {
      const running = spare
      spare = undefined
      clearTimeout(timer)
      if (running === undefined || running.isGone) return begin
      hold(running, true)
      return Effect.succeed(running)
    })
    const leave = (running: RunningProcess): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (running.isSettled && !running.isGone) return Effect.sync(() => keep(running))
        end(running)
        return isClosed || spare !== undefined ? Effect.void : Effect.ignore(Effect.map(begin, keep))
      })

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosed = true
        clearTimeout(timer)
        for (const running of all) end(running)
      })
    )

    return {
      use: (run) =>
        Semaphore.withPermit(
          semaphore,
          Effect.acquireUseRelease(
            take,
            (running) => {
              running.isSettled = false
              return run(running)
            },
            leave
          )
        )
    }
  })
