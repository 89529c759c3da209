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
import type * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import { Opener } from "./internal/documents/pdf.ts"
import { opener } from "./internal/documents/pdfThread.ts"

/**
 * `timeout` of one page of a PDF: 20 seconds. `maxMemory` of a thread, in megabytes: 512; a document of less than 50 MB
 * gets ten times its size, and at least 128.
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

/**
 * Lets PDFs be read in threads, wherever they are read: by `read_file`, by `fetch_url`, by `Documents`. A thread begins
 * with a document and ends with it. A page that takes too long is `TimedOut`, a document that takes too much memory
 * `TooLarge`; the program goes on meanwhile.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never> => Layer.succeed(Opener, opener(program, options))
