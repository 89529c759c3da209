/**
 * Reads documents of strangers on Node without holding the program up: each PDF in a thread of its own, with bounds on
 * time and memory. The formats are those of `Documents`.
 *
 * Needs the package `unpdf`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Documents } from "effect-deepagents/tools"
 * import * as NodeDocuments from "effect-deepagents/tools/NodeDocuments"
 *
 * const textOf = (bytes: Uint8Array) =>
 *   Documents.text({ bytes }).pipe(Effect.provide(NodeDocuments.layer({ maxMemory: 256 })))
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { DocumentError } from "../core/Document.ts"
import { fail, failureOf, type Open, Opener } from "./internal/documents/pdf.ts"
import type { Answer, Ask } from "./internal/documents/pdfWorker.ts"
import * as threads from "./internal/threads.ts"

/**
 * `timeout` of one page of a PDF: 20 seconds. `maxMemory` of a thread, in megabytes: 512.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly timeout?: Duration.Input | undefined
  readonly maxMemory?: number | undefined
}

/** Apart from `new Worker`: a bundler that follows workers would want packages that may not be installed. */
const program = () => new URL("./internal/documents/pdfWorker.ts", import.meta.url)

const unavailable = 'the package "unpdf" could not be loaded; install it: npm install unpdf'

const megabyte = 1_000_000

/** What a small document may unpack to; a larger one to ten times its size. */
const always = 64 * megabyte

const tooMuch = (bytes: number): DocumentError =>
  fail("TooLarge", `it takes more than ${Math.round(bytes / megabyte)} MB of memory to read`)

const opener = ({ maxMemory = 512, timeout = "20 seconds" }: Options): Open => {
  const patience = Duration.fromInputUnsafe(timeout)
  const troubled = ({ isMemory, message, missing }: threads.Trouble): DocumentError =>
    isMemory
      ? tooMuch(maxMemory * megabyte)
      : missing === "unpdf"
        ? fail("Unavailable", unavailable)
        : fail("Damaged", message)
  return (bytes, password) =>
    Effect.gen(function* () {
      const most = Math.min(maxMemory * megabyte, Math.max(always, 10 * bytes.length))
      const worker = yield* Effect.acquireRelease(
        Effect.mapError(threads.start(program(), maxMemory), troubled),
        threads.end
      )
      const asked = (question: Ask, what: string) =>
        threads.ask<Answer>(worker, question).pipe(
          Effect.mapError(troubled),
          Effect.raceFirst(Effect.flatMap(threads.isOver(worker, most), () => Effect.fail(tooMuch(most)))),
          Effect.timeoutOrElse({
            duration: patience,
            orElse: () => Effect.fail(fail("TimedOut", `${what} took longer than ${Duration.format(patience)}`))
          }),
          Effect.flatMap((answer) =>
            "problem" in answer
              ? Effect.fail(
                  answer.isMissing ? fail("Unavailable", unavailable) : failureOf(answer.name, answer.problem)
                )
              : Effect.succeed(answer)
          )
        )
      const opened = yield* asked({ id: 0, bytes, password }, "its beginning")
      return {
        count: "count" in opened ? opened.count : 0,
        text: (page) =>
          Effect.map(asked({ id: page, page }, `page ${page}`), (answer) => ("text" in answer ? answer.text : ""))
      }
    })
}

/**
 * Lets PDFs be read in threads, wherever they are read: by `read_file`, by `fetch_url`, by `Documents`. A thread begins
 * with a document and ends with it. A page that takes too long is `TimedOut`, a document that takes too much memory
 * `TooLarge`; the program goes on meanwhile.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never> => Layer.succeed(Opener, opener(options))
