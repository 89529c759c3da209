/** The page in a real browser: long threads, lost connections, hostile content, and who can use it. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { type AgentEvent, Message } from "effect-deepagents"
import * as Effect from "effect/Effect"
import type { Page } from "playwright-core"
import { isFull, scaled } from "../scale.ts"
import { attacks } from "./attacks.ts"
import { closeBrowser, findViolations, open, steps } from "./browser.ts"
import { type Frame, framesOf, tellFrames } from "./site.ts"

afterAll(closeBrowser)

/** The end of the conversation as a person sees it. */
const waitForText = (page: Page, text: string) => steps(() => page.getByText(text, { exact: false }).last().waitFor())

/** Waits until an expression holds. The policy of the page has no eval, which playwright's own waiting needs. */
const until = async (page: Page, expression: string): Promise<void> => {
  for (let tries = 0; tries < 600; tries++) {
    if ((await page.evaluate(`Boolean(${expression})`)) === true) return
    await page.waitForTimeout(50)
  }
  assert.fail(`never: ${expression}`)
}

const textOf = (page: Page, selector: string) => steps(() => page.locator(selector).allInnerTexts())

describe("the page", () => {
  it.live("streams an answer, its calls with folded details, the plan and the sources", () =>
    Effect.gen(function* () {
      const site = yield* tellFrames(
        framesOf([
          { _tag: "RunStarted", agent: "helper", model: "model-x" },
          { _tag: "MessageAppended", message: Message.human("Why is it slow?", { id: "m1" }) },
          { _tag: "RoundStarted", round: 1 },
          { _tag: "TextDelta", text: "# The cause\n\nIt reads **every** fi" }
        ])
      )
      const page = yield* open(`${site.url}/#/t`)
      yield* waitForText(page, "Why is it slow?")
      yield* waitForText(page, "every")
      assert.deepStrictEqual(yield* textOf(page, ".prose strong"), ["every"])
      site.tell(
        framesOf(
          [
            { _tag: "TextDelta", text: "le. See [docs](https://docs.example/x).\n\n```ts\nconst a = 1\n```\n" },
            { _tag: "StateChanged", slot: "todos", value: [{ content: "Find it", status: "completed" }] },
            { _tag: "ToolCalled", callId: "c", toolName: "edit_file", arguments: { file_path: "/a.ts" } },
            {
              _tag: "ToolCompleted",
              callId: "c",
              toolName: "edit_file",
              text: "ok",
              details: { kind: "edit", added: 1, removed: 1, diff: "@@ -1 +1 @@\n-old line\n+new line" },
              durationMillis: 5
            },
            {
              _tag: "SourcesFound",
              sources: [{ number: 1, source: { key: "k", title: "A page", url: "https://a.example/p" } }]
            },
            {
              _tag: "RunCompleted",
              stopReason: "completed",
              rounds: 1,
              usage: {
                inputTokens: 1200,
                outputTokens: 300,
                cacheReadTokens: 0,
                cacheWriteTokens: 0,
                reasoningTokens: 0,
                cost: 0.5
              }
            }
          ],
          4
        )
      )
      yield* waitForText(page, "1.5k tokens · $0.5000")
      yield* waitForText(page, "edited (+1 −1)")
      assert.isFalse(yield* steps(() => page.getByText("new line").isVisible()))
      yield* steps(() => page.locator("details.tool summary").click())
      assert.include((yield* textOf(page, ".diff .added")).join(), "+new line")
      const link = page.locator(".prose a")
      assert.strictEqual(yield* steps(() => link.getAttribute("rel")), "noopener noreferrer")
      assert.include(yield* steps(() => link.innerText()), "docs.example")
      assert.deepStrictEqual(yield* textOf(page, ".sources a"), ["A page a.example"])
      yield* waitForText(page, "Plan: 1 of 1")
    }).pipe(Effect.scoped)
  )

  it.live("has at most 60 parts in the document, wherever a person looks, and stays there while text comes", () =>
    Effect.gen(function* () {
      const messages = 2 * scaled(2_500)
      const events = Array.from({ length: messages }, (_, index) => ({
        _tag: "MessageAppended" as const,
        message:
          index % 2 === 0
            ? Message.human(`Question ${index}`, { id: `m${index}` })
            : Message.ai(`Answer **${index}**\n\n${"It goes on. ".repeat(index % 40)}`, { id: `m${index}` })
      }))
      const frames = framesOf([{ _tag: "RunStarted", agent: "helper" }, ...events])
      const site = yield* tellFrames(frames)
      const page = yield* open(`${site.url}/#/t`)
      const count = () => page.locator(".parts > *").count()
      const scrollTo = (place: string) =>
        steps(() => page.evaluate(`{ const box = document.querySelector(".scroller"); box.scrollTop = ${place} }`))
      yield* waitForText(page, `Question ${messages - 2}`)
      assert.isAtMost(yield* steps(count), 60)
      yield* scrollTo("0")
      yield* waitForText(page, "Question 0")
      assert.isAtMost(yield* steps(count), 60)
      // Step by step, so that heights are learned on the way.
      for (let step = 0; step < 12; step++) {
        yield* scrollTo("box.scrollTop + 700")
        yield* steps(() => until(page, "document.querySelector('.parts').getBoundingClientRect().bottom > 200"))
        assert.isAtMost(yield* steps(count), 60)
      }
      yield* steps(() => page.getByText("To the end").waitFor())
      const before = yield* steps(() => page.evaluate("document.querySelector('.scroller').scrollTop"))
      site.tell(framesOf([{ _tag: "TextDelta", text: "More comes.\n\n".repeat(20) }], frames.length))
      yield* steps(() => until(page, "document.querySelector('.live, .scroller').scrollHeight > 0"))
      yield* steps(() =>
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
      )
      assert.strictEqual(yield* steps(() => page.evaluate("document.querySelector('.scroller').scrollTop")), before)
      yield* steps(() => page.getByText("To the end").click())
      yield* waitForText(page, "More comes.")
      assert.isAtMost(yield* steps(count), 60)
    }).pipe(Effect.scoped)
  )

  it.live("says when it is offline, and goes on behind the last frame", () =>
    Effect.gen(function* () {
      const site = yield* tellFrames(
        framesOf([
          { _tag: "RunStarted", agent: "helper" },
          { _tag: "MessageAppended", message: Message.human("Hello", { id: "m" }) },
          { _tag: "TextDelta", text: "One. " }
        ])
      )
      const page = yield* open(`${site.url}/#/t`)
      yield* waitForText(page, "One.")
      yield* steps(() => page.fill("textarea", "half a thought"))
      yield* steps(() => page.context().setOffline(true))
      site.cut()
      yield* waitForText(page, "You are offline.")
      site.tell(framesOf([{ _tag: "TextDelta", text: "Two. " }], 3))
      yield* steps(() => page.context().setOffline(false))
      yield* waitForText(page, "One. Two.")
      yield* steps(() => page.getByText("You are offline.").waitFor({ state: "detached" }))
      assert.deepStrictEqual(yield* textOf(page, ".prose"), ["One. Two."])
      assert.strictEqual(yield* steps(() => page.inputValue("textarea")), "half a thought")
    }).pipe(Effect.scoped)
  )
})

