/** Threads of Node for programs that can only be stopped from outside. */
import * as Effect from "effect/Effect"

interface HeapStatistics {
  readonly external_memory: number
  readonly used_heap_size: number
}

/** The used part of a worker of Node. */
export interface Worker {
  readonly on: (event: "message" | "error" | "exit", listener: (value: never) => void) => Worker
  readonly off: (event: "message" | "error" | "exit", listener: (value: never) => void) => Worker
  readonly postMessage: (message: unknown) => void
  readonly getHeapStatistics: () => Promise<HeapStatistics>
  readonly terminate: () => Promise<number>
  readonly ref: () => void
  readonly unref: () => void
}

/** The data, the environment and the output of a thread. */
export interface Settings {
  readonly workerData?: unknown
  /** The environment variables of the thread. Default: a copy of the program's. */
  readonly env?: { readonly [name: string]: string } | undefined
  /** True for a thread whose output nobody sees. */
  readonly stdout?: boolean | undefined
  readonly stderr?: boolean | undefined
  readonly execArgv?: ReadonlyArray<string> | undefined
}

interface WorkerThreads {
  readonly Worker: new (
    program: URL,
    options: Settings & {
      readonly resourceLimits: { readonly maxOldGenerationSizeMb: number }
    }
  ) => Worker
}

/** The `process` of Node. Other runtimes have none, or another version. */
declare const process:
  | {
      readonly versions?: { readonly node?: string; readonly bun?: string; readonly deno?: string }
      readonly getBuiltinModule?: (name: "node:worker_threads") => WorkerThreads
    }
  | undefined

/** Reports whether the program runs on Node itself. Bun and Deno have threads too, but without bounds on memory. */
export const isNode = (): boolean => {
  const versions = typeof process === "undefined" ? undefined : process.versions
  return versions?.node !== undefined && versions.bun === undefined && versions.deno === undefined
}

/** Loads the module of threads without an import, which a bundle for browsers could not resolve. */
const workerThreads = (): WorkerThreads | undefined =>
  typeof process === "undefined" ? undefined : process.getBuiltinModule?.("node:worker_threads")

/** A failure of a thread. `missing` is the name of a missing package. */
export interface Trouble {
  readonly message: string
  readonly missing?: string | undefined
  readonly isMemory: boolean
}

/** Node's message for a missing package. */
const missing = /Cannot find (?:package|module) '([^']+)'/

const troubleOf = (cause: unknown): Trouble => {
  const message = cause instanceof Error ? cause.message : String(cause)
  const isMemory = cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY"
  return { message, missing: missing.exec(message)?.[1], isMemory }
}

/** The heap in megabytes that a thread may use beyond its limit until the next check. */
const margin = 1024

/**
 * Starts a thread with a memory limit in megabytes, which the caller checks. Node's own limit is well above it, since
 * Node ends the process when a thread far exceeds it in one step.
 */
export const start = (program: () => URL, maxMemory: number, settings: Settings = {}): Effect.Effect<Worker, Trouble> =>
  Effect.suspend((): Effect.Effect<Worker, Trouble> => {
    const module = workerThreads()
    if (module === undefined) return Effect.fail({ message: "this runtime has no threads of Node", isMemory: false })
    return Effect.try({
      try: () => {
        const worker = new module.Worker(program(), {
          execArgv: [],
          ...settings,
          resourceLimits: { maxOldGenerationSizeMb: maxMemory + margin }
        })
        // Nobody listens between two questions.
        return worker.on("error", () => undefined)
      },
      catch: troubleOf
    })
  })

interface NumberedAnswer {
  readonly id: number
}

/** Asks a thread, which answers with the number of the question. */
export const ask = <Answer extends NumberedAnswer>(
  worker: Worker,
  question: NumberedAnswer
): Effect.Effect<Answer, Trouble> =>
  Effect.callback<Answer, Trouble>((resume) => {
    const settle = (result: Effect.Effect<Answer, Trouble>) => {
      forget()
      resume(result)
    }
    const onMessage = (answer: Answer) => {
      if (answer.id === question.id) settle(Effect.succeed(answer))
    }
    const onError = (cause: unknown) => settle(Effect.fail(troubleOf(cause)))
    const onExit = (code: number) =>
      settle(Effect.fail({ message: `its reader ended with code ${code}`, isMemory: false }))
    const forget = () => worker.off("message", onMessage).off("error", onError).off("exit", onExit)
    worker.on("message", onMessage).on("error", onError).on("exit", onExit)
    worker.postMessage(question)
    return Effect.sync(forget)
  })

/** Waits until a thread holds more than so many bytes in its heap, or outside of it. */
export const isOver = (
  worker: Worker,
  most: { readonly heap: number; readonly external: number }
): Effect.Effect<"heap" | "external"> =>
  Effect.promise(() => worker.getHeapStatistics()).pipe(
    Effect.map(({ external_memory: external, used_heap_size: heap }) =>
      external > most.external ? "external" : heap > most.heap ? "heap" : undefined
    ),
    // A thread that does not run holds nothing.
    Effect.catchCause(() => Effect.undefined),
    Effect.delay("100 millis"),
    Effect.repeat({ until: (over) => over !== undefined }),
    Effect.map((over) => over ?? "heap")
  )

/** Ends a thread at any point of its work. */
export const end = (worker: Worker): Effect.Effect<void> => Effect.asVoid(Effect.promise(() => worker.terminate()))
