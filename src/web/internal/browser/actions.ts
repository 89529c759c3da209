/** Performs the actions of an agent on a page. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Download as File, Page } from "playwright-core"
import { valueAt } from "../../../support/json/valueAt.ts"
import { BrowserError } from "../../Browser.ts"
import type { OpenContext } from "./contexts.ts"
import { attempt } from "./launch.ts"
import type { Action, Download } from "./model.ts"
import { performStep } from "./screen.ts"

/** Types of uploaded files by extension. */
const types: { readonly [extension: string]: string | undefined } = {
  csv: "text/csv",
  gif: "image/gif",
  html: "text/html",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  json: "application/json",
  md: "text/markdown",
  pdf: "application/pdf",
  png: "image/png",
  txt: "text/plain",
  webp: "image/webp",
  zip: "application/zip"
}

const typeOf = (name: string): string =>
  valueAt(types, /\.(\w+)$/.exec(name)?.[1]?.toLowerCase()) ?? "application/octet-stream"

const stale = "; the page may have changed: take a new snapshot, and use its numbers"

/** Finds an element by its number. Elements in frames have numbers such as `f1e7`. */
const findElement = (page: Page, ref: string) => page.locator(`aria-ref=${ref.replaceAll(/[^a-z0-9]/gi, "")}`)

/** Performs an action on the page that the agent sees. */
export const performAction = (
  opened: OpenContext,
  action: Action,
  timeout: number
): Effect.Effect<unknown, BrowserError> => {
  const { page } = opened
  switch (action._tag) {
    case "Open":
      return /^https?:\/\//i.test(action.url)
        ? attempt(() => page.goto(action.url, { waitUntil: "domcontentloaded", timeout: 3 * timeout }))
        : Effect.fail(new BrowserError({ message: "give a whole address, as in https://example.com/" }))
    case "Back":
      return attempt(() => page.goBack({ waitUntil: "domcontentloaded", timeout }))
    case "Click":
      return attempt(() => findElement(page, action.ref).click({ timeout }), stale)
    case "Upload":
      return attempt(async () => {
        const [chooser] = await Promise.all([
          page.waitForEvent("filechooser", { timeout }),
          findElement(page, action.ref).click({ timeout })
        ])
        const files = action.files.map(({ bytes, name }) => ({
          name,
          mimeType: typeOf(name),
          buffer: Buffer.from(bytes)
        }))
        await chooser.setFiles(files, { timeout })
      }, `; it asks for no file${stale}`)
    case "ShowTab":
    case "CloseTab": {
      const { _tag, index } = action
      const tab = opened.context.pages()[index]
      if (tab === undefined) {
        return Effect.fail(new BrowserError({ message: `there is no tab ${index}; take a snapshot, which lists them` }))
      }
      if (_tag === "CloseTab" && opened.context.pages().length === 1) {
        return Effect.fail(new BrowserError({ message: "it is the last tab, which stays; open another page in it" }))
      }
      return _tag === "CloseTab"
        ? attempt(() => tab.close())
        : Effect.sync(() => {
            opened.page = tab
          })
    }
    case "Hover":
      return attempt(() => findElement(page, action.ref).hover({ timeout }), stale)
    case "Press":
      return attempt(
        () =>
          action.ref === undefined
            ? page.keyboard.press(action.key)
            : findElement(page, action.ref).press(action.key, { timeout }),
        action.ref === undefined ? "" : stale
      )
    case "Type":
      return attempt(async () => {
        const field = findElement(page, action.ref)
        await field.fill(action.text, { timeout })
        if (action.submit) await field.press("Enter", { timeout })
      }, stale)
    case "Select":
      return attempt(() => findElement(page, action.ref).selectOption([...action.values], { timeout }), stale)
    case "Screen":
      return attempt(() => performStep(page, action.step))
    case "Wait": {
      const { seconds, text } = action
      return text === undefined
        ? attempt(() => page.waitForTimeout(seconds * 1000))
        : attempt(() =>
            page
              .getByText(text)
              .first()
              .waitFor({ timeout: seconds * 1000 })
          )
    }
  }
}

const readAll = async (chunks: AsyncIterable<Buffer>): Promise<Uint8Array> => {
  const parts: Array<Buffer> = []
  for await (const chunk of chunks) parts.push(chunk)
  return new Uint8Array(Buffer.concat(parts))
}

/**
 * Watches the size of the next download of a page. The inner effect fails when the download exceeds `maxBytes`: the page
 * reports the download itself only when it is complete.
 */
const watchSize = Effect.fnUntraced(function* (
  { context, page }: OpenContext,
  maxBytes: number
): Effect.fn.Return<Effect.Effect<never, BrowserError>, BrowserError, Scope.Scope> {
  const isTooLong = yield* Deferred.make<never, BrowserError>()
  const session = yield* Effect.acquireRelease(
    attempt(() => context.newCDPSession(page)),
    (session) => Effect.ignore(attempt(() => session.detach()))
  )
  let file: string | undefined
  session.on("Page.downloadWillBegin", ({ guid }) => {
    file ??= guid
  })
  session.on("Page.downloadProgress", ({ guid, receivedBytes, totalBytes }) => {
    if (guid === file && Math.max(receivedBytes, totalBytes) > maxBytes) {
      const message = `the file is longer than ${maxBytes} bytes, so nothing of it was kept`
      Deferred.doneUnsafe(isTooLong, Effect.fail(new BrowserError({ message })))
    }
  })
  yield* attempt(() => session.send("Page.enable"))
  return Deferred.await(isTooLong)
})

/** Clicks an element, and reads the file that the page offers. */
export const downloadFile = (
  opened: OpenContext,
  ref: string,
  options: { readonly timeout: number; readonly maxBytes: number }
): Effect.Effect<Download, BrowserError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { maxBytes, timeout } = options
      const { page } = opened
      const isTooLong = yield* watchSize(opened, maxBytes)
      opened.downloading = page
      const file: File = yield* attempt(async () => {
        const [download] = await Promise.all([
          page.waitForEvent("download", { timeout }),
          findElement(page, ref).click({ timeout })
        ])
        return download
      }, `; it gives no file${stale}`).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            opened.downloading = undefined
          })
        )
      )
      return yield* attempt(async () => readAll(await file.createReadStream())).pipe(
        Effect.map((bytes) => ({ name: file.suggestedFilename(), bytes })),
        Effect.raceFirst(isTooLong),
        Effect.timeoutOrElse({
          duration: 3 * timeout,
          orElse: () => Effect.fail(new BrowserError({ message: `the file did not come within ${3 * timeout} ms` }))
        }),
        Effect.ensuring(Effect.ignore(attempt(() => file.cancel().then(() => file.delete()))))
      )
    })
  )