/** Puts a text into each text of a value. */
const poison = (value: unknown, text: string, keep: ReadonlySet<string> = fixed): unknown => {
  if (typeof value === "string") return text
  if (Array.isArray(value)) return value.map((one) => poison(one, text, keep))
  if (value === null || typeof value !== "object") return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, keep.has(name) ? one : poison(one, text, keep)])
  )
}

/** Fields whose values the events' schema fixes, and those by which events are told apart. */
const fixed = new Set([
  "_tag",
  "role",
  "type",
  "kind",
  "stopReason",
  "allow",
  "decision",
  "runId",
  "path",
  "childRunId",
  "slot",
  "unit",
  "format"
])

const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }

/** One of each event that the page shows, with every text of an attacker. */
const hostile = (text: string, index: number): ReadonlyArray<Frame> => {
  const id = `${index}`
  const events = framesOf(
    [
      { _tag: "RunStarted", agent: "x", model: "x", provider: "x" },
      { _tag: "MessageAppended", message: Message.human("x", { id: `h${id}` }) },
      { _tag: "RoundStarted", round: 1 },
      { _tag: "ReasoningDelta", text: "x" },
      { _tag: "ReasoningCompleted" },
      { _tag: "TextDelta", text: "x" },
      { _tag: "MessageAppended", message: Message.ai("x", { id: `a${id}` }) },
      { _tag: "TextDelta", text: "x" },
      { _tag: "ToolCallDelta", callId: `d${id}`, toolName: "x", delta: "x" },
      { _tag: "ToolCalled", callId: `c${id}`, toolName: "x", arguments: { command: "x" } },
      { _tag: "ToolProgress", callId: `c${id}`, toolName: "x", progress: { output: "x", phase: "x" } },
      {
        _tag: "ToolCompleted",
        callId: `c${id}`,
        toolName: "x",
        text: "x",
        details: { kind: "patch", files: [{ path: "x", diff: "x" }] },
        durationMillis: 2_000
      },
      { _tag: "ToolCalled", callId: `f${id}`, toolName: "x", arguments: { x: "x" } },
      { _tag: "ToolFailed", callId: `f${id}`, toolName: "x", reason: "x", text: "x", durationMillis: 1 },
      { _tag: "SourcesFound", sources: [{ number: 1, source: { key: "x", title: "x", url: "x", snippet: "x" } }] },
      { _tag: "StateChanged", slot: "todos", value: [{ content: "x", status: "x" }] },
      {
        _tag: "StateChanged",
        slot: "backgroundTasks",
        value: { tasks: [{ id: "x", agent: "x", description: "x", status: "x" }] }
      },
      { _tag: "ToolCalled", callId: `s${id}`, toolName: "x", arguments: { subagent_type: "x", description: "x" } },
      { _tag: "SubagentStarted", callId: `s${id}`, agent: "x", childRunId: `k${id}` },
      { _tag: "TextDelta", text: "x", runId: `k${id}`, path: ["helper", text] },
      { _tag: "Warning", code: "x", message: "x" },
      { _tag: "TurnRestarted", reason: "x" },
      { _tag: "Custom", name: "x", payload: { x: "x" } },
      {
        _tag: "ApprovalRequested",
        id: `q${id}`,
        callId: "x",
        toolName: "x",
        arguments: { file_path: "x", old_string: "x", new_string: "x" },
        description: "x",
        allow: ["approve", "reject", "edit"],
        editsFiles: true
      },
      {
        _tag: "ApprovalRequested",
        id: `w${id}`,
        callId: "x",
        toolName: "x",
        arguments: { question: "x" },
        description: "x",
        allow: ["respond"],
        answer: { type: "object", required: [], properties: { x: { type: "string", enum: ["x"], description: "x" } } }
      },
      { _tag: "ApprovalResolved", id: `q${id}`, callId: "x", toolName: "x", decision: "approve" },
      ...(index % 2 === 0
        ? [
            {
              _tag: "SubagentCompleted" as const,
              callId: `s${id}`,
              agent: "x",
              childRunId: `k${id}`,
              outcome: "x",
              usage
            }
          ]
        : []),
      { _tag: "RunFailed", error: { tag: "x", message: "x" }, rounds: 1, usage }
    ],
    index * 100
  )
  const ids = new Set([...fixed, "id", "callId"])
  return events.map((frame) =>
    frame._tag === "Event" ? { ...frame, event: poison(frame.event, text, ids) as AgentEvent.AgentEvent } : frame
  )
}

