/**
 * Pages that hang, are too large, or open windows and dialogs without an end: the browser stays usable.
 */
import { assert, describe, it } from "@effect/vitest"
import { Agent, Backend } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"
import { Browser } from "effect-deepagents/web"
import * as Effect from "effect/Effect"
import { serve } from "../net/servers.ts"
import { isFull } from "../scale.ts"
import { browserWith, kinds } from "./chromiums.ts"

const pages: Record<string, string> = {
  "/": "<title>Fine</title><h1>Fine</h1>",
  "/hang": "<h1>Hangs</h1><script>while (true) {}</script>",
  "/later": "<h1>Later</h1><button onclick='while (true) {}'>Hang</button>",
  "/large": `<title>${"t".repeat(100_000)}</title><ul>${Array.from({ length: 40_000 }, (_, n) => `<li><a href="/x${n}">Item ${n}</a></li>`).join("")}</ul><p>End</p>`,
  "/windows": `<h1>Windows</h1><button onclick="flood()">Open</button><script>
    const flood = () => { for (let n = 0; n < 100; n++) window.open("/?" + n) }
    flood()</script>`,
  "/unload": `<h1>Unload</h1><button>Touch</button><script>
    addEventListener("beforeunload", (event) => event.preventDefault())</script>`,
  "/tabs": `<h1>Tabs</h1><a href="/tabs" target="_blank">Next</a>`,
  "/dialogs": `<h1>Dialogs</h1><button onclick="document.title = String(confirm('Delete all?'))">Ask</button>
    <input aria-label="Field" onkeydown="document.title = event.key"><p onmouseover="document.title = 'over'">Place</p>`
}

const site = serve((request, response) => {
  response.setHeader("content-type", "text/html")
  response.end(pages[request.url ?? ""] ?? pages["/"])
})

const refOf = (tree: string, name: RegExp): string =>
  /\[ref=(\w+)\]/.exec(tree.split("\n").find((line) => name.test(line)) ?? "")?.[1] ?? `no ${String(name)} in ${tree}`

const shop = serve((request, response, body) => {
  response.setHeader("content-type", "text/html")
  response.end(
    request.url === "/sent"
      ? `<p>${/filename="[^"]*"|text of ada/g[Symbol.match](body)?.join(" ") ?? "nothing"}</p>`
      : request.url === "/other"
        ? "<title>Other</title><p>Other</p>"
        : `<title>Shop</title><form action="/sent" method="post" enctype="multipart/form-data"><input type="file" name="f"
            aria-label="File"><button>Send</button></form><a href="/other" target="_blank">Other</a>
            <script>console.log("hello"); throw new Error("broken")</script>`
  )
})

describe.each(kinds)("tools in the $name", { timeout: 60_000 }, (kind) => {
  it.live("files of the backend are sent and no others, tabs are shown and closed, consoles are read", () =>
    Effect.gen(function* () {
      const { port, url } = yield* shop
      const ask = (name: string, args: Record<string, string | number | boolean | ReadonlyArray<string>>) =>
        TestChatModel.calls([{ name, arguments: args }])
      const model = TestChatModel.script([
        ask("browser_open", { url }),
        ask("browser_console", {}),
        ask("browser_upload", { ref: "e3", paths: ["/etc/passwd"] }),
        ask("browser_upload", { ref: "e3", paths: ["/notes.txt"] }),
        ask("browser_click", { ref: "e5" }),
        ask("browser_wait", { seconds: 0.5 }),
        ask("browser_tab", { tab: 0 }),
        ask("browser_tab", { tab: 1, close: true }),
        ask("browser_tab", { tab: 7 }),
        ask("browser_tab", { tab: 0, close: true }),
        ask("browser_click", { ref: "e4" }),
        "done"
      ])
      const agent = Agent.make({ name: "surfer", prompt: "p", tools: Browser.make() })
      const { messages } = yield* Effect.gen(function* () {
        yield* (yield* Backend.Backend).upload([
          { path: "/notes.txt", content: new TextEncoder().encode("text of ada") }
        ])
        return yield* Agent.run(agent, "go")
      }).pipe(
        Effect.provide([model, MemoryBackend.layer(), browserWith({ allowPrivate: [`127.0.0.1:${port}`] }, {}, kind)])
      )
      const said = messages.filter(({ role }) => role === "tool").map((message) => JSON.stringify(message.content))
      assert.match(said[1] ?? "", /> log: hello\\n> uncaught: broken/)
      assert.match(said[2] ?? "", /etc\/passwd/)
      assert.include(said[3], "Shop")
      assert.match(said[5] ?? "", /\[tab 0: [^\]]*\]\\n> \[tab 1, shown: [^\]]*other\]\\n> Other/)
      assert.match(said[6] ?? "", /\[tab 0, shown: .*Shop/)
      assert.notInclude(said[7], "[tab")
      assert.match(said[8] ?? "", /there is no tab 7/)
      assert.match(said[9] ?? "", /it is the last tab, which stays/)
      assert.match(said[10] ?? "", /filename=\\+"notes.txt\\+" text of ada/)
    })
  )
})

