/**
 * Extracts the article of a web page in its own thread on Node, with limits on time and memory.
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
import { makeLayerCheck } from "../support/options/check.ts"
import type { Answer, Article, Ask } from "./internal/pages/messages.ts"
import * as shapes from "./internal/shapes.ts"
import { Unreadable, WebReader } from "./WebReader.ts"

/** Options of the reader. */
export interface Options {
  /** Time limit of one HTML page. Default: 10 seconds. */
  readonly timeout?: Duration.Input | undefined
  /** Memory limit of a thread in megabytes. Default: 512. */
  readonly maxMemory?: number | undefined
}

const unreadable = (message: string) => new Unreadable({ message })

/** Kept apart from `new Worker`, since bundlers that follow workers would require optional packages. */
const program = () => new URL("./internal/pages/worker.ts", import.meta.url)

const describeTrouble = ({ message, missing }: threads.Trouble): Unreadable =>
  unreadable(
    missing === undefined
      ? message
      : `the package "${missing}" could not be loaded; install what reads pages: npm install @mozilla/readability linkedom turndown htmlparser2`
  )

/** Reads one page in a thread. */
const ask = (worker: threads.Worker, question: Ask): Effect.Effect<Article, Unreadable> =>
  threads.ask<Answer>(worker, question).pipe(
    Effect.mapError(describeTrouble),
    Effect.flatMap((answer) =>
      "article" in answer ? Effect.succeed(answer.article) : Effect.fail(unreadable(answer.problem))
    )
  )

const layerReader = (options: Options) =>
  Layer.effect(
    WebReader,
    Effect.gen(function* () {
      const lock = yield* Semaphore.make(1)
      const timeout = Duration.fromInputUnsafe(options.timeout ?? "10 seconds")
      const maxMemory = options.maxMemory ?? 512
      const limits = { heap: maxMemory * 1_000_000, external: maxMemory * 1_000_000 }
      let worker: threads.Worker | undefined
      let id = 0
      const end = Effect.suspend(() => {
        const ended = worker
        worker = undefined
        return ended === undefined ? Effect.void : threads.end(ended)
      })
      yield* Effect.addFinalizer(() => end)

      const readPage = (html: string, url: string) =>
        Effect.gen(function* () {
          const current = worker ?? (yield* Effect.mapError(threads.start(program, maxMemory), describeTrouble))
          if (worker === undefined) {
            worker = current
            current.on("exit", () => {
              if (worker === current) worker = undefined
            })
          }
          // An idle thread must not keep the process alive.
          current.ref()
          const article = yield* Effect.raceFirst(
            ask(current, { id: ++id, html, url }),
            Effect.andThen(
              threads.isOver(current, limits),
              Effect.fail(unreadable(`it took more than ${maxMemory} MB`))
            )
          )
          current.unref()
          return article
        }).pipe(
          Effect.timeoutOrElse({
            duration: timeout,
            orElse: () => Effect.fail(unreadable(`it took longer than ${Duration.format(timeout)}`))
          }),
          // A failed page may keep the thread busy, so the next page starts another thread.
          Effect.onError(() => end),
          lock.withPermits(1)
        )
      return WebReader.of({ read: readPage })
    })
  )

const refuseLayer = makeLayerCheck("NodeWebReader.layer", shapes.nodeWebReaderLayer)

/**
 * Reads pages one at a time in one thread, which starts with the first page and ends with the layer. A page that takes
 * too much time or memory fails, and ends the thread. Each PDF has its own thread, as with `NodeDocuments.layer`.
 */
export const layer = (options: Options = {}): Layer.Layer<WebReader> =>
  refuseLayer(options) ?? Layer.merge(NodeDocuments.layer({ maxMemory: options.maxMemory }), layerReader(options))
