/**
 * Finds the article of a web page on Node, in a thread of its own with bounds on time and memory.
 *
 * Needs the packages `@mozilla/readability`, `linkedom`, `turndown` and `htmlparser2`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { WebReader } from "effect-deepagents/tools"
 * import * as NodeWebReader from "effect-deepagents/tools/NodeWebReader"
 *
 * const program = Effect.gen(function* () {
 *   const { read } = yield* WebReader.WebReader
 *   return yield* read("<h1>Ulm</h1><p>It lies on the Danube.</p>", "https://example.com/ulm")
 * }).pipe(Effect.provide(NodeWebReader.layer()))
 * ```
 */
import { Worker } from "node:worker_threads"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import { defined } from "../support/defined.ts"
import type { Answer, Ask } from "./internal/web/messages.ts"
import { type Article, Unreadable, WebReader } from "./WebReader.ts"

/**
 * `timeout` of one page: 10 seconds. `maxMemory` of the thread, in megabytes: 512.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly timeout?: Duration.Input | undefined
  readonly maxMemory?: number | undefined
}

const unreadable = (message: string) => new Unreadable({ message })

/** Apart from `new Worker`: a bundler that follows workers would want packages that may not be installed. */
const program = () => new URL("./internal/web/worker.ts", import.meta.url)

/** Node's own words for a package that is not there. */
const missing = /Cannot find (?:package|module) '([^']+)'/

const problemOf = (cause: unknown): Unreadable => {
  const message = cause instanceof Error ? cause.message : String(cause)
  const name = missing.exec(message)?.[1]
  return unreadable(
    name === undefined
      ? message
      : `the package "${name}" could not be loaded; install what reads pages: npm install @mozilla/readability linkedom turndown htmlparser2`
  )
}

const start = (options: Options) =>
  Effect.try({
    try: () =>
      new Worker(program(), {
        execArgv: [],
        resourceLimits: defined({ maxOldGenerationSizeMb: options.maxMemory ?? 512 })
      }),
    catch: problemOf
  })

/** Asks a thread for one page. */
const ask = (worker: Worker, question: Ask): Effect.Effect<Article, Unreadable> =>
  Effect.callback<Article, Unreadable>((resume) => {
    const settle = (result: Effect.Effect<Article, Unreadable>) => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit)
      resume(result)
    }
    const onMessage = (answer: Answer) => {
      if (answer.id !== question.id) return
      settle("article" in answer ? Effect.succeed(answer.article) : Effect.fail(unreadable(answer.problem)))
    }
    const onError = (cause: unknown) => settle(Effect.fail(problemOf(cause)))
    const onExit = (code: number) => settle(Effect.fail(unreadable(`its reader ended with code ${code}`)))
    worker.on("message", onMessage).on("error", onError).on("exit", onExit)
    worker.postMessage(question)
  })

/**
 * A reader with one thread, which begins with the first page and ends with the layer. Pages wait for each other. A page
 * that takes too long, or too much memory, ends the thread, and fails; the next page begins another one.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<WebReader> =>
  Layer.effect(
    WebReader,
    Effect.gen(function* () {
      const one = yield* Semaphore.make(1)
      const timeout = Duration.fromInputUnsafe(options.timeout ?? "10 seconds")
      let worker: Worker | undefined
      let id = 0
      const end = Effect.suspend(() => {
        const ended = worker
        worker = undefined
        return ended === undefined ? Effect.void : Effect.asVoid(Effect.promise(() => ended.terminate()))
      })
      yield* Effect.addFinalizer(() => end)

      const read = (html: string, url: string) =>
        Effect.gen(function* () {
          const current = worker ?? (yield* start(options))
          if (worker === undefined) {
            worker = current
            // Nobody listens to it between two pages.
            current
              .on("error", () => undefined)
              .on("exit", () => {
                if (worker === current) worker = undefined
              })
          }
          // A thread that waits keeps no process alive.
          current.ref()
          const article = yield* ask(current, { id: ++id, html, url })
          current.unref()
          return article
        }).pipe(
          Effect.timeoutOrElse({
            duration: timeout,
            orElse: () => Effect.fail(unreadable(`it took longer than ${Duration.format(timeout)}`))
          }),
          // What is still at work on the page is of no use any more, and in the way of the next one.
          Effect.onError(() => end),
          one.withPermits(1)
        )
      return WebReader.of({ read })
    })
  )
