/**
 * WebRTC, which chooses its own way into the network, goes the way of the proxy or none.
 */
import { createSocket } from "node:dgram"
import { assert, describe, it, vi } from "@effect/vitest"
import { Browser } from "effect-deepagents/web"
import * as Effect from "effect/Effect"
import { chromium as playwright } from "playwright-core"
import { serve } from "../net/servers.ts"
import { browserWith, kinds } from "./chromiums.ts"

/** A port of loopback that counts the packets that come. */
const udp = Effect.acquireRelease(
  Effect.promise(
    () =>
      new Promise<{ readonly port: number; readonly packets: () => number; readonly close: () => void }>((resolve) => {
        const socket = createSocket("udp4")
        let packets = 0
        socket.on("message", () => packets++)
        socket.bind(0, "127.0.0.1", () =>
          resolve({ port: socket.address().port, packets: () => packets, close: () => socket.close() })
        )
      })
  ),
  ({ close }) => Effect.sync(close)
)

/** Asks a STUN server, and a peer whose address the page has made up. Its name is a word that the page sends out. */
const calling = (port: number) => `<script>
  const call = async () => {
    const connection = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:${port}" }] })
    connection.createDataChannel("x")
    const offer = await connection.createOffer()
    await connection.setLocalDescription(offer)
    const print = /a=fingerprint:[^\\r\\n]*/.exec(offer.sdp)[0]
    await connection.setRemoteDescription({ type: "answer", sdp: ["v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0",
      "a=group:BUNDLE 0", "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "c=IN IP4 0.0.0.0", "a=ice-ufrag:word",
      "a=ice-pwd:wordwordwordwordwordword", print, "a=setup:active", "a=mid:0", "a=sctp-port:5000",
      "a=candidate:1 1 udp 2130706431 127.0.0.1 ${port} typ host", ""].join("\\r\\n") })
  }
  call()
  try { new WebTransport("https://127.0.0.1:${port}/").ready.catch(() => {}) } catch {}
</script>`

const caller = (port: number) =>
  serve((request, response) => {
    response.setHeader("content-type", "text/html")
    response.end(request.url === "/" ? `<h1>Caller</h1>${calling(port)}<iframe src="/frame"></iframe>` : calling(port))
  })

describe.each(kinds)("WebRTC of the $name", (kind) => {
  it.live("sends no packet past the proxy, which it does without our switches", () =>
    Effect.gen(function* () {
      const { packets, port } = yield* udp
      const page = yield* caller(port)
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        yield* browser.act("a", { _tag: "Open", url: page.url })
        yield* browser.act("a", { _tag: "Wait", text: undefined, seconds: 1.5 })
        assert.include((yield* browser.snapshot("a")).tree, "Caller")
      }).pipe(
        Effect.provide(
          browserWith({ allowPrivate: [`127.0.0.1:${page.port}`] }, { args: ["--disable-gpu", "--lang=en"] }, kind)
        )
      )
      assert.strictEqual(packets(), 0)

      const executablePath = yield* kind.path
      const bare = yield* Effect.acquireRelease(
        Effect.promise(() => playwright.launch({ executablePath, chromiumSandbox: false })),
        (browser) => Effect.promise(() => browser.close())
      )
      const opened = yield* Effect.promise(() => bare.newPage())
      yield* Effect.promise(() => opened.goto(page.url))
      while (packets() === 0) yield* Effect.sleep(50)
    })
  )

  it.live("checks WebRTC at the start of a browser, and refuses a browser that would bypass the proxy", () =>
    Effect.gen(function* () {
      const launch = playwright.launch.bind(playwright)
      const spy = vi
        .spyOn(playwright, "launch")
        .mockImplementation((options) =>
          launch({ ...options, args: options?.args?.filter((one) => !one.includes("webrtc")) ?? [] })
        )
      const problem = yield* Effect.flip(
        Effect.provide(
          Browser.Browser.use(() => Effect.void),
          browserWith({}, {}, kind)
        )
      ).pipe(Effect.ensuring(Effect.sync(() => spy.mockRestore())))
      assert.strictEqual(problem._tag, "BrowserError")
      assert.match(
        problem.message,
        /WebRTC of this Chromium \(\d[\d.]+\) goes past the browser's proxy.*executablePath/
      )
    })
  )
})

it.effect.each([
  "--webrtc-ip-handling-policy=default",
  "--force-webrtc-ip-handling-policy",
  "-webrtc-ip-handling-policy=default",
  "--proxy-server=direct://",
  "--no-proxy-server",
  "--proxy-bypass-list=*",
  "--proxy-pac-url=data:,x",
  "--proxy-auto-detect",
  "--"
])("args can't lead pages past the rules: %s", (argument) =>
  Effect.gen(function* () {
    const problem = yield* Effect.flip(
      Effect.provide(
        Browser.Browser.use(() => Effect.void),
        browserWith({}, { args: ["--disable-gpu", argument] })
      )
    )
    assert.strictEqual(problem.message, `args: ${argument} leads pages past the rules of the network; take it out`)
  })
)
