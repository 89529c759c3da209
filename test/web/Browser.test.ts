import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, vi } from "@effect/vitest"
import { Agent, Backend } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"
import { Browser } from "effect-deepagents/web"
import * as Effect from "effect/Effect"
import { type Browser as Chromium, chromium as chromiumOfPlaywright } from "playwright-core"
import { serve } from "../net/servers.ts"
import { browserWith } from "./chromiums.ts"

const page = (body: string) => `<!doctype html><html><head><title>Shop</title></head><body>${body}</body></html>`

const shop = serve((request, response, body) => {
  response.setHeader("content-type", "text/html")
  switch (request.url ?? "") {
    case "/":
      response.setHeader("set-cookie", "seen=1")
      response.end(
        page(`<h1>Shop</h1><form action="/order" method="post"><input name="what" aria-label="What">
          <select name="size" aria-label="Size"><option>small</option><option>large</option></select>
          <button>Order</button></form><a href="/file" download>Catalogue</a><a href="/later">Later</a>`)
      )
      break
    case "/order":
      response.end(page(`<p>Ordered: ${body}</p><p>Cookies: ${request.headers.cookie ?? "none"}</p>`))
      break
    case "/cookies":
      response.end(page(`<p>Cookies: ${request.headers.cookie ?? "none"}</p>`))
      break
    case "/file":
      response.setHeader("content-disposition", 'attachment; filename="../../etc/cata logue.txt"')
      response.end("towers")
      break
    case "/later":
      response.end(page(`<script>setTimeout(() => { document.body.innerHTML = "<p>It is here</p>" }, 300)</script>`))
      break
    default:
      response.writeHead(404).end(page("nothing"))
  }
})

const refOf = (tree: string, name: RegExp): string => {
  const line = tree.split("\n").find((one) => name.test(one)) ?? ""
  return /\[ref=(\w+)\]/.exec(line)?.[1] ?? `no ${String(name)} in ${tree}`
}

