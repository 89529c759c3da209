/** Reads PDFs in the main thread, for runtimes without threads of Node. */
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../../core/Document.ts"
import { loadPackage, messageOf } from "../failure.ts"
import { fail, failureOf, type OpenFile } from "./pdfOpened.ts"
import { openPages } from "./pdfPages.ts"

const pageTime = "20 seconds"

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

export const openHere: OpenFile = (bytes, password) =>
  Effect.gen(function* () {
    const { getDocumentProxy } = yield* loadPackage(fail, "unpdf", () => import("unpdf"))
    const pages = yield* Effect.acquireRelease(
      attempt(() => openPages(getDocumentProxy, bytes, password)),
      ({ close }) => Effect.ignore(Effect.tryPromise(close))
    )
    return { count: pages.count, text: (page) => attempt(() => pages.text(page)) }
  })