describe.each(kinds)("hostile pages in the $name", { timeout: 120_000 }, (kind) => {
  it.live("a page that hangs is closed, and the next one opens; cookies stay with the thread", () =>
    Effect.gen(function* () {
      const { port, url } = yield* site
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        const open = (path: string) => browser.act("a", { _tag: "Open", url: `${url}${path}` })
        assert.match((yield* Effect.flip(open("/hang"))).message, /the page hung, and was closed: open another one/)
        yield* open("/")
        assert.strictEqual((yield* browser.snapshot("a")).title, "Fine")
        if (!isFull) return
        yield* open("/later")
        const { tree } = yield* browser.snapshot("a")
        yield* Effect.exit(browser.act("a", { _tag: "Click", ref: refOf(tree, /Hang/) }))
        yield* Effect.exit(browser.snapshot("a"))
        yield* open("/")
        assert.strictEqual((yield* browser.snapshot("a")).title, "Fine")
      }).pipe(Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${port}`] }, { timeout: 2000 }, kind)))
    })
  )

  it.live("a page of 40,000 items is shown by its first elements, which can be used", () =>
    Effect.gen(function* () {
      const { port, url } = yield* site
      const model = TestChatModel.script([
        TestChatModel.calls([{ name: "browser_open", arguments: { url: `${url}/large` } }]),
        TestChatModel.calls([{ name: "browser_click", arguments: { ref: "e4" } }]),
        "done"
      ])
      const agent = Agent.make({ name: "surfer", prompt: "p", tools: Browser.make() })
      const { messages } = yield* Effect.provide(Agent.run(agent, "go"), [
        model,
        MemoryBackend.layer(),
        browserWith({ allowPrivate: [`127.0.0.1:${port}`] }, { timeout: 40_000 }, kind)
      ])
      const [opened, clicked] = messages.filter(({ role }) => role === "tool").map((message) => JSON.stringify(message))
      assert.match(opened ?? "", /the page has 800\d\d elements, of which the first 5000 are shown/)
      assert.include(opened, "Item 0")
      assert.isBelow(opened?.length ?? 0, 60_000)
      assert.include(clicked, "Fine")
    })
  )

  it.live("a page opens no window by itself, and a few on a click; the agent is told", () =>
    Effect.gen(function* () {
      const { port, url } = yield* site
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        yield* browser.act("a", { _tag: "Open", url: `${url}/windows` })
        const { title, tree } = yield* browser.snapshot("a")
        assert.include(tree, "Windows")
        assert.strictEqual(title, "")
        yield* Effect.exit(browser.act("a", { _tag: "Click", ref: refOf(tree, /Open/) }))
        yield* browser.act("a", { _tag: "Open", url })
        assert.strictEqual((yield* browser.snapshot("a")).title, "Fine")
      }).pipe(Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${port}`] }, { timeout: 10_000 }, kind)))
    })
  )

  it.live("a page can't hold the agent by beforeunload, and no more than 8 pages are open", () =>
    Effect.gen(function* () {
      const { port, url } = yield* site
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        yield* browser.act("a", { _tag: "Open", url: `${url}/unload` })
        yield* browser.act("a", { _tag: "Click", ref: refOf((yield* browser.snapshot("a")).tree, /Touch/) })
        yield* browser.act("a", { _tag: "Open", url })
        const left = yield* browser.snapshot("a")
        assert.strictEqual(left.title, "Fine")
        assert.match(left.notes.join(), /^the page showed a dialog \(beforeunload\), which was closed/)
        yield* browser.act("a", { _tag: "Open", url: `${url}/tabs` })
        const notes: Array<string> = []
        let open = 1
        for (let count = 0; count < 9; count++) {
          yield* browser.act("a", { _tag: "Click", ref: refOf((yield* browser.snapshot("a")).tree, /Next/) })
          // The window opens, or is closed since there are too many.
          let seen = yield* browser.snapshot("a")
          while (seen.tabs.length === open && seen.notes.length === 0) {
            yield* Effect.sleep("20 millis")
            seen = yield* browser.snapshot("a")
          }
          open = seen.tabs.length
          notes.push(...seen.notes)
        }
        const closed = "a window was closed, since 8 pages are open"
        assert.deepStrictEqual(notes, [closed, closed])
      }).pipe(Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${port}`] }, { timeout: 10_000 }, kind)))
    })
  )

  it.live("dialogs are dismissed and told; keys and the mouse reach elements", () =>
    Effect.gen(function* () {
      const { port, url } = yield* site
      yield* Effect.gen(function* () {
        const browser = yield* Browser.Browser
        yield* browser.act("a", { _tag: "Open", url: `${url}/dialogs` })
        const { tree } = yield* browser.snapshot("a")
        yield* browser.act("a", { _tag: "Click", ref: refOf(tree, /Ask/) })
        const asked = yield* browser.snapshot("a")
        assert.strictEqual(asked.title, "false")
        assert.deepStrictEqual(asked.notes, ["the page showed a dialog (confirm), which was dismissed: Delete all?"])
        assert.deepStrictEqual((yield* browser.snapshot("a")).notes, [])
        yield* browser.act("a", { _tag: "Press", key: "ArrowDown", ref: refOf(asked.tree, /Field/) })
        assert.strictEqual((yield* browser.snapshot("a")).title, "ArrowDown")
        yield* browser.act("a", { _tag: "Press", key: "Escape", ref: undefined })
        const pressed = yield* browser.snapshot("a")
        assert.strictEqual(pressed.title, "Escape")
        yield* browser.act("a", { _tag: "Hover", ref: refOf(pressed.tree, /Place/) })
        assert.strictEqual((yield* browser.snapshot("a")).title, "over")
      }).pipe(Effect.provide(browserWith({ allowPrivate: [`127.0.0.1:${port}`] }, {}, kind)))
    })
  )
})
