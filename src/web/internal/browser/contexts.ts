/** The browser context of a thread: its pages, and events that the agent has not read. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Browser as Chromium, BrowserContext, Page } from "playwright-core"
import { observed } from "../../../support/effect/observed.ts"
import { BrowserError } from "../../Browser.ts"
import { attempt } from "./launch.ts"

/** Maximum number of pages of a context. */
const maxPages = 8

/** Maximum number of notes until the next snapshot. */
const maxNotes = 20

/** Maximum number of unread console messages, and characters of one. The oldest are dropped. */
const maxMessages = 100
const maxMessage = 500

/** Lets a page open windows only in answer to a click or a key, as whole browsers do. */
const blockWindows = `{
  const open = window.open
  window.open = function (...given) {
    return navigator.userActivation?.isActive === true ? open.apply(this, given) : null
  }
}`

/** An open context. `page` is the page that the agent sees. */
export interface OpenContext {
  readonly context: BrowserContext
  readonly turn: Semaphore.Semaphore
  page: Page
  /** The page whose next download is expected. Other downloads are cancelled. */
  downloading: Page | undefined
  /** Events since the last snapshot. */
  notes: Array<string>
  /** Unread console messages. */
  console: Array<string>
}

/** Notes an event for the next snapshot. */
export const addNote = (opened: OpenContext, text: string): void => {
  if (opened.notes.length < maxNotes && !opened.notes.includes(text)) opened.notes.push(text)
}

/** Watches the console, dialogs, downloads and the end of a page. */
const watchPage = (opened: OpenContext, page: Page): void => {
  const addMessage = (text: string) => {
    opened.console.push(text.slice(0, maxMessage))
    if (opened.console.length > maxMessages) opened.console.shift()
  }
  page.on("console", (message) => addMessage(`${message.type()}: ${message.text()}`))
  page.on("pageerror", (error) => addMessage(`uncaught: ${error.message}`))
  page.on("dialog", (dialog) => {
    // Dismissing `beforeunload` would keep the agent on the page.
    const isAccepted = ["alert", "beforeunload"].includes(dialog.type())
    addNote(
      opened,
      `the page showed a dialog (${dialog.type()}), which was ${isAccepted ? "closed" : "dismissed"}: ${dialog.message().slice(0, 500)}`
    )
    void observed(isAccepted ? dialog.accept() : dialog.dismiss())
  })
  page.on("download", (download) => {
    if (opened.downloading === page) opened.downloading = undefined
    else void observed(download.cancel())
  })
  page.on("close", () => {
    if (opened.page === page) opened.page = opened.context.pages().at(-1) ?? opened.page
  })
}

/** Opens a context with one page. When a link opens another page, the agent sees that one. */
export const openContext = (chromium: Chromium): Effect.Effect<OpenContext, BrowserError> =>
  Effect.gen(function* () {
    const context = yield* attempt(() =>
      chromium.newContext({ serviceWorkers: "block", acceptDownloads: true, viewport: { width: 1280, height: 800 } })
    )
    const page = yield* Effect.onError(
      attempt(() => context.newPage()),
      () => Effect.ignore(attempt(() => context.close()))
    )
    const opened: OpenContext = {
      context,
      page,
      turn: Semaphore.makeUnsafe(1),
      downloading: undefined,
      notes: [],
      console: []
    }
    yield* attempt(() => context.addInitScript(blockWindows))
    watchPage(opened, page)
    context.on("page", (fresh) => {
      if (context.pages().length > maxPages) {
        addNote(opened, `a window was closed, since ${maxPages} pages are open`)
        void observed(fresh.close())
        return
      }
      opened.page = fresh
      watchPage(opened, fresh)
    })
    return opened
  })

/** Milliseconds in which the script of a page must let others run. */
const hangTimeout = 3_000

/** Returns true if a page hangs, has crashed, or is closed. */
const isHung = (page: Page): Effect.Effect<boolean> =>
  attempt(() => page.evaluate("1")).pipe(
    Effect.timeoutOption(hangTimeout),
    Effect.map((answer) => answer._tag === "None"),
    Effect.orElseSucceed(() => true)
  )

/** Closes hung pages of a context, which ends their process. A new page replaces the page that the agent sees. */
const replaceHung = (opened: OpenContext): Effect.Effect<boolean, BrowserError> =>
  Effect.gen(function* () {
    const { context, page } = opened
    if (!(yield* isHung(page))) return false
    const others = context.pages().filter((one) => one !== page)
    const hung = yield* Effect.filter(others, isHung, { concurrency: "unbounded" })
    const fresh = yield* attempt(() => context.newPage())
    yield* Effect.forEach([page, ...hung], (one) => Effect.ignore(attempt(() => one.close())), {
      concurrency: "unbounded",
      discard: true
    })
    opened.page = fresh
    return true
  })

/** Fails with a problem, after hung pages were replaced. If that fails too, `close` ends the whole context. */
export const recoverContext = (
  opened: OpenContext,
  problem: BrowserError,
  timeout: number,
  close: Effect.Effect<void>
): Effect.Effect<never, BrowserError> =>
  replaceHung(opened).pipe(
    Effect.timeout(2 * hangTimeout + timeout),
    Effect.catch(() => Effect.as(close, true)),
    Effect.flatMap((isReplaced) =>
      Effect.fail(
        isReplaced
          ? new BrowserError({ message: `${problem.message}; the page hung, and was closed: open another one` })
          : problem
      )
    )
  )
