/** Starts a Chromium behind the proxy, and checks that WebRTC can't bypass it. */
import { createSocket } from "node:dgram"
import { stripVTControlCharacters } from "node:util"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import type { Browser as Chromium, BrowserType } from "playwright-core"
import type { Proxy } from "../../../support/http/proxy.ts"
import { defined } from "../../../support/json/defined.ts"
import { BrowserError } from "../../Browser.ts"

interface Options {
  readonly executablePath?: string | undefined
  readonly sandbox?: boolean | undefined
  readonly args?: ReadonlyArray<string> | undefined
  readonly timeout: number
}

/** Converts a failure of Playwright: its first line, without its log and colours. */
const problemOf = (cause: unknown, hint: string): BrowserError => {
  const text = stripVTControlCharacters(cause instanceof Error ? cause.message : String(cause))
  const line = text.split("\n").find((one) => one.trim() !== "") ?? ""
  return new BrowserError({ message: `${line.slice(0, 300)}${hint}` })
}

/** Runs work of Playwright. */
export const attempt = <A>(work: () => Promise<A>, hint = ""): Effect.Effect<A, BrowserError> =>
  Effect.tryPromise({ try: work, catch: (cause) => problemOf(cause, hint) })

/**
 * Disables UDP outside of the proxy for WebRTC. The full browser reads the first switch, its headless shell (and versions
 * before 2025) the second one.
 */
const udpSwitches = ["--webrtc-ip-handling-policy", "--force-webrtc-ip-handling-policy"].map(
  (name) => `${name}=disable_non_proxied_udp`
)

/** Switches that bypass the proxy. `--` disables all switches after it. */
const bypassSwitch = /^-{1,2}(?:no-proxy-server|proxy-[a-z-]+|(?:force-)?webrtc-ip-handling-policy)(?:=|$)|^--$/

/** Milliseconds in which WebRTC must report that it has no address. */
const checkTimeout = 5_000

/** A script that asks a STUN server by WebRTC, and collects the addresses that WebRTC would use. */
const makeCheck = (port: number): string => `(async () => {
  if (typeof RTCPeerConnection === "undefined") return { state: "complete", candidates: [] }
  const candidates = []
  const connection = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:${port}" }] })
  const complete = new Promise((resolve) => {
    connection.onicecandidate = ({ candidate }) => {
      if (candidate === null || candidate.candidate === "") resolve()
      else { candidates.push(candidate.candidate); resolve() }
    }
    setTimeout(resolve, ${checkTimeout})
  })
  connection.createDataChannel("check")
  await connection.setLocalDescription(await connection.createOffer())
  await complete
  const state = candidates.length > 0 ? "open" : connection.iceGatheringState
  connection.close()
  return { state, candidates }
})()`

const failLeak = (version: string) =>
  new BrowserError({
    message: `WebRTC of this Chromium (${version}) goes past the browser's proxy, so its pages could reach addresses that the rules refuse; give executablePath of another Chromium, and take switches for WebRTC out of args and of the machine's settings of Chromium`
  })

const failUnproven = (version: string) =>
  new BrowserError({
    message: `WebRTC of this Chromium (${version}) did not say within ${checkTimeout} ms whether it keeps to the browser's proxy; start it again when the machine is less busy, or give executablePath of another Chromium`
  })

/** Listens on a port of loopback, and counts packets. */
const listen: Effect.Effect<{ readonly port: number; readonly packets: () => number }, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly packets: () => number; readonly close: () => void }>((resume) => {
      const socket = createSocket("udp4")
      let packets = 0
      socket.on("message", () => packets++)
      socket.bind(0, "127.0.0.1", () => {
        const { port } = socket.address()
        resume(Effect.succeed({ port, packets: () => packets, close: () => socket.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ),
  ({ packets, port }) => ({ packets, port })
)

/** Fails if WebRTC of a browser has an address for UDP, or has sent a packet. */
const checkWebRtc = (chromium: Chromium, timeout: number): Effect.Effect<void, BrowserError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { packets, port } = yield* listen
      const context = yield* Effect.acquireRelease(
        attempt(() => chromium.newContext({ serviceWorkers: "block" })),
        (opened) => Effect.ignore(attempt(() => opened.close()))
      )
      const page = yield* attempt(() => context.newPage())
      const report = yield* attempt(() => page.evaluate<unknown>(makeCheck(port)))
      const isComplete = Predicate.hasProperty(report, "state") && report.state === "complete"
      const isOpen = Predicate.hasProperty(report, "state") && report.state === "open"
      if (isOpen || packets() > 0) return yield* failLeak(chromium.version())
      if (!isComplete) return yield* failUnproven(chromium.version())
    })
  ).pipe(Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(failUnproven(chromium.version())) }))

/** Starts a Chromium that ends with the scope. Fails if its pages could go past the proxy. */
export const launch = (
  browsers: BrowserType,
  proxy: Proxy,
  { args = [], executablePath, sandbox = true, timeout }: Options
): Effect.Effect<Chromium, BrowserError, Scope.Scope> =>
  Effect.gen(function* () {
    const bypass = args.find((one) => bypassSwitch.test(one))
    if (bypass !== undefined) {
      return yield* new BrowserError({
        message: `args: ${bypass} leads pages past the rules of the network; take it out`
      })
    }
    const chromium = yield* Effect.acquireRelease(
      attempt(
        () =>
          browsers.launch({
            ...defined({ executablePath }),
            chromiumSandbox: sandbox,
            // The last switch of a name counts.
            args: [...args, "--disable-background-networking", ...udpSwitches],
            // Pages may open windows only on a click. The headless shell does not block windows itself.
            ignoreDefaultArgs: ["--disable-popup-blocking"],
            proxy: { server: `http://127.0.0.1:${proxy.port}`, username: "browser", password: proxy.token }
          }),
        "; give executablePath of a Chromium, and sandbox: false where it runs as root"
      ),
      (browser) => Effect.promise(() => browser.close())
    )
    yield* checkWebRtc(chromium, Math.max(timeout, 2 * checkTimeout))
    return chromium
  })