describe("hostile content", () => {
  it.live("runs nothing, and asks no other machine, in any text of any event", () =>
    Effect.gen(function* () {
      assert.isAtLeast(attacks.length, 200)
      const some = attacks.filter(
        (_, index) => index % Math.max(1, Math.round(attacks.length / scaled(attacks.length))) === 0
      )
      const site = yield* tellFrames([])
      const page = yield* open(`${site.url}/#/t`)
      const outside: Array<string> = []
      page.on("request", (request) => {
        if (!request.url().startsWith(site.url) && !request.url().startsWith("data:")) outside.push(request.url())
      })
      page.on("dialog", (dialog) => void dialog.dismiss())
      page.on("popup", (popup) => outside.push(`popup ${popup.url()}`))
      yield* steps(() => page.evaluate("window.hits = 0; window.pwn = () => { window.hits++ }"))
      yield* steps(() => until(page, "document.querySelector('.timeline') !== null"))
      let told = 0
      for (const [index, attack] of some.entries()) {
        const frames = hostile(attack, index + 1)
        // Requests are shown while they wait, the rest when it is over.
        site.tell(frames.slice(0, -2))
        site.tell(frames.slice(-2))
        told += frames.length
        if (index % 10 === 9 || index === some.length - 1) {
          yield* steps(() => until(page, "document.querySelectorAll('.parts > *').length > 0"))
          yield* steps(() =>
            page.evaluate(
              "for (const one of document.querySelectorAll('details')) one.open = true; for (const one of document.querySelectorAll('.parts button, .parts [onmouseover], .parts summary')) one.dispatchEvent(new Event('mouseover', { bubbles: true }))"
            )
          )
          yield* steps(() => page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))"))
          const bad = yield* steps(() =>
            page.evaluate(`[...document.querySelectorAll("#app *")].filter((one) =>
              ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "BASE", "LINK", "META", "STYLE", "SVG", "MATH", "TEMPLATE", "VIDEO", "AUDIO"].includes(one.tagName.toUpperCase()) ||
              one.getAttributeNames().some((name) => name.startsWith("on") || name === "srcdoc" || name === "style" && one.closest(".prose")) ||
              /^\\s*(javascript|vbscript|data:text)/i.test(one.getAttribute("href") ?? "")).map((one) => one.outerHTML.slice(0, 200))`)
          )
          assert.deepStrictEqual(bad, [], attack)
        }
      }
      assert.isAbove(told, 25 * some.length)
      assert.strictEqual(yield* steps(() => page.evaluate("window.hits")), 0)
      assert.deepStrictEqual(outside, [])
      assert.strictEqual(new URL(page.url()).origin, site.url)
    }).pipe(Effect.scoped)
  )

  it.live("shows an image of an answer when it is asked to, and none of another machine", () =>
    Effect.gen(function* () {
      const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
      const site = yield* tellFrames(
        framesOf([
          { _tag: "RunStarted", agent: "helper" },
          {
            _tag: "MessageAppended",
            message: Message.ai(`![far](https://leak.example/x.png) ![near](data:image/png;base64,${pixel})`, {
              id: "a"
            })
          }
        ])
      )
      const page = yield* open(`${site.url}/#/t`)
      const asked: Array<string> = []
      page.on("request", (request) => asked.push(request.url()))
      yield* waitForText(page, "far")
      assert.strictEqual(yield* steps(() => page.locator(".prose img").count()), 0)
      yield* steps(() => page.getByText("Show image: near").click())
      yield* steps(() => page.locator(".prose img").waitFor())
      assert.isEmpty(asked.filter((url) => url.includes("leak")))
    }).pipe(Effect.scoped)
  )
})

