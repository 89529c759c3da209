/** Threads of Node that answer questions: programs that can only be ended from outside. */
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"

export type { Worker }

/** A thread that could not answer. `missing` is the name of a package that is not there. */
export interface Trouble {
  readonly message: string
  readonly missing?: string | undefined
  readonly isMemory: boolean
}

/** Node's own words for a package that is not there. */
const missing = /Cannot find (?:package|module) '([^']+)'/

const troubleOf = (cause: unknown): Trouble => {
  const message = cause instanceof Error ? cause.message : String(cause)
  const isMemory = cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY"
  return { message, missing: missing.exec(message)?.[1], isMemory }
}

/** Starts a thread, with so many megabytes of memory at most. */
export const start = (program: URL, maxMemory: number): Effect.Effect<Worker, Trouble> =>
  Effect.try({
    try: () => {
      const worker = new Worker(program, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: maxMemory } })
      // Nobody listens to it between two questions.
      return worker.on("error", () => undefined)
    },
    catch: troubleOf
  })

interface Numbered {
  readonly id: number
}

/** Asks a thread, which answers with the number of the question. */
export const ask = <Answer extends Numbered>(worker: Worker, question: Numbered): Effect.Effect<Answer, Trouble> =>
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

/** Waits until a thread holds more than so many bytes outside of its heap, which is not limited otherwise. */
export const isOver = (worker: Worker, limit: number): Effect.Effect<void> =>
  Effect.promise(() => worker.getHeapStatistics()).pipe(
    Effect.delay("100 millis"),
    // A thread that has just ended holds nothing.
    Effect.catchCause(() => Effect.never),
    Effect.repeat({ until: (held) => held.external_memory > limit }),
    Effect.asVoid
  )

/** Ends a thread, whatever it is doing. */
export const end = (worker: Worker): Effect.Effect<void> => Effect.asVoid(Effect.promise(() => worker.terminate()))
