/** The page on a real server: what people do with it, two tabs on one thread, and a server that is restarted. */
import { createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Redacted, Schema, Scope } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRouter, HttpServer } from "effect/http"
import { NetAddress } from "effect/net"
import type { Page } from "playwright-core"
import { isFull } from "../scale.ts"
import { closeBrowser, findViolations, open, steps } from "./browser.ts"
import { buildPage } from "./site.ts"

afterAll(closeBrowser)

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`paid ${n}`)
})

const makeAgents = (gate: Effect.Effect<void>) => {
  const wait = Tool.make("wait", { description: "Waits", parameters: {}, execute: () => Effect.as(gate, "waited") })
  const mode = Tool.make("mode", { description: "Tells the mode", parameters: {}, execute: () => Server.Mode })
  const helper = Agent.make({
    name: "helper",
    description: "Pays and waits",
    prompt: "You help.",
    tools: [pay, wait, mode],
    middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
  })
  return { helper, other: Agent.make({ name: "other", description: "Does other things", prompt: "" }) }
}

const model = TestChatModel.reactive(({ messages, parameters }) => {
  const last = messages.at(-1)
  const said = last === undefined ? "" : Message.text(last)
  if (last?.role === "tool") return TestChatModel.text(`Result: ${said}`, { chunkSize: 3 })
  if (said.startsWith("pay")) return TestChatModel.calls([{ name: "pay", arguments: { n: 7 } }])
  if (said.startsWith("wait")) return TestChatModel.calls([{ name: "wait", arguments: {} }])
  if (said.startsWith("mode")) return TestChatModel.calls([{ name: "mode", arguments: {} }])
  if (said.startsWith("think")) return TestChatModel.text(`Thinking is ${JSON.stringify(parameters["thinking"])}.`)
  if (said.startsWith("hang")) return TestChatModel.hangAfter("One moment")
  return TestChatModel.text(`You said **${said}**.`, { chunkSize: 3 })
})

/** A server that can be stopped, and started again at its place, on the same threads. */
const makeServer = Effect.fnUntraced(function* (
  gate: Effect.Effect<void> = Effect.void,
  options: Server.HttpOptions = {}
) {
  const page = yield* steps(buildPage)
  const token = Redacted.make("a token of programs on this machine")
  const services = yield* Layer.build(Layer.fresh(Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)))
  let port = 0
  const start = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const models = { careful: TestChatModel.reactive(() => "Careful words.") }
    const modes = ["auto-edit", "ask", "plan"]
    const runs = Layer.fresh(
      Server.layer(makeAgents(gate), { models, modes, thinking: ["low", "high"] }).pipe(Layer.provide(model))
    )
    const app = Server.http({ page, ...options }).pipe(
      Layer.provide(runs),
      Layer.provideMerge(Server.loopback({ token }))
    )
    const node = NodeHttpServer.layer(createServer, { port, host: "127.0.0.1", gracefulShutdownTimeout: "50 millis" })
    const served = HttpRouter.serve(app, { disableLogger: true, disableListenLog: true })
    const context = yield* Layer.buildWithScope(Layer.provideMerge(served, Layer.fresh(node)), scope).pipe(
      Effect.provideContext(services)
    )
    const { address } = Context.get(context, HttpServer.HttpServer)
    port = NetAddress.isInetAddress(address) ? address.port : 0
    const issue = Context.get(context, Server.Auth).issue ?? Effect.die("no tokens")
    return { close: Scope.close(scope, Exit.void), issue: Effect.map(issue, Redacted.value) }
  })
  let running = yield* start
  yield* Effect.addFinalizer(() => Effect.suspend(() => running.close))
  return {
    /** The address of the page, with a token that opens it once. */
    address: Effect.suspend(() => Effect.map(running.issue, (once) => `http://127.0.0.1:${port}/#t=${once}`)),
    stop: Effect.suspend(() => running.close),
    start: Effect.map(start, (next) => {
      running = next
    })
  }
})

