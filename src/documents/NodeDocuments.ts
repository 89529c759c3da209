/**
 * Sets the limits of the threads that read PDFs on Node. `Documents` reads each PDF in a thread without this layer; use
 * it for another time or memory limit.
 *
 * Needs the package `unpdf`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Documents } from "effect-deepagents/documents"
 * import * as NodeDocuments from "effect-deepagents/documents/NodeDocuments"
 *
 * const textOf = (bytes: Uint8Array) =>
 *   Documents.text({ bytes }).pipe(Effect.provide(NodeDocuments.layer({ maxMemory: 256 })))
 * ```
 */
import type * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import { makeLayerCheck } from "../support/options/check.ts"
import { Opener } from "./internal/pdf/pdf.ts"
import { makeOpener } from "./internal/pdf/pdfThread.ts"
import * as shapes from "./internal/shapes.ts"

/** Limits of the threads that read documents. */
export interface Options {
  /** The time limit of one page of a PDF. Default: 20 seconds. */
  readonly timeout?: Duration.Input | undefined
  /**
   * The most memory of a thread, in megabytes. A document of less than 50 MB gets ten times its size, and at least
   * 128. Default: 512.
   */
  readonly maxMemory?: number | undefined
}

const refuseLayer = makeLayerCheck("NodeDocuments.layer", shapes.nodeDocumentsLayer)

/**
 * Reads PDFs in threads with these limits, in `read_file`, `fetch_url` and `Documents` alike. A thread begins with a
 * document and ends with it. A page that takes too long fails with `TimedOut`, a document that takes too much memory
 * with `TooLarge`.
 */
export const layer = (options: Options = {}): Layer.Layer<never> =>
  refuseLayer(options) ?? Layer.succeed(Opener, makeOpener(options))
