/** Runs a command line in a separate process: answers its requests and forwards its output. */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type * as Sandbox from "../../../core/Sandbox.ts"
import { pause } from "../local/system.ts"
import type { Files } from "./files.ts"
import type { Report, Run } from "./messages.ts"
import { type GoneProcess, heap, type Process, type Processes } from "./processes.ts"

/** The end of a command line. */
export type CommandEnd =
  | { readonly _tag: "Exited"; readonly exitCode: number }
  /** The time was up. */
  | { readonly _tag: "Late" }
  /** There is no shell: `just-bash` can't be loaded. */
  | { readonly _tag: "Unusable"; readonly problem: string }
  /** The shell ended. */
  | { readonly _tag: "Broken"; readonly problem: string }

export type Output = Extract<Sandbox.ExecuteEvent, { readonly _tag: "Output" }>

/** The time that a command has to hand over its output once its own is over, in milliseconds. */
const lastWords = 250

/** A shell that has not begun within this time will not, in milliseconds. */
const patience = 30_000

let runs = 0

const broken = (problem: string): CommandEnd => ({ _tag: "Broken", problem })

/** Node aborts on a full heap. The guard of the process, or the system, catches the rest. */
const isOutOfMemory = /SIGABRT|SIGKILL|code 134/

const outOfMemory = `the command took more than ${heap} MiB of memory and was ended; let it work on less at once`

/** Waits for the report that ends the command, and serves other requests meanwhile. */
const serve = (
  process: Process,
  run: number,
  files: Files,
  put: (output: Output) => void
): Effect.Effect<CommandEnd, never, Scope.Scope> => {
  const answer = (report: Extract<Report, { readonly _tag: "Ask" }>): Effect.Effect<void> =>
    Effect.matchCause(files.answer(report.call), {
      onSuccess: (reply) => process.tell({ _tag: "Answer", ask: report.ask, answer: reply }),
      onFailure: ({ reasons }) => {
        const failure = reasons.find((reason) => reason._tag === "Fail")
        const fault = failure?.error ?? { code: "EIO" as const, call: report.call.op, path: report.call.path }
        process.tell({ _tag: "Answer", ask: report.ask, answer: fault })
      }
    })
  const next = (
    report: Report | GoneProcess
  ): CommandEnd | undefined | Effect.Effect<undefined, never, Scope.Scope> => {
    if (report._tag === "Gone") return broken(isOutOfMemory.test(report.problem) ? outOfMemory : report.problem)
    if (report._tag === "Unusable") return report
    // Reports of an earlier command are of no interest any more.
    if (report._tag === "Ready" || report.run !== run) return undefined
    switch (report._tag) {
      case "Ask":
        return Effect.as(Effect.forkScoped(answer(report)), undefined)
      case "Output":
        put({ _tag: "Output", channel: report.channel, text: report.text })
        return undefined
      case "Failed":
        return broken(report.problem)
      case "Done":
        if (report.isLate) return { _tag: "Late" }
        process.settled(report.rss)
        return { _tag: "Exited", exitCode: report.exitCode }
    }
  }
  return Effect.gen(function* () {
    for (;;) {
      const step = next(yield* Queue.take(process.inbox))
      const ended = Effect.isEffect(step) ? yield* step : step
      if (ended !== undefined) return ended
    }
  })
}

/** Waits until a process has begun; gives why it has not. */
const waitForStart = (process: Process): Effect.Effect<CommandEnd | undefined> =>
  process.isReady()
    ? Effect.undefined
    : Effect.raceFirst(
        Effect.map(Queue.take(process.inbox), (report) => {
          if (report._tag === "Unusable") return report
          return report._tag === "Gone" ? broken(report.problem) : undefined
        }),
        Effect.as(pause(patience), broken(`it did not begin within ${patience} ms`))
      )

/** Runs a command line. Its time begins when its process has begun. */
export const execute = (
  processes: Processes,
  files: Files,
  command: Omit<Run, "_tag" | "run" | "hasPrograms">,
  put: (output: Output) => void
): Effect.Effect<CommandEnd, GoneProcess> =>
  processes.use((process) =>
    Effect.scoped(
      Effect.gen(function* () {
        const failed = yield* waitForStart(process)
        if (failed !== undefined) return failed
        const run = ++runs
        const served = serve(process, run, files, put)
        const started = Effect.flatMap(files.hasPrograms, (hasPrograms) => {
          process.tell({ _tag: "Run", run, hasPrograms, ...command })
          return served
        })
        const abort = Effect.suspend(() => {
          process.tell({ _tag: "Abort" })
          return Effect.as(Effect.raceFirst(Effect.asVoid(served), pause(lastWords)), { _tag: "Late" } as const)
        })
        return yield* Effect.timeoutOrElse(started, { duration: command.limit, orElse: () => abort })
      })
    )
  )