describe("people", () => {
  for (const width of [390, 1280]) {
    for (const theme of ["light", "dark"] as const) {
      it.live.runIf(isFull || (width === 390) === (theme === "dark"))(
        `finds nothing that breaks WCAG AA at ${width} px, ${theme}`,
        () =>
          Effect.gen(function* () {
            const frames = hostile("**A text**, with `code`, [a link](https://a.example/) and more.", 1)
            const site = yield* tellFrames(frames.slice(0, -3))
            const page = yield* open(`${site.url}/#/t`, { width, theme })
            yield* steps(() => page.locator(".request").first().waitFor())
            const check = findViolations(page)
            assert.deepStrictEqual(yield* check, [])
            yield* steps(() => page.locator("details.tool summary").first().click())
            if (width > 800) assert.deepStrictEqual(yield* check, [])
            else {
              yield* steps(() => page.getByRole("button", { name: "Threads" }).click())
              assert.deepStrictEqual(yield* check, [])
              yield* steps(() => page.getByRole("button", { name: "Threads" }).click())
              yield* steps(() => page.getByRole("button", { name: "Details" }).click())
              assert.deepStrictEqual(yield* check, [])
              const isWide = yield* steps(() => page.evaluate("document.documentElement.scrollWidth > innerWidth"))
              assert.isFalse(isWide)
            }
          }).pipe(Effect.scoped)
      )
    }
  }
})
