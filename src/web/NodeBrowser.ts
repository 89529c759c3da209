/**
 * Runs a real browser by Playwright under the rules of the network.
 *
 * Needs the package `playwright-core`, and a Chromium: `executablePath`, or the one of Playwright.
 *
 * All traffic of pages goes through a proxy on loopback that enforces the rules: redirects, frames, scripts and
 * WebSockets included. Service workers are blocked. Each start checks that WebRTC can't bypass the proxy. For encrypted
 * traffic, the proxy sees host and port.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import type { Page } from "playwright-core"
import type * as Network from "../net/Network.ts"
import { loadPeer } from "../support/effect/peer.ts"
import type { Resolve } from "../support/http/connect.ts"
import * as proxy from "../support/http/proxy.ts"
import * as judging from "../support/http/rules.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { Browser, BrowserError } from "./Browser.ts"
import { downloadFile, performAction } from "./internal/browser/actions.ts"
import { addNote, openContext, type OpenContext, recoverContext } from "./internal/browser/contexts.ts"
import { attempt, launch } from "./internal/browser/launch.ts"
import type { Snapshot } from "./internal/browser/model.ts"
import { maxElements, readTree } from "./internal/browser/snapshot.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of the browser. */
export interface Options {
  /** Rules of the network for all pages. */
  readonly rules: Network.Rules
  /** Path of a Chromium. Default: the one of Playwright. */
  readonly executablePath?: string | undefined
  /** Set it to `false` as root and in most containers, where the sandbox of Chromium can't start. Default: `true`. */
  readonly sandbox?: boolean | undefined
  /** Milliseconds of one action. Opening a page and a download may take three times as long. Default: 10,000. */
  readonly timeout?: number | undefined
  /** Maximum number of threads with an open context. The least recently used one is closed. Default: 16. */
  readonly maxContexts?: number | undefined
  /** Maximum bytes of a download. A longer one is cancelled and discarded. Default: 50,000,000. */
  readonly maxDownload?: number | undefined
  /** More arguments of Chromium. Arguments that bypass the proxy are rejected. */
  readonly args?: ReadonlyArray<string> | undefined
  /** Replaces `dns.lookup`. */
  readonly resolve?: Resolve | undefined
}

/** Hosts that Chromium calls by itself, without any page. */
const chromiumHosts = [
  ..."update.googleapis.com content-autofill.googleapis.com optimizationguide-pa.googleapis.com".split(" "),
  ..."clients2.google.com clients4.google.com edgedl.me.gvt1.com".split(" ")
]

/** Waits until the page has loaded after an action, for at most 3 seconds. */
const waitForLoad = (page: Page) =>
  Effect.ignore(attempt(() => page.waitForLoadState("domcontentloaded", { timeout: 3000 })))

const takeSnapshot = Effect.fnUntraced(function* (
  opened: OpenContext,
  timeout: number
): Effect.fn.Return<Snapshot, BrowserError> {
  const { page } = opened
  const { elements, tree } = yield* readTree(page, timeout)
  if (elements !== undefined) {
    addNote(opened, `the page has ${elements} elements, of which the first ${maxElements} are shown`)
  }
  const title = yield* Effect.timeoutOrElse(
    attempt(() => page.title()),
    { duration: timeout, orElse: () => Effect.succeed("") }
  )
  const pages = opened.context.pages()
  return {
    url: page.url(),
    title,
    tree,
    notes: opened.notes.splice(0),
    tabs: pages.map((one) => one.url()),
    shown: pages.indexOf(page)
  }
})

/** Keeps one context for each thread, and closes the least recently used one beyond `maxContexts`. */
const makeContexts = Effect.fnUntraced(function* (open: Effect.Effect<OpenContext, BrowserError>, maxContexts: number) {
  const scope = yield* Effect.scope
  const lock = yield* Semaphore.make(1)
  const contexts = new Map<string, Fiber.Fiber<OpenContext, BrowserError>>()

  const close = (thread: string) =>
    Effect.suspend(() => {
      const opened = contexts.get(thread)
      contexts.delete(thread)
      return opened === undefined
        ? Effect.void
        : Effect.ignore(Effect.flatMap(Fiber.join(opened), ({ context }) => attempt(() => context.close())))
    })

  /** Finds or opens the context of a thread. Opening continues when a waiting caller is interrupted. */
  const get = (thread: string) =>
    lock
      .withPermit(
        Effect.gen(function* () {
          const opened =
            contexts.get(thread) ??
            (yield* Effect.forkIn(
              Effect.onError(open, () => Effect.sync(() => contexts.delete(thread))),
              scope
            ))
          contexts.delete(thread)
          contexts.set(thread, opened)
          const [oldest] = contexts.keys()
          if (oldest !== undefined && contexts.size > maxContexts) {
            yield* Effect.forkIn(close(oldest), scope, { startImmediately: true })
          }
          return opened
        })
      )
      .pipe(Effect.flatMap(Fiber.join))

  return { close, get }
})

const refuseLayer = makeLayerCheck("NodeBrowser.layer", shapes.nodeBrowserLayer)

/**
 * Starts a browser and its proxy, which end with the layer. Fails if Playwright or Chromium can't start, or if WebRTC of
 * this Chromium bypasses the proxy.
 */
export const layer = (options: Options): Layer.Layer<Browser, BrowserError> =>
  refuseLayer(options) ??
  Layer.effect(
    Browser,
    Effect.gen(function* () {
      const timeout = options.timeout ?? 10_000
      const maxBytes = options.maxDownload ?? 50_000_000
      const judge = judging.judge({ ...options.rules, deny: [...(options.rules.deny ?? []), ...chromiumHosts] })
      const playwright = yield* loadPeer(
        "playwright-core",
        () => import("playwright-core"),
        (message) => new BrowserError({ message })
      )
      const guard = yield* proxy.start({ judge, resolve: options.resolve })
      const chromium = yield* launch(playwright.chromium, guard, { ...options, timeout })
      const { close, get } = yield* makeContexts(openContext(chromium), options.maxContexts ?? 16)

      /** Runs work in the context of a thread, one at a time. */
      const useContext = <A>(thread: string, work: (opened: OpenContext) => Effect.Effect<A, BrowserError>) =>
        Effect.flatMap(get(thread), (opened) =>
          opened.turn.withPermit(
            Effect.catch(work(opened), (problem) => recoverContext(opened, problem, timeout, close(thread)))
          )
        )

      return Browser.of({
        close,
        act: (thread, action) =>
          useContext(thread, (opened) =>
            Effect.andThen(
              performAction(opened, action, timeout),
              Effect.suspend(() => waitForLoad(opened.page))
            )
          ),
        snapshot: (thread) => useContext(thread, (opened) => takeSnapshot(opened, timeout)),
        console: (thread) => useContext(thread, (opened) => Effect.sync(() => opened.console.splice(0))),
        screenshot: (thread) =>
          useContext(thread, ({ page }) =>
            Effect.map(
              attempt(() => page.screenshot({ type: "jpeg", quality: 70, timeout })),
              (bytes) => new Uint8Array(bytes)
            )
          ),
        download: (thread, ref) => useContext(thread, (opened) => downloadFile(opened, ref, { timeout, maxBytes }))
      })
    })
  )