const waitForText = (page: Page, text: string) => steps(() => page.getByText(text).last().waitFor())
const click = (page: Page, name: string) => steps(() => page.getByRole("button", { name, exact: true }).first().click())

const say = (page: Page, text: string) =>
  steps(async () => {
    await page.locator(".composer textarea").fill(text)
    await page.locator(".composer textarea").press("Enter")
  })

const live = (name: string, test: Effect.Effect<void, unknown, Scope.Scope>) => it.live(name, () => Effect.scoped(test))

describe("the page of a server", () => {
  live(
    "opens by a token that counts once and leaves the address, answers, and lists the thread",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const address = yield* server.address
      const page = yield* open(address)
      yield* waitForText(page, "What should be done?")
      assert.notInclude(page.url(), "t=")
      yield* steps(() => page.getByLabel("Agent").selectOption("helper"))
      yield* waitForText(page, "Pays and waits")
      yield* steps(() => page.locator(".composer textarea").fill("one line"))
      yield* steps(() => page.locator(".composer textarea").press("Shift+Enter"))
      yield* steps(() => page.locator(".composer textarea").pressSequentially("two"))
      yield* steps(() => page.locator(".composer textarea").press("Enter"))
      yield* waitForText(page, "tokens")
      assert.strictEqual(yield* steps(() => page.locator(".prose strong").innerText()), "one line two")
      yield* steps(() => page.locator("nav .thread", { hasText: "one line" }).waitFor())
      // The session is the browser's: the address of the thread opens it again.
      yield* steps(() => page.reload())
      yield* waitForText(page, "You said")
      const stranger = yield* open(address)
      yield* waitForText(stranger, "This browser has no session with the server.")
    })
  )

  live(
    "allows, denies with a reason, and changes a call",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const page = yield* open(yield* server.address)
      yield* say(page, "pay please")
      yield* waitForText(page, "Allow pay?")
      yield* click(page, "Allow")
      yield* waitForText(page, "Result: paid 7")
      yield* say(page, "pay again")
      yield* waitForText(page, "Allow pay?")
      yield* click(page, "Deny")
      yield* steps(() => page.getByLabel("Why not?").fill("It is too dear."))
      yield* click(page, "Deny")
      yield* waitForText(page, "It is too dear.")
      yield* say(page, "pay once more")
      yield* waitForText(page, "Allow pay?")
      yield* click(page, "Change")
      yield* steps(() => page.getByLabel("Arguments, as JSON").fill("{"))
      yield* click(page, "Allow this")
      yield* waitForText(page, "This is not a JSON object.")
      yield* steps(() => page.getByLabel("Arguments, as JSON").fill('{ "n": 9 }'))
      yield* click(page, "Allow this")
      yield* waitForText(page, "Result: paid 9")
      assert.deepStrictEqual(yield* steps(() => page.locator(".part.decision").allInnerTexts()), [
        "Allowed: pay",
        "Denied: pay",
        "Allowed with changes: pay"
      ])
      assert.strictEqual(yield* steps(() => page.locator(".request").count()), 0)
    })
  )

  live(
    "steers and stops a run, and queues a message behind it",
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const server = yield* makeServer(Deferred.await(gate))
      const page = yield* open(yield* server.address)
      yield* say(page, "wait for me")
      yield* steps(() => page.getByRole("button", { name: "Steer" }).waitFor())
      yield* steps(() => page.locator(".live .name", { hasText: "wait" }).waitFor())
      yield* say(page, "be quick")
      yield* Deferred.succeed(gate, undefined)
      yield* steps(() => page.locator(".part.user", { hasText: "be quick" }).waitFor())
      yield* waitForText(page, "You said")
      yield* say(page, "hang on")
      yield* waitForText(page, "One moment")
      yield* steps(() => page.locator(".composer textarea").fill("and then this"))
      yield* steps(() => page.locator(".composer textarea").press("Alt+Enter"))
      yield* click(page, "Stop")
      yield* waitForText(page, "stopped")
      yield* waitForText(page, "You said and then this.")
    })
  )

  live(
    "asks the chosen model from the next input on, and shows the choice of a thread in all tabs",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const page = yield* open(yield* server.address)
      const chooser = page.getByLabel("Model")
      yield* steps(() => chooser.waitFor())
      assert.deepStrictEqual(yield* steps(() => chooser.locator("option").allInnerTexts()), [
        "Default model",
        "careful"
      ])
      yield* steps(() => chooser.selectOption("careful"))
      yield* say(page, "first")
      yield* waitForText(page, "Careful words.")
      const other = yield* steps(() => page.context().newPage())
      yield* steps(() => other.goto(page.url()))
      yield* steps(() => other.locator("select option:checked", { hasText: "careful" }).waitFor({ state: "attached" }))
      yield* steps(() => other.getByLabel("Model").selectOption(""))
      yield* say(other, "second")
      yield* waitForText(other, "You said")
    })
  )

  live(
    "thinks as much as was chosen for the thread, also for another tab",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const page = yield* open(yield* server.address)
      const chooser = page.locator("label", { hasText: "Thinking: " }).locator("select")
      yield* steps(() => chooser.waitFor())
      yield* steps(() => chooser.selectOption("high"))
      yield* say(page, "think")
      yield* waitForText(page, 'Thinking is "high".')
      const other = yield* steps(() => page.context().newPage())
      yield* steps(() => other.goto(page.url()))
      yield* steps(() => other.locator("select option:checked", { hasText: "high" }).waitFor({ state: "attached" }))
      yield* say(other, "think again")
      yield* steps(() => other.getByText('Thinking is "high".').nth(1).waitFor())
    })
  )

  live(
    "runs inputs in the chosen mode, which stays with the thread in all tabs",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const page = yield* open(yield* server.address)
      const chooser = page.locator("label", { hasText: "Mode: " }).locator("select")
      yield* steps(() => chooser.waitFor())
      assert.deepStrictEqual(yield* steps(() => chooser.locator("option").allInnerTexts()), [
        "Mode: auto-edit",
        "Mode: ask",
        "Mode: plan"
      ])
      yield* say(page, "mode, please")
      yield* waitForText(page, "Result: auto-edit")
      yield* steps(() => chooser.selectOption("plan"))
      yield* say(page, "mode again")
      yield* waitForText(page, "Result: plan")
      const other = yield* steps(() => page.context().newPage())
      yield* steps(() => other.goto(page.url()))
      yield* steps(() => other.locator("select option:checked", { hasText: "plan" }).waitFor({ state: "attached" }))
      yield* say(other, "mode once more")
      yield* steps(() => other.getByText("Result: plan").nth(1).waitFor())
      assert.deepStrictEqual(yield* findViolations(other), [])
    })
  )

  live(
    "shows one thread in two tabs: what one decides, the other sees",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const one = yield* open(yield* server.address)
      yield* say(one, "pay please")
      yield* waitForText(one, "Allow pay?")
      const other = yield* open((yield* server.address).replace(/#.*/, (hash) => hash))
      yield* steps(() => other.locator("nav .thread", { hasText: "pay please" }).click())
      yield* waitForText(other, "Allow pay?")
      yield* click(other, "Allow")
      yield* waitForText(one, "Result: paid 7")
      yield* waitForText(other, "Result: paid 7")
      const partsOf = (page: Page) => steps(() => page.locator(".parts > *").allInnerTexts())
      assert.deepStrictEqual(
        (yield* partsOf(one)).map((text) => text.replaceAll(/\d+ ms|\s+/g, " ")),
        (yield* partsOf(other)).map((text) => text.replaceAll(/\d+ ms|\s+/g, " "))
      )
    })
  )

  live(
    "goes on where it was when the server is restarted in the middle of a run",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const page = yield* open(yield* server.address)
      yield* say(page, "hello")
      yield* waitForText(page, "You said")
      yield* say(page, "pay please")
      yield* waitForText(page, "Allow pay?")
      yield* server.stop
      yield* waitForText(page, "The connection to the server is lost.")
      assert.isTrue(yield* steps(() => page.getByRole("button", { name: "Allow", exact: true }).isDisabled()))
      yield* server.start
      yield* steps(() => page.getByText("The connection to the server is lost.").waitFor({ state: "detached" }))
      yield* click(page, "Allow")
      yield* waitForText(page, "Result: paid 7")
      assert.strictEqual(yield* steps(() => page.locator(".part.user").count()), 2)
      assert.strictEqual(yield* steps(() => page.locator(".part.tool").count()), 1)
      assert.strictEqual(yield* steps(() => page.locator(".part.decision").count()), 1)
    })
  )

  live(
    "rewinds to a message and forks from it after a preview, and decides from the inbox",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const page = yield* open(yield* server.address)
      yield* say(page, "first")
      yield* waitForText(page, "You said first.")
      yield* say(page, "second")
      yield* waitForText(page, "You said second.")
      yield* steps(() => page.locator(".part.user", { hasText: "second" }).getByText("Edit").click())
      yield* waitForText(page, "1 message of yours and 0 calls leave it.")
      yield* click(page, "Go back")
      yield* steps(() => page.locator(".part.user", { hasText: "second" }).waitFor({ state: "detached" }))
      yield* waitForText(page, "You said first.")
      assert.strictEqual(yield* steps(() => page.inputValue(".composer textarea")), "second")
      yield* say(page, "third")
      yield* waitForText(page, "You said third.")
      const before = page.url()
      yield* steps(() => page.locator(".part.user", { hasText: "third" }).getByText("Fork from here").click())
      yield* click(page, "Fork")
      yield* steps(() => page.locator(".part.user", { hasText: "third" }).waitFor({ state: "detached" }))
      yield* waitForText(page, "You said first.")
      assert.notStrictEqual(page.url(), before)
      yield* say(page, "pay please")
      yield* waitForText(page, "Allow pay?")
      yield* steps(() => page.locator("nav .thread", { hasText: "Inbox" }).click())
      yield* steps(() => page.locator(".inbox .request").waitFor())
      yield* click(page, "Allow")
      yield* waitForText(page, "Nothing waits for you.")
    })
  )

  live(
    "shows a thread and its fork side by side, with the use of each",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const page = yield* open(yield* server.address)
      yield* say(page, "first")
      yield* waitForText(page, "You said first.")
      yield* say(page, "second")
      yield* waitForText(page, "You said second.")
      yield* steps(() => page.locator(".part.user", { hasText: "second" }).getByText("Fork from here").click())
      yield* click(page, "Fork")
      yield* steps(() => page.locator(".part.user", { hasText: "second" }).waitFor({ state: "detached" }))
      yield* say(page, "mode, instead")
      yield* waitForText(page, "Result: auto-edit")
      yield* steps(() => page.locator(".menu summary").click())
      yield* steps(() => page.getByRole("button", { name: /^Compare with/u }).click())
      yield* waitForText(page, "2 messages in both, then:")
      const sides = page.locator(".compare section")
      const [own = "", other = ""] = yield* steps(() => sides.allInnerTexts())
      assert.match(own, /2 rounds · 1 call · .* tokens · [^]*mode, instead[^]*Result: auto-edit/u)
      assert.match(other, /1 round · 0 calls · .* tokens · [^]*second[^]*You said second/u)
      assert.notInclude(own, "You said")
      assert.deepStrictEqual(yield* findViolations(page), [])
      yield* click(page, "Back to the conversation")
      yield* waitForText(page, "You said first.")
    })
  )

  live(
    "tells other tabs at once of a rewind and of a fork",
    Effect.gen(function* () {
      const server = yield* makeServer()
      const one = yield* open(yield* server.address)
      yield* say(one, "first")
      yield* waitForText(one, "You said first.")
      yield* say(one, "second")
      yield* waitForText(one, "You said second.")
      const other = yield* steps(() => one.context().newPage())
      yield* steps(() => other.goto(one.url()))
      yield* waitForText(other, "You said second.")
      other.setDefaultTimeout(5_000)
      yield* steps(() => one.locator(".part.user", { hasText: "second" }).getByText("Edit").click())
      yield* click(one, "Go back")
      yield* steps(() => other.locator(".part.user", { hasText: "second" }).waitFor({ state: "detached" }))
      yield* waitForText(other, "You said first.")
      assert.strictEqual(yield* steps(() => other.locator("nav .threads ul .thread").count()), 1)
      yield* steps(() => one.locator(".menu summary").click())
      yield* click(one, "Fork all of it")
      yield* steps(() => other.locator("nav .threads ul .thread").nth(1).waitFor())
    })
  )

  for (const width of isFull ? [390, 1280] : [390]) {
    live(
      `shows the files of a thread as a tree and as text, by the keyboard, at ${width} px`,
      Effect.gen(function* () {
        const lines = Array.from({ length: 4_100 }, (_, index) => `line ${index + 1}`).join("\n")
        const files = yield* MemoryBackend.make({
          files: {
            "/notes/plan.md": "# The plan\n<script>window.hits = 1</script>",
            "/notes/deep/far.txt": "far away",
            "/long.txt": lines,
            "/page.html": "<script>window.hits = 1</script>"
          }
        })
        yield* files.upload([{ path: "/image.png", content: new Uint8Array([137, 80, 78, 71, 0, 0, 1]) }])
        const server = yield* makeServer(Effect.void, { files: () => Effect.succeed(files) })
        const page = yield* open(yield* server.address, { width })
        yield* say(page, "hello")
        yield* waitForText(page, "You said")
        yield* click(page, "Files")
        const press = (...keys: ReadonlyArray<string>) =>
          steps(async () => {
            for (const key of keys) await page.keyboard.press(key)
          })
        yield* steps(() => page.locator(".folders button.entry").last().focus())
        yield* press("Home")
        assert.match(String(yield* steps(() => page.evaluate("document.activeElement?.textContent"))), /^image/)
        yield* steps(() => page.locator(".folders button.folder").focus())
        yield* press("ArrowRight")
        yield* waitForText(page, "plan.md")
        yield* press("ArrowDown", "ArrowRight")
        yield* waitForText(page, "far.txt")
        yield* press("ArrowDown", "Enter")
        yield* waitForText(page, "far away")
        assert.deepStrictEqual(yield* findViolations(page), [])
        assert.isFalse(yield* steps(() => page.evaluate("document.documentElement.scrollWidth > innerWidth")))
        const back = width < 800 ? click(page, "All files") : Effect.void
        if (width < 800) assert.isFalse(yield* steps(() => page.locator(".folders").isVisible()))
        yield* back
        assert.deepStrictEqual(yield* findViolations(page), [])
        yield* steps(() => page.locator(".folders .entry", { hasText: "long.txt" }).click())
        yield* steps(() => page.getByRole("button", { name: "More (line 2000 of 4100)" }).click())
        yield* steps(() => page.getByRole("button", { name: "More (line 4000 of 4100)" }).click())
        yield* steps(() => page.locator(".file pre", { hasText: "line 4100" }).waitFor())
        assert.strictEqual(yield* steps(() => page.locator(".file pre").innerText()), lines)
        yield* back
        yield* steps(() => page.locator(".folders .entry", { hasText: "image.png" }).click())
        yield* waitForText(page, "This file is no text (image/png).")
        yield* back
        yield* steps(() => page.locator(".folders .entry", { hasText: "page.html" }).click())
        yield* steps(() => page.locator(".file pre", { hasText: "window.hits" }).waitFor())
        const [download] = yield* steps(() =>
          Promise.all([page.waitForEvent("download"), page.locator(".file a").click()])
        )
        assert.strictEqual(download.suggestedFilename(), "page.html")
        assert.isUndefined(yield* steps(() => page.evaluate("window.hits")))
        yield* back
        yield* click(page, "Back to the conversation")
        yield* waitForText(page, "You said")
      })
    )
  }
})
