/**
 * Reads documents as text: PDF, Word, Excel, PowerPoint, OpenDocument, RTF, EPUB, HTML, CSV, notebooks, mail.
 *
 * Each format streams pieces with the page, sheet or slide that they belong to, so readers can stop early and cite
 * passages. Hostile documents can't throw, hang or exhaust memory: an archive that unpacks to too much fails with
 * `TooLarge`. On Node, each PDF is read in its own thread; on other runtimes, a hostile PDF can block the program.
 *
 * PDF needs the package `unpdf`, mail `postal-mime`, HTML and EPUB `htmlparser2`. The others need no package.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Backend } from "effect-deepagents"
 * import { DeepAgent } from "effect-deepagents/deep"
 * import { Documents } from "effect-deepagents/documents"
 *
 * // An agent whose read_file understands documents.
 * const clerk = DeepAgent.make({ name: "clerk", prompt: "You cite pages.", documents: Documents.formats })
 *
 * // The text of a document from anywhere.
 * const textOf = (bytes: Uint8Array) => Documents.text({ bytes, name: "report.docx" })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Document from "../core/Document.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { headOf } from "../support/text/text.ts"
import * as table from "./internal/formats.ts"
import * as shapes from "./internal/shapes.ts"

/**
 * All formats of this module, for `DeepAgent`, `FileTools` and {@link Document.find}. Filter the list to allow some, or
 * put a format of your own first.
 */
export const formats: ReadonlyArray<Document.Format> = table.formats

/**
 * Streams the pieces of a document. It detects the format by the bytes, else by the type, else by the name, and fails
 * with `Unsupported` for an unknown format.
 */
export const stream = (input: Document.Input): Stream.Stream<Document.Piece, Document.DocumentError> =>
  Stream.suspend(() => {
    const format = Document.find(formats, input)
    return format === undefined ? Stream.fail(table.failUnknown()) : Document.readPieces(format, input)
  })

const refuseText = makeEffectCheck("Documents.text", shapes.documentsText)

/**
 * Reads a document as one text, with a line such as `--- page 3 ---` before each named part. The text has at most `limit`
 * characters (default 1,000,000); `truncated` is true if the document has more.
 */
export const text = (
  input: Document.Input,
  options: {
    /** The most characters; `truncated` says whether there are more. Default: 1,000,000. */
    readonly limit?: number | undefined
  } = {}
): Effect.Effect<{ readonly text: string; readonly truncated: boolean }, Document.DocumentError> =>
  refuseText(options) ??
  Effect.suspend(() => {
    const limit = options.limit ?? 1_000_000
    let whole = ""
    return Document.lines(stream(input)).pipe(
      Stream.takeWhile(() => whole.length <= limit),
      Stream.runForEach((line) =>
        Effect.sync(() => {
          whole += whole === "" ? line : `\n${line}`
        })
      ),
      Effect.map(() => ({ text: headOf(whole, limit), truncated: whole.length > limit }))
    )
  })
