/**
 * Finds the article of a web page on Node, in a thread of its own with bounds on time and memory.
 *
 * Needs the packages `@mozilla/readability`, `linkedom`, `turndown` and `htmlparser2`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { WebReader } from "effect-deepagents/web"
 * import * as NodeWebReader from "effect-deepagents/web/NodeWebReader"
 *
 * const program = Effect.gen(function* () {
 *   const { read } = yield* WebReader.WebReader
 *   return yield* read("<h1>Ulm</h1><p>It lies on the Danube.</p>", "https://example.com/ulm")
 * }).pipe(Effect.provide(NodeWebReader.layer()))
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as NodeDocuments from "../documents/NodeDocuments.ts"
import * as threads from "../support/effect/threads.ts"
import type { Answer, Ask } from "./internal/pages/messages.ts"
import { type Article, Unreadable, WebReader } from "./WebReader.ts"

/** `timeout` of one page: 10 seconds, and 20 for one of a PDF. `maxMemory` of the thread, in megabytes: 512. */
export interface Options {
  readonly timeout?: Duration.Input | undefined
  readonly maxMemory?: number | undefined
}

const unreadable = (message: string) => new Unreadable({ message })

/** Apart from `new Worker`: a bundler that follows workers would want packages that may not be installed. */
const program = () => new URL("./internal/pages/worker.ts", import.meta.url)

const troubled = ({ message, missing }: threads.Trouble): Unreadable =>
  unreadable(
    missing === undefined
      ? message
      : `the package "${missing}" could not be loaded; install what reads pages: npm install @mozilla/readability linkedom turndown htmlparser2`
  )

/** Asks a thread for one page. */
const ask = (worker: threads.Worker, question: Ask): Effect.Effect<Article, Unreadable> =>
  threads.ask<Answer>(worker, question).pipe(
    Effect.mapError(troubled),
    Effect.flatMap((answer) =>
      "article" in answer ? Effect.succeed(answer.article) : Effect.fail(unreadable(answer.problem))
    )
  )

const reader = (options: Options) =>
  Layer.effect(
    WebReader,
    Effect.gen(function* () {
      const one = yield* Semaphore.make(1)
      const timeout = Duration.fromInputUnsafe(options.timeout ?? "10 seconds")
      const maxMemory = options.maxMemory ?? 512
      const most = { heap: maxMemory * 1_000_000, external: maxMemory * 1_000_000 }
      let worker: threads.Worker | undefined
      let id = 0
      const end = Effect.suspend(() => {
        const ended = worker
        worker = undefined
        return ended === undefined ? Effect.void : threads.end(ended)
      })
      yield* Effect.addFinalizer(() => end)

      const read = (html: string, url: string) =>
        Effect.gen(function* () {
          const current = worker ?? (yield* Effect.mapError(threads.start(program, maxMemory), troubled))
          if (worker === undefined) {
            worker = current
            current.on("exit", () => {
              if (worker === current) worker = undefined
            })
          }
          // A thread that waits keeps no process alive.
          current.ref()
          const article = yield* Effect.raceFirst(
            ask(current, { id: ++id, html, url }),
            Effect.andThen(threads.isOver(current, most), Effect.fail(unreadable(`it took more than ${maxMemory} MB`)))
          )
          current.unref()
          return article
        }).pipe(
          Effect.timeoutOrElse({
            duration: timeout,
            orElse: () => Effect.fail(unreadable(`it took longer than ${Duration.format(timeout)}`))
          }),
          // Work on the page that goes on is of no use any more, and in the way of the next one.
          Effect.onError(() => end),
          one.withPermits(1)
        )
      return WebReader.of({ read })
    })
  )

/**
 * A reader with one thread, which begins with the first page and ends with the layer. Pages wait for each other. A page
 * that takes too long, or too much memory, ends the thread, and fails; the next page begins another one. PDFs are read in
 * threads of their own, as by `NodeDocuments.layer`.
 */
export const layer = (options: Options = {}): Layer.Layer<WebReader> =>
  Layer.merge(NodeDocuments.layer({ maxMemory: options.maxMemory }), reader(options))
