/** The real useChat of the real React in a real browser, against the routes of AI SDK. */
import { assert, describe, it } from "@effect/vitest"
import chromium from "@sparticuz/chromium"
import type { UIMessage } from "ai"
import { Effect, Latch, Layer, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { chromium as browsers, type Page } from "playwright-core"
import { rolldown } from "rolldown"
import { isFull } from "../../scale.ts"
import { ask, serve } from "../door.ts"
import type { Driver } from "./useChat.page.ts"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`paid ${n}`)
})
const add = Tool.make("add", {
  description: "Adds",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`sum ${n}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [add, pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

const words = { chunkSize: 6, reasoning: "I think about it." }

/** A model that calls, and answers when the gate is open. */
const modelOf = (gate: Latch.Latch) =>
  TestChatModel.reactive(({ messages }) => {
    const since = messages.slice(messages.findLastIndex(({ role }) => role === "human"))
    const isPaid = since[0] !== undefined && Message.text(since[0]).startsWith("pay")
    const round = since.filter(({ role }) => role === "ai").length
    if (isPaid && round === 0)
      return TestChatModel.calls([{ name: "pay", arguments: { n: 7 } }], { text: "So be it. " })
    if (isPaid) return TestChatModel.text("It is settled.", words)
    if (round < 2)
      return TestChatModel.calls([{ name: "add", arguments: { n: round } }], {
        ...words,
        text: `Round ${round} it is. `
      })
    return () => Effect.as(gate.await, TestChatModel.text("All of it is done.", words))
  })

const bundlePage = Effect.promise(async () => {
  const bundle = await rolldown({
    input: new URL("./useChat.page.ts", import.meta.url).pathname,
    platform: "browser",
    logLevel: "silent",
    transform: { define: { "process.env.NODE_ENV": '"production"' } }
  })
  const { output } = await bundle.generate({ format: "iife", minify: true })
  return output[0].code
})

const openPage = Effect.fnUntraced(function* (url: string) {
  const script = yield* bundlePage
  const browser = yield* Effect.acquireRelease(
    Effect.promise(async () =>
      browsers.launch({ executablePath: await chromium.executablePath(), args: chromium.args, headless: true })
    ),
    (open) => Effect.promise(() => open.close())
  )
  return yield* Effect.promise(async () => {
    const page = await browser.newPage()
    const html = "<!doctype html><meta charset=utf-8><body></body><script src=/test.js></script>"
    await page.route("**/test.html", (route) => route.fulfill({ contentType: "text/html", body: html }))
    await page.route("**/test.js", (route) => route.fulfill({ contentType: "text/javascript", body: script }))
    await page.goto(`${url}/test.html`)
    return page
  })
})

declare const driver: Driver

const call = <K extends keyof Driver>(page: Page, name: K, ...args: Parameters<Driver[K]>) =>
  Effect.promise(() =>
    page.evaluate<ReturnType<Driver[K]>, [string, ReadonlyArray<unknown>]>(
      ([key, given]) => Reflect.get(driver, key)(...given),
      [name, args]
    )
  )

/** Waits for a condition in the page. */
const until = (page: Page, condition: string) =>
  Effect.promise(() =>
    page.waitForFunction(condition, undefined, { timeout: 25_000 }).catch(async () => {
      const seen = await page.evaluate("`${driver.status()} ${driver.error()} ${driver.messages()}`")
      assert.fail(`it never came: ${condition}; seen: ${String(seen)}`)
    })
  )

const mount = (page: Page, id: string) =>
  Effect.andThen(call(page, "mount", id, "token-of-ada"), until(page, "driver.isReady()"))

const readMessages = (page: Page): Effect.Effect<ReadonlyArray<UIMessage>> =>
  Effect.map(call(page, "messages"), (json) => JSON.parse(json))

/** The parts of the last message, without the ids, which are new in each run. */
const lastOf = (page: Page) =>
  Effect.map(readMessages(page), (messages) =>
    (messages.at(-1)?.parts ?? []).map((part): object => ({ ...part, id: "", toolCallId: "" }))
  )

const toolIn = (message: UIMessage | undefined) => message?.parts.find((part) => part.type === "dynamic-tool")

const runsOf = (gate: Latch.Latch) => Server.layer({ helper }).pipe(Layer.provide(modelOf(gate)))

describe("useChat", () => {
  it.live(
    "comes again after cuts and stops, and has the message of an uncut client",
    () =>
      Effect.gen(function* () {
        const gate = yield* Latch.make(true)
        const url = yield* serve(runsOf(gate), { protocols: ["aiSdk"] })
        const page = yield* openPage(url)
        yield* mount(page, "uncut")
        yield* call(page, "send", "go")
        yield* until(page, "driver.status() === 'ready' && driver.messages().includes('done.')")
        const uncut = yield* lastOf(page)
        assert.deepStrictEqual(
          uncut.flatMap((part) => ("type" in part && part.type === "text" && "text" in part ? [part.text] : [])),
          ["Round 0 it is. ", "Round 1 it is. ", "All of it is done."]
        )
        for (const bytes of isFull ? [0, 90, 400, 1_000, 1_700, 2_400] : [400, 1_700]) {
          yield* gate.close
          yield* mount(page, `cut-${bytes}`)
          yield* call(page, "cut", bytes)
          yield* call(page, "send", "go")
          yield* until(page, "driver.status() === 'error'")
          yield* call(page, "again")
          yield* until(page, "driver.status() === 'streaming'")
          yield* gate.open
          yield* until(page, "driver.status() === 'ready'")
          assert.deepStrictEqual(yield* lastOf(page), uncut, `cut after ${bytes} bytes`)
          assert.strictEqual((yield* readMessages(page)).length, 2)
        }
        yield* gate.close
        yield* mount(page, "stopped")
        yield* call(page, "send", "go")
        yield* until(page, "driver.messages().includes('Round 1')")
        yield* call(page, "stop")
        yield* until(page, "driver.status() === 'ready'")
        yield* call(page, "again")
        yield* until(page, "driver.status() === 'streaming'")
        yield* gate.open
        yield* until(page, "driver.status() === 'ready' && driver.messages().includes('done.')")
        assert.deepStrictEqual(yield* lastOf(page), uncut, "stopped")

        // A finished, missing or foreign run can't be resumed.
        for (const [id, token] of [
          ["stopped", "token-of-ada"],
          ["none", "token-of-ada"],
          ["stopped", "token-of-eve"]
        ] as const) {
          const { status } = yield* ask(`${url}/api/chat/${id}/stream`, { token })
          assert.strictEqual(status, 204)
        }
        assert.strictEqual((yield* ask(`${url}/api/chat/stopped/stream`, { token: "" })).status, 401)
      }).pipe(Effect.provide(Layer.fresh(Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)))),
    60_000
  )

  it.live(
    "asks for approval, and goes on with the answer in the same message",
    () =>
      Effect.gen(function* () {
        const gate = yield* Latch.make(true)
        const url = yield* serve(runsOf(gate), { protocols: ["aiSdk"] })
        const page = yield* openPage(url)
        for (const isApproved of [true, false]) {
          yield* mount(page, `pay-${isApproved}`)
          yield* call(page, "send", "pay")
          yield* until(page, "driver.status() === 'ready' && driver.messages().includes('approval-requested')")
          const lastMessage = (yield* readMessages(page)).at(-1)
          const part = toolIn(lastMessage)
          assert.deepStrictEqual([part?.toolName, part?.input], ["pay", { n: 7 }])
          yield* call(page, "decide", part?.approval?.id ?? "", isApproved)
          yield* until(page, "driver.status() === 'ready' && driver.messages().includes('settled')")
          const messages = yield* readMessages(page)
          assert.strictEqual(messages.length, 2)
          const answer = messages[1]
          assert.strictEqual(answer?.id, lastMessage?.id)
          const tool = toolIn(answer)
          assert.strictEqual(tool?.state, isApproved ? "output-available" : "output-denied")
          if (isApproved) assert.strictEqual(tool?.output, "paid 7")
          assert.propertyVal(answer?.metadata, "stopReason", "completed")
          assert.strictEqual(yield* call(page, "error"), undefined)
        }
        // A foreign tenant can't decide, and a decision counts once.
        const body = {
          id: "pay-true",
          messages: [
            {
              id: "x",
              role: "assistant",
              parts: [{ type: "dynamic-tool", state: "approval-responded", approval: { id: "1", approved: true } }]
            }
          ]
        }
        assert.strictEqual((yield* ask(`${url}/api/chat`, { body })).status, 409)
        assert.strictEqual((yield* ask(`${url}/api/chat`, { body, token: "token-of-eve" })).status, 404)
        for (const wrong of [
          {},
          { id: "a", messages: [] },
          { id: "a", messages: [{ id: "1", role: "user", parts: [] }] }
        ]) {
          assert.strictEqual((yield* ask(`${url}/api/chat`, { body: wrong })).status, 400)
        }
      }).pipe(Effect.provide(Layer.fresh(Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)))),
    60_000
  )
})
