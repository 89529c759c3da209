/** PDF: page by page, each forgotten before the next is read. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { headOf } from "../../../support/text.ts"
import { failing, load, messageOf } from "./failure.ts"

const fail = failing("PDF")

/** The text that is read of a page, in characters: what has more draws the same things over and over. */
const pageLength = 1_000_000

const pageTime = "20 seconds"

const scan = "[no text on this page; it may be a scan or a picture]\n"

const hasName = (cause: unknown, name: string): boolean => cause instanceof Error && cause.name === name

const failureOf = (cause: unknown): DocumentError =>
  hasName(cause, "PasswordException")
    ? fail("Encrypted", "it needs a password, or another one", cause)
    : fail("Damaged", messageOf(cause), cause)

const attempt = <A>(promise: () => Promise<A>): Effect.Effect<A, DocumentError> =>
  Effect.tryPromise({ try: promise, catch: failureOf }).pipe(
    Effect.timeoutOrElse({
      duration: pageTime,
      orElse: () => Effect.fail(fail("TimedOut", `a page of it took longer than ${pageTime}`))
    })
  )

/** A text item of a page, or a mark of its structure. */
interface Item {
  readonly str?: string
  readonly hasEOL?: boolean
}

interface Page {
  readonly streamTextContent: () => ReadableStream<{ readonly items: ReadonlyArray<Item> }>
  readonly cleanup: () => unknown
}

/** The text of a page, as far as it is bounded: the rest of the page is not gone through. */
const textOf = (page: Page): Effect.Effect<string, DocumentError> =>
  Effect.suspend(() => {
    let text = ""
    return Stream.fromReadableStream({ evaluate: () => page.streamTextContent(), onError: failureOf }).pipe(
      Stream.takeWhile(() => text.length < pageLength),
      Stream.runForEach(({ items }) =>
        Effect.sync(() => {
          for (const { hasEOL, str = "" } of items) text += hasEOL === true ? `${str}\n` : str
        })
      ),
      Effect.map(() =>
        headOf(text, pageLength)
          .split("\n")
          .map((line) => line.trimEnd())
          .join("\n")
          .trim()
      )
    )
  })

const pieceOf = (number: number, text: string): Piece => ({
  part: number,
  label: `page ${number}`,
  text: text === "" ? scan : `${text}\n`
})

/** The pages that are read of one opening of a document: its parser keeps something of each page until it is closed. */
const blockLength = 100

export const read = ({ bytes, from = 1, password }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { getDocumentProxy } = yield* load(fail, "unpdf", () => import("unpdf"))
      const open = Effect.acquireRelease(
        attempt(() =>
          // The parser takes the bytes for itself.
          getDocumentProxy(Uint8Array.from(bytes), {
            stopAtErrors: false,
            verbosity: 0,
            ...(password === undefined ? {} : { password: Redacted.value(password) })
          })
        ),
        (proxy) => Effect.ignore(Effect.tryPromise(() => proxy.loadingTask.destroy()))
      )
      const block = (first: number, last: number) =>
        Stream.unwrap(
          Effect.map(open, (document) =>
            Stream.range(first, last).pipe(
              Stream.rechunk(1),
              Stream.mapEffect((number) =>
                Effect.acquireUseRelease(
                  attempt(() => document.getPage(number)),
                  (page) =>
                    textOf(page).pipe(
                      Effect.timeoutOrElse({
                        duration: pageTime,
                        orElse: () => Effect.fail(fail("TimedOut", `page ${number} took longer than ${pageTime}`))
                      })
                    ),
                  (page) => Effect.sync(() => page.cleanup())
                ).pipe(Effect.map((text) => pieceOf(number, text)))
              )
            )
          )
        )
      const count = yield* Effect.scoped(Effect.map(open, ({ numPages }) => numPages))
      const start = Math.max(1, Math.floor(from))
      const starts = Array.from(
        { length: Math.max(0, Math.ceil((count - start + 1) / blockLength)) },
        (_, index) => start + index * blockLength
      )
      return Stream.fromIterable(starts).pipe(
        Stream.rechunk(1),
        Stream.flatMap((first) => block(first, Math.min(count, first + blockLength - 1)))
      )
    })
  )
