/**
 * A real browser by Playwright, whose pages keep the rules of the network.
 *
 * Needs the package `playwright-core`, and a Chromium: one of the machine (`executablePath`), or Playwright's own.
 *
 * Everything that a page opens goes through a proxy on loopback which keeps the rules, redirects, frames, scripts and
 * WebSockets included; service workers are blocked. WebRTC has no way around it: that is checked in each browser when it
 * starts. Of what is encrypted, the proxy sees host and port.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import type { BrowserContext, Page } from "playwright-core"
import type * as Network from "../net/Network.ts"
import { observed } from "../support/effect/observed.ts"
import { loadPeer } from "../support/effect/peer.ts"
import type { Resolve } from "../support/http/connect.ts"
import * as proxy from "../support/http/proxy.ts"
import * as judging from "../support/http/rules.ts"
import { type Action, Browser, BrowserError } from "./Browser.ts"
import { attempt, launch } from "./internal/browser/launch.ts"
import { mostElements, readTree } from "./internal/browser/snapshot.ts"

export type { Resolve }

/**
 * - `rules` of the network
 * - `executablePath` of a Chromium; Playwright's own, if nothing is said
 * - `sandbox`: Chromium's own sandbox, which does not run as root: there, and in most containers, say `false`
 * - `timeout` of one action in milliseconds: 10,000; a page that is opened, and a file, may take three times as long
 * - `maxContexts`: threads that have one at once, 16; the one that was used least recently is closed
 * - `maxDownload` in bytes: 50,000,000; a longer file is given up while it comes, and nothing of it is kept
 * - `args`: more arguments of Chromium; those that lead pages past the proxy are refused
 * - `resolve`: takes the place of `dns.lookup`
 */
export interface Options {
  readonly rules: Network.Rules
  readonly executablePath?: string | undefined
  readonly sandbox?: boolean | undefined
  readonly timeout?: number | undefined
  readonly maxContexts?: number | undefined
  readonly maxDownload?: number | undefined
  readonly args?: ReadonlyArray<string> | undefined
  readonly resolve?: Resolve | undefined
}

/** Chromium's own calls home, which no page has asked for. */
const calls = [
  ..."update.googleapis.com content-autofill.googleapis.com optimizationguide-pa.googleapis.com".split(" "),
  ..."clients2.google.com clients4.google.com edgedl.me.gvt1.com".split(" ")
]

/** Pages that a context has at once: one that opens others has so many at most. */
const maxPages = 8

/** Notes that wait for the next snapshot. */
const maxNotes = 20

/** Messages of consoles that wait to be read; the oldest go first. */
const maxMessages = 100
const maxMessage = 500

/** Types of files that pages tell by their names. */
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
  types[/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ""] ?? "application/octet-stream"

/** Lets a page open windows only in answer to a click or a key, as whole browsers do. */
const blockWindows = `{
  const open = window.open
  window.open = function (...given) {
    return navigator.userActivation?.isActive === true ? open.apply(this, given) : null
  }
}`

/** A context, with the page that is looked at. One file of `takes` is waited for: nobody has asked for others. */
interface Opened {
  readonly context: BrowserContext
  readonly turn: Semaphore.Semaphore
  page: Page
  takes: Page | undefined
  /** Events that the agent has not been told of. */
  notes: Array<string>
  /** Messages of consoles that the agent has not read. */
  console: Array<string>
}

const stale = "; the page may have changed: take a new snapshot, and use its numbers"

/** The elements of frames are `f1e7`. */
const element = (page: Page, ref: string) => page.locator(`aria-ref=${ref.replaceAll(/[^a-z0-9]/gi, "")}`)

/** Notes an event for the next snapshot. */
const note = (opened: Opened, text: string): void => {
  if (opened.notes.length < maxNotes && !opened.notes.includes(text)) opened.notes.push(text)
}

/** The time in which the script of a page must let others run, in milliseconds. */
const patience = 3_000

/** Reports whether a page hangs: its script does not let others run. */
const hangs = (page: Page): Effect.Effect<boolean> =>
  attempt(() => page.evaluate("1")).pipe(
    Effect.timeoutOption(patience),
    Effect.map((answered) => answered._tag === "None"),
    // It crashed, or is closed.
    Effect.orElseSucceed(() => true)
  )

/** Closes the pages of a context that hang, which ends their process. A new page takes the place of one that is looked at. */
const replaceHung = (opened: Opened): Effect.Effect<boolean, BrowserError> =>
  Effect.gen(function* () {
    const { context, page } = opened
    if (!(yield* hangs(page))) return false
    const others = context.pages().filter((one) => one !== page)
    const hung = yield* Effect.filter(others, hangs, { concurrency: "unbounded" })
    const fresh = yield* attempt(() => context.newPage())
    yield* Effect.forEach([page, ...hung], (one) => Effect.ignore(attempt(() => one.close())), {
      concurrency: "unbounded",
      discard: true
    })
    opened.page = fresh
    return true
  })

