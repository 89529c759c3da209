/** PDF: page by page. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { failing, load, messageOf } from "./failure.ts"
import { openPages } from "./pdfPages.ts"

export const fail = failing("PDF")

/** A document that is open until its scope ends: how many pages it has, and the text of one. */
export interface Opened {
  readonly count: number
  readonly text: (page: number) => Effect.Effect<string, DocumentError>
}

export type Open = (
  bytes: Uint8Array,
  password: string | undefined
) => Effect.Effect<Opened, DocumentError, Scope.Scope>

const pageTime = "20 seconds"

const scan = "[no text on this page; it may be a scan or a picture]\n"

/** The failure of a document that the parser has given up, by the name that it gave its error. */
export const failureOf = (name: string, message: string, cause?: unknown): DocumentError =>
  name === "PasswordException"
    ? fail("Encrypted", "it needs a password, or another one", cause)
    : fail("Damaged", message, cause)

const attempt = <A>(promise: () => Promise<A>): Effect.Effect<A, DocumentError> =>
  Effect.tryPromise({
    try: promise,
    catch: (cause) => failureOf(cause instanceof Error ? cause.name : "", messageOf(cause), cause)
  }).pipe(
    Effect.timeoutOrElse({
      duration: pageTime,
      orElse: () => Effect.fail(fail("TimedOut", `a page of it took longer than ${pageTime}`))
    })
  )

const openHere: Open = (bytes, password) =>
  Effect.gen(function* () {
    const { getDocumentProxy } = yield* load(fail, "unpdf", () => import("unpdf"))
    const pages = yield* Effect.acquireRelease(
      attempt(() => openPages(getDocumentProxy, bytes, password)),
      ({ close }) => Effect.ignore(Effect.tryPromise(close))
    )
    return { count: pages.count, text: (page) => attempt(() => pages.text(page)) }
  })

/** The way in which documents are opened: in the thread of the program, unless a layer has a better one. */
export const Opener = Context.Reference<Open>("effect-deepagents/tools/Documents/Opener", {
  defaultValue: () => openHere
})

const pieceOf = (number: number, text: string): Piece => ({
  part: number,
  label: `page ${number}`,
  text: text === "" ? scan : `${text}\n`
})

export const read = ({ bytes, from = 1, password }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const open = yield* Opener
      const { count, text } = yield* open(bytes, password === undefined ? undefined : Redacted.value(password))
      const start = Math.max(1, Math.floor(from))
      if (start > count) return Stream.empty
      return Stream.range(start, count).pipe(
        Stream.rechunk(1),
        Stream.mapEffect((number) => Effect.map(text(number), (found) => pieceOf(number, found)))
      )
    })
  )