describe("browser", () => {
  it.live("reads, fills in, chooses, clicks, waits, takes pictures and files, one context a thread", () =>
    Effect.gen(function* () {
      const { port, url } = yield* shop
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        const act = (action: Parameters<typeof browser.act>[1], thread = "a") => browser.act(thread, action)
        const tree = Effect.map(browser.snapshot("a"), (snapshot) => snapshot.tree)
        yield* act({ _tag: "Open", url })
        const first = yield* browser.snapshot("a")
        assert.strictEqual(first.title, "Shop")
        yield* act({ _tag: "Type", ref: refOf(first.tree, /textbox "What"/), text: "a tower", submit: false })
        yield* act({ _tag: "Select", ref: refOf(first.tree, /combobox "Size"/), values: ["large"] })
        assert.strictEqual(
          yield* Effect.map(browser.download("a", refOf(first.tree, /Catalogue/)), ({ bytes }) =>
            new TextDecoder().decode(bytes)
          ),
          "towers"
        )
        yield* act({ _tag: "Click", ref: refOf(first.tree, /button "Order"/) })
        const ordered = yield* tree
        assert.include(ordered, "what=a+tower&size=large")
        assert.include(ordered, "seen=1")
        yield* act({ _tag: "Open", url: `${url}/cookies` }, "b")
        assert.include((yield* browser.snapshot("b")).tree, "Cookies: none")
        yield* act({ _tag: "Back" })
        yield* act({ _tag: "Open", url: `${url}/later` })
        yield* act({ _tag: "Wait", text: "It is here", seconds: 3 })
        assert.include(yield* tree, "It is here")
        const picture = yield* browser.screenshot("a")
        assert.deepStrictEqual(picture.slice(0, 3), new Uint8Array([0xff, 0xd8, 0xff]))
        const stale = yield* Effect.flip(act({ _tag: "Click", ref: "e999" }))
        assert.match(stale.message, /take a new snapshot/)
      }).pipe(Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${port}`] })))
    })
  )

  it.live("keeps the rules in the page: redirects, frames, scripts, sockets, tunnels", () =>
    Effect.gen(function* () {
      const secret = yield* serve((_, response) => response.end("private"))
      const hidden = `127.0.0.1:${secret.port}`
      const outer = yield* serve((request, response) => {
        if (request.url === "/redirect" || request.url === "/hop") {
          response.writeHead(302, { location: `http://${hidden}/${request.url}` }).end()
          return
        }
        response.setHeader("content-type", "text/html")
        response.end(
          page(`<h1>Outer</h1><iframe src="http://${hidden}/frame"></iframe><img src="/hop"><img src="http://${hidden}/image">
            <script>fetch("http://${hidden}/fetch", { mode: "no-cors" }).catch(() => {});
            new WebSocket("ws://${hidden}/socket"); fetch("https://${hidden}/tls", { mode: "no-cors" }).catch(() => {});
            fetch("http://rebound.example:${secret.port}/name", { mode: "no-cors" }).catch(() => {});
            fetch("http://localhost:${secret.port}/local", { mode: "no-cors" }).catch(() => {});
            fetch("http://[::1]:${secret.port}/six", { mode: "no-cors" }).catch(() => {});
            setTimeout(() => { document.title = "done" }, 1000)</script>`)
        )
      })
      const resolve = ((_: string, __: unknown, callback: (error: null, all: Array<unknown>) => void) =>
        callback(null, [{ address: "127.0.0.1", family: 4 }])) as never
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        yield* browser.act("a", { _tag: "Open", url: outer.url })
        yield* browser.act("a", { _tag: "Wait", text: undefined, seconds: 1.5 })
        assert.include((yield* browser.snapshot("a")).tree, "Outer")
        yield* Effect.exit(browser.act("a", { _tag: "Open", url: `${outer.url}/redirect` }))
        assert.notInclude((yield* browser.snapshot("a")).tree, "private")
        for (const url of ["file:///etc/passwd", "about:config", "chrome://version"]) {
          assert.match((yield* Effect.flip(browser.act("a", { _tag: "Open", url }))).message, /whole address/)
        }
      }).pipe(Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${outer.port}`] }, { resolve })))
      assert.deepStrictEqual(secret.seen, [])
    })
  )

  it.live("has one context for all that a thread asks at once, and does one thing after the other", () =>
    Effect.gen(function* () {
      const { port, url } = yield* shop
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        yield* Effect.all([browser.act("a", { _tag: "Open", url }), browser.screenshot("a")], {
          concurrency: "unbounded"
        })
        assert.strictEqual((yield* browser.snapshot("a")).title, "Shop")
        yield* Effect.all(
          [
            browser.act("a", { _tag: "Open", url: `${url}/later` }),
            browser.act("a", { _tag: "Open", url: `${url}/cookies` })
          ],
          { concurrency: "unbounded" }
        )
        const { tree, url: at } = yield* browser.snapshot("a")
        assert.strictEqual(at, `${url}/cookies`)
        assert.include(tree, "seen=1")
        // An interrupted caller took nothing along.
        yield* Effect.timeoutOption(browser.act("b", { _tag: "Open", url }), 1)
        yield* browser.act("b", { _tag: "Open", url })
        assert.strictEqual((yield* browser.snapshot("b")).title, "Shop")
      }).pipe(Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${port}`] })))
    })
  )

  it.live("gives up a file without an end", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) => {
        if (request.url === "/") {
          response.setHeader("content-type", "text/html")
          response.end(page(`<a href="/endless" download>File</a>`))
          return
        }
        response.writeHead(200, { "content-disposition": "attachment; filename=x", "content-type": "text/plain" })
        response.write("x".repeat(100_000))
      })
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        yield* browser.act("a", { _tag: "Open", url: server.url })
        const { tree } = yield* browser.snapshot("a")
        const problem = yield* Effect.flip(browser.download("a", refOf(tree, /File/))).pipe(
          Effect.timeout("30 seconds")
        )
        assert.match(problem.message, /did not come within 3000 ms/)
        assert.include((yield* browser.snapshot("a")).tree, "File")
      }).pipe(Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${server.port}`] }, { timeout: 1000 })))
    })
  )

  it.live("gives up a file that is too long while it comes: nothing of it is kept, here or in the backend", () =>
    Effect.gen(function* () {
      let sending = 0
      const server = yield* serve((request, response) => {
        if (request.url === "/") {
          response.setHeader("content-type", "text/html")
          // A second file begins, which nobody asked for.
          response.end(
            page(`<a href="/endless" download onclick="setTimeout(() => { location = '/other' }, 50)">File</a>`)
          )
          return
        }
        response.writeHead(200, { "content-disposition": "attachment; filename=x", "content-type": "text/plain" })
        const chunk = Buffer.alloc(100_000, "x")
        sending++
        const timer = setInterval(() => response.write(chunk), 10)
        response.on("close", () => {
          sending--
          clearInterval(timer)
        })
      })
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "downloads-"))),
        (path) => Effect.promise(() => rm(path, { recursive: true }))
      )
      const files = Effect.promise(async () =>
        (await readdir(folder, { recursive: true })).filter(
          (name) => name.includes("playwright-artifacts") && name.includes(".crdownload")
        )
      )
      vi.stubEnv("TMPDIR", folder)
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        yield* browser.act("a", { _tag: "Open", url: server.url })
        const { tree } = yield* browser.snapshot("a")
        const problem = yield* Effect.flip(browser.download("a", refOf(tree, /File/)))
        assert.match(problem.message, /longer than 1000000 bytes/)
        while ((yield* files).length > 0 || sending > 0) yield* Effect.sleep(50)

        const model = TestChatModel.script([
          TestChatModel.calls([{ name: "browser_open", arguments: { url: server.url } }]),
          TestChatModel.calls([{ name: "browser_download", arguments: { ref: refOf(tree, /File/) } }]),
          "done"
        ])
        const agent = Agent.make({ name: "surfer", prompt: "p", tools: Browser.make() })
        yield* Effect.gen(function* () {
          const { messages } = yield* Agent.run(agent, "go")
          assert.include(JSON.stringify(messages), "longer than 1000000 bytes")
          assert.deepStrictEqual((yield* (yield* Backend.Backend).glob({ pattern: "**" })).entries, [])
        }).pipe(Effect.provide([model, MemoryBackend.layer()]))
      }).pipe(
        Effect.provide(
          browserWith({ allowPrivate: [`127.0.0.1:${server.port}`] }, { maxDownload: 1_000_000, timeout: 20_000 })
        ),
        Effect.ensuring(Effect.sync(() => vi.unstubAllEnvs()))
      )
    })
  )

  it.live("closes a context whose page can't be opened, and opens another when asked again", () =>
    Effect.gen(function* () {
      const { port, url } = yield* shop
      const launch = chromiumOfPlaywright.launch.bind(chromiumOfPlaywright)
      const launched: Array<Chromium> = []
      const spy = vi.spyOn(chromiumOfPlaywright, "launch").mockImplementation(async (options) => {
        const browser = await launch(options)
        launched.push(browser)
        const newContext = browser.newContext.bind(browser)
        let made = 0
        vi.spyOn(browser, "newContext").mockImplementation(async (settings) => {
          const context = await newContext(settings)
          // The first one is that of the check at the start.
          if (++made === 2) vi.spyOn(context, "newPage").mockRejectedValueOnce(new Error("the page crashed"))
          return context
        })
        return browser
      })
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        const problem = yield* Effect.flip(browser.act("a", { _tag: "Open", url }))
        assert.match(problem.message, /the page crashed/)
        assert.strictEqual(launched[0]?.contexts().length, 0)
        yield* browser.act("a", { _tag: "Open", url })
        assert.strictEqual((yield* browser.snapshot("a")).title, "Shop")
        assert.strictEqual(launched[0]?.contexts().length, 1)
      }).pipe(
        Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${port}`] })),
        Effect.ensuring(Effect.sync(() => spy.mockRestore()))
      )
    })
  )

  it.live("is a set of tools of an agent, whose files go into its backend", () =>
    Effect.gen(function* () {
      const { port, url } = yield* shop
      const model = TestChatModel.script([
        TestChatModel.calls([{ name: "browser_open", arguments: { url } }]),
        TestChatModel.calls([{ name: "browser_download", arguments: { ref: "e7" } }]),
        TestChatModel.calls([{ name: "browser_download", arguments: { ref: "e7" } }]),
        TestChatModel.calls([{ name: "browser_screenshot", arguments: {} }]),
        "done"
      ])
      const agent = Agent.make({ name: "surfer", prompt: "p", tools: Browser.make() })
      yield* Effect.gen(function* () {
        const result = yield* Agent.run(agent, "go")
        const outputs = result.messages.filter((message) => message.role === "tool")
        const [opened, downloaded, again, picture] = outputs
        const text = JSON.stringify(opened?.content)
        assert.include(text, "> Shop")
        assert.strictEqual(refOf(text.replaceAll("\\n", "\n"), /link \\"Catalogue/), "e7")
        const [, file = ""] = / in (\/downloads\/[^/"]+txt)"/.exec(JSON.stringify(downloaded?.content)) ?? []
        // The page chose the name: the file that was there stays.
        assert.include(JSON.stringify(again?.content), "/downloads/2-")
        assert.strictEqual(picture?.content[0]?.type, "image")
        const backend = yield* Backend.Backend
        assert.include(JSON.stringify(yield* backend.read(file)), "towers")
      }).pipe(
        Effect.provide([model, MemoryBackend.layer()]),
        Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${port}`] }))
      )
    })
  )
})