const perform = (opened: Opened, action: Action, timeout: number): Effect.Effect<unknown, BrowserError> => {
  const { page } = opened
  switch (action._tag) {
    case "Open":
      return /^https?:\/\//i.test(action.url)
        ? attempt(() => page.goto(action.url, { waitUntil: "domcontentloaded", timeout: 3 * timeout }))
        : Effect.fail(new BrowserError({ message: "give a whole address, as in https://example.com/" }))
    case "Back":
      return attempt(() => page.goBack({ waitUntil: "domcontentloaded", timeout }))
    case "Click":
      return attempt(() => element(page, action.ref).click({ timeout }), stale)
    case "Upload":
      return attempt(async () => {
        const [chooser] = await Promise.all([
          page.waitForEvent("filechooser", { timeout }),
          element(page, action.ref).click({ timeout })
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
      return attempt(() => element(page, action.ref).hover({ timeout }), stale)
    case "Press":
      return attempt(
        () =>
          action.ref === undefined
            ? page.keyboard.press(action.key)
            : element(page, action.ref).press(action.key, { timeout }),
        action.ref === undefined ? "" : stale
      )
    case "Type":
      return attempt(async () => {
        const field = element(page, action.ref)
        await field.fill(action.text, { timeout })
        if (action.submit) await field.press("Enter", { timeout })
      }, stale)
    case "Select":
      return attempt(() => element(page, action.ref).selectOption([...action.values], { timeout }), stale)
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
 * Watches the next file that a page gives: the effect fails when more than so many bytes came, or are to come. The file
 * itself is told of when it is whole only.
 */
const watched = Effect.fnUntraced(function* (context: BrowserContext, page: Page, most: number) {
  const tooLong = yield* Deferred.make<never, BrowserError>()
  const session = yield* Effect.acquireRelease(
    attempt(() => context.newCDPSession(page)),
    (session) => Effect.ignore(attempt(() => session.detach()))
  )
  let file: string | undefined
  session.on("Page.downloadWillBegin", ({ guid }) => {
    file ??= guid
  })
  session.on("Page.downloadProgress", ({ guid, receivedBytes, totalBytes }) => {
    if (guid === file && Math.max(receivedBytes, totalBytes) > most) {
      const message = `the file is longer than ${most} bytes, so nothing of it was kept`
      Deferred.doneUnsafe(tooLong, Effect.fail(new BrowserError({ message })))
    }
  })
  yield* attempt(() => session.send("Page.enable"))
  return Deferred.await(tooLong)
})

/**
 * A browser that starts with the layer and ends with it, with its proxy. Fails if Playwright or Chromium can't be
 * started, or if WebRTC of this Chromium goes past the proxy.
 */
export const layer = (options: Options): Layer.Layer<Browser, BrowserError> =>
  Layer.effect(
    Browser,
    Effect.gen(function* () {
      const timeout = options.timeout ?? 10_000
      const most = options.maxDownload ?? 50_000_000
      const judge = judging.judge({ ...options.rules, deny: [...(options.rules.deny ?? []), ...calls] })
      const playwright = yield* loadPeer(
        "playwright-core",
        () => import("playwright-core"),
        (message) => new BrowserError({ message })
      )
      const guard = yield* proxy.start({ judge, resolve: options.resolve })
      const chromium = yield* launch(playwright.chromium, guard, { ...options, timeout })

      const scope = yield* Effect.scope
      const opening = yield* Semaphore.make(1)
      const contexts = new Map<string, Fiber.Fiber<Opened, BrowserError>>()

      const close = (thread: string) =>
        Effect.suspend(() => {
          const opened = contexts.get(thread)
          contexts.delete(thread)
          return opened === undefined
            ? Effect.void
            : Effect.ignore(Effect.flatMap(Fiber.join(opened), ({ context }) => attempt(() => context.close())))
        })

      const begin = Effect.gen(function* () {
        const context = yield* attempt(() =>
          chromium.newContext({
            serviceWorkers: "block",
            acceptDownloads: true,
            viewport: { width: 1280, height: 800 }
          })
        )
        const page = yield* Effect.onError(
          attempt(() => context.newPage()),
          () => Effect.ignore(attempt(() => context.close()))
        )
        const opened: Opened = {
          context,
          page,
          turn: Semaphore.makeUnsafe(1),
          takes: undefined,
          notes: [],
          console: []
        }
        yield* attempt(() => context.addInitScript(blockWindows))
        const look = (page: Page) => {
          const say = (text: string) => {
            opened.console.push(text.slice(0, maxMessage))
            if (opened.console.length > maxMessages) opened.console.shift()
          }
          page.on("console", (message) => say(`${message.type()}: ${message.text()}`))
          page.on("pageerror", (error) => say(`uncaught: ${error.message}`))
          page.on("dialog", (dialog) => {
            // Dismissing `beforeunload` would keep the agent on the page.
            const isAccepted = ["alert", "beforeunload"].includes(dialog.type())
            note(
              opened,
              `the page showed a dialog (${dialog.type()}), which was ${isAccepted ? "closed" : "dismissed"}: ${dialog.message().slice(0, 500)}`
            )
            void observed(isAccepted ? dialog.accept() : dialog.dismiss())
          })
          page.on("download", (download) => {
            if (opened.takes === page) opened.takes = undefined
            else void observed(download.cancel())
          })
          page.on("close", () => {
            if (opened.page === page) opened.page = context.pages().at(-1) ?? opened.page
          })
        }
        look(page)
        // A page that a link opens beside this one is the one that the agent looks at next.
        context.on("page", (page) => {
          if (context.pages().length > maxPages) {
            note(opened, `a window was closed, since ${maxPages} pages are open`)
            void observed(page.close())
            return
          }
          opened.page = page
          look(page)
        })
        return opened
      })

      /** The context of a thread, which is made once, whoever of those that ask for it goes away. */
      const open = (thread: string) =>
        opening
          .withPermit(
            Effect.gen(function* () {
              const opened =
                contexts.get(thread) ??
                (yield* Effect.forkIn(
                  Effect.onError(begin, () => Effect.sync(() => contexts.delete(thread))),
                  scope
                ))
              contexts.delete(thread)
              contexts.set(thread, opened)
              const [oldest] = contexts.keys()
              if (oldest !== undefined && contexts.size > (options.maxContexts ?? 16)) {
                yield* Effect.forkIn(close(oldest), scope, { startImmediately: true })
              }
              return opened
            })
          )
          .pipe(Effect.flatMap(Fiber.join))

      /** Does something in the context of a thread: one thing at a time. */
      const using = <A>(thread: string, work: (opened: Opened) => Effect.Effect<A, BrowserError>) =>
        Effect.flatMap(open(thread), (opened) =>
          opened.turn.withPermit(Effect.catch(work(opened), (problem) => recover(thread, opened, problem)))
        )

      /** Has a context be usable again when its page hangs: by a new page, or else by a new context. */
      const recover = (thread: string, opened: Opened, problem: BrowserError): Effect.Effect<never, BrowserError> =>
        replaceHung(opened).pipe(
          Effect.timeout(2 * patience + timeout),
          Effect.catch(() => Effect.as(close(thread), true)),
          Effect.flatMap((isReplaced) =>
            Effect.fail(
              isReplaced
                ? new BrowserError({ message: `${problem.message}; the page hung, and was closed: open another one` })
                : problem
            )
          )
        )

      const settled = (page: Page) =>
        Effect.ignore(attempt(() => page.waitForLoadState("domcontentloaded", { timeout: 3000 })))

      return Browser.of({
        close,
        act: (thread, action) =>
          using(thread, (opened) =>
            Effect.andThen(
              perform(opened, action, timeout),
              Effect.suspend(() => settled(opened.page))
            )
          ),
        snapshot: (thread) =>
          using(
            thread,
            Effect.fnUntraced(function* (opened) {
              const { page } = opened
              const { elements, tree } = yield* readTree(page, timeout)
              if (elements !== undefined) {
                note(opened, `the page has ${elements} elements, of which the first ${mostElements} are shown`)
              }
              const title = yield* Effect.timeoutOrElse(
                attempt(() => page.title()),
                { duration: timeout, orElse: () => Effect.succeed("") }
              )
              const notes = opened.notes.splice(0)
              const pages = opened.context.pages()
              return {
                url: page.url(),
                title,
                tree,
                notes,
                tabs: pages.map((one) => one.url()),
                shown: pages.indexOf(page)
              }
            })
          ),
        console: (thread) => using(thread, (opened) => Effect.sync(() => opened.console.splice(0))),
        screenshot: (thread) =>
          using(thread, ({ page }) =>
            Effect.map(
              attempt(() => page.screenshot({ type: "jpeg", quality: 70, timeout })),
              (bytes) => new Uint8Array(bytes)
            )
          ),
        download: (thread, ref) =>
          using(thread, (opened) =>
            Effect.scoped(
              Effect.gen(function* () {
                const { context, page } = opened
                const tooLong = yield* watched(context, page, most)
                opened.takes = page
                const download = yield* attempt(async () => {
                  const [given] = await Promise.all([
                    page.waitForEvent("download", { timeout }),
                    element(page, ref).click({ timeout })
                  ])
                  return given
                }, `; it gives no file${stale}`).pipe(
                  Effect.ensuring(
                    Effect.sync(() => {
                      opened.takes = undefined
                    })
                  )
                )
                return yield* attempt(async () => readAll(await download.createReadStream())).pipe(
                  Effect.map((bytes) => ({ name: download.suggestedFilename(), bytes })),
                  Effect.raceFirst(tooLong),
                  Effect.timeoutOrElse({
                    duration: 3 * timeout,
                    orElse: () =>
                      Effect.fail(new BrowserError({ message: `the file did not come within ${3 * timeout} ms` }))
                  }),
                  Effect.ensuring(Effect.ignore(attempt(() => download.cancel().then(() => download.delete()))))
                )
              })
            )
          )
      })
    })
  )
