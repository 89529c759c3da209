import { describe, expect, it } from "@effect/vitest"
import { Agent } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { Browser, Computer } from "effect-deepagents/web"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type Step, stepOf } from "../../src/web/internal/computer/steps.ts"
import { serve } from "../net/servers.ts"
import { browserWith } from "./chromiums.ts"

const apiKey = Redacted.make("secret-key")

const click = { _tag: "Click", at: { x: 10, y: 20 }, button: "left", count: 1, keys: [] } as const

describe("actions of models", () => {
  it.each([
    ["OpenAI's click", { type: "click", button: "left", x: 10, y: 20 }, click],
    ["Claude's click", { action: "left_click", coordinate: [10, 20] }, click],
    [
      "a click with a key",
      { type: "click", button: "wheel", x: 10, y: 20, keys: ["CTRL"] },
      { ...click, button: "middle", keys: ["Control"] }
    ],
    [
      "Claude's click with keys",
      { action: "left_click", coordinate: [10, 20], text: "ctrl+shift" },
      { ...click, keys: ["Control", "Shift"] }
    ],
    ["three clicks", { action: "triple_click", coordinate: [10, 20] }, { ...click, count: 3 }],
    [
      "keys",
      { type: "keypress", keys: ["ARROWLEFT", "a", "F5"] },
      { _tag: "Press", keys: ["ArrowLeft", "a", "F5"], seconds: 0 }
    ],
    ["Claude's keys", { action: "key", text: "Return" }, { _tag: "Press", keys: ["Enter"], seconds: 0 }],
    ["the plus sign", { action: "key", text: "ctrl++" }, { _tag: "Press", keys: ["Control", "+"], seconds: 0 }],
    [
      "a scroll",
      { type: "scroll", x: 1, y: 2, scroll_x: 0, scroll_y: 300 },
      { _tag: "Scroll", at: { x: 1, y: 2 }, dx: 0, dy: 300 }
    ],
    [
      "Claude's scroll",
      { action: "scroll", coordinate: [1, 2], scroll_direction: "up", scroll_amount: 2 },
      { _tag: "Scroll", at: { x: 1, y: 2 }, dx: 0, dy: -200 }
    ],
    [
      "a drag",
      {
        type: "drag",
        path: [
          { x: 1, y: 2 },
          { x: 3, y: 4 }
        ]
      },
      {
        _tag: "Drag",
        path: [
          { x: 1, y: 2 },
          { x: 3, y: 4 }
        ],
        keys: []
      }
    ],
    [
      "Claude's drag",
      { action: "left_click_drag", start_coordinate: [1, 2], coordinate: [3, 4] },
      {
        _tag: "Drag",
        path: [
          { x: 1, y: 2 },
          { x: 3, y: 4 }
        ],
        keys: []
      }
    ],
    ["a long wait", { action: "wait", duration: 9_000 }, { _tag: "Wait", seconds: 30 }],
    ["a text", { type: "type", text: "hi" }, { _tag: "Type", text: "hi" }],
    ["a picture", { type: "screenshot" }, { _tag: "Look" }],
    ["an unknown one", { type: "constructor" }, undefined],
    ["a move to nowhere", { type: "move", x: "far", y: NaN }, undefined],
    ["a click to nowhere", { type: "click", button: "left", x: NaN, y: 20 }, undefined],
    ["Claude's click to nowhere", { action: "left_click", coordinate: [10, "20"] }, undefined],
    ["Claude's click where the mouse is", { action: "left_click" }, { ...click, at: undefined }],
    ["a scroll of nothing", { type: "scroll", x: null, y: 2, scroll_x: 0, scroll_y: 3 }, undefined],
    ["a drag without a place", { type: "drag", path: [] }, undefined],
    ["a drag with a wrong place", { type: "drag", path: [{ x: 1, y: 2 }, { x: 3 }] }, undefined],
    ["Claude's drag from nowhere", { action: "left_click_drag", start_coordinate: [1], coordinate: [3, 4] }, undefined],
    [
      "Claude's drag from the mouse",
      { action: "left_click_drag", coordinate: [3, 4] },
      { _tag: "Drag", path: [{ x: 3, y: 4 }], keys: [] }
    ]
  ] as const)("%s", (_, action, step) => {
    expect(stepOf(action)).toEqual(step)
  })
})

/** A screen that keeps the steps. */
const scripted = () => {
  const steps: Array<Step> = []
  const layer = Layer.succeed(Computer.Computer, {
    act: (_, step) => Effect.sync(() => void steps.push(step)),
    screenshot: () => Effect.succeed({ bytes: new Uint8Array([1, 2, 3]), mimeType: "image/png" as const }),
    open: () => Effect.void
  })
  return { steps, layer }
}

/** A server that gives answers in turn, and keeps the bodies of requests. */
const answers = (...replies: ReadonlyArray<object>) => {
  const bodies: Array<string> = []
  const fetch: typeof globalThis.fetch = async (_, init) => {
    bodies.push(typeof init?.body === "string" ? init.body : "")
    return Response.json(replies[bodies.length - 1] ?? {}, { status: bodies.length > replies.length ? 500 : 200 })
  }
  return { bodies, fetch }
}

const surfer = Agent.make({
  name: "surfer",
  prompt: "You use the screen.",
  tools: [Computer.open, Computer.tool],
  middleware: [HumanInTheLoop.make({})]
})

describe("the computer of a provider", () => {
  it.effect("of OpenAI: actions are done, and a picture goes back", () =>
    Effect.gen(function* () {
      const actions = [{ type: "click", button: "left", x: 10, y: 20 }, { type: "screenshot" }]
      const call = {
        type: "computer_call",
        id: "cu",
        call_id: "c1",
        status: "completed",
        actions,
        pending_safety_checks: []
      }
      const said = {
        type: "message",
        id: "m",
        role: "assistant",
        content: [{ type: "output_text", text: "Done.", annotations: [] }]
      }
      const response = { object: "response", status: "completed", model: "gpt-6-sol" }
      const { bodies, fetch } = answers({ ...response, output: [call] }, { ...response, output: [said] })
      const { layer, steps } = scripted()
      const model = OpenAiChatModel.layer({ model: "gpt-6-sol", apiKey, fetch, serverTools: [{ type: "computer" }] })
      const result = yield* Agent.run(surfer, "Click.").pipe(Effect.provide([layer, model]))
      expect(result.text).toBe("Done.")
      expect(steps).toEqual([click, { _tag: "Look" }])
      const { input, tools } = JSON.parse(bodies[1] ?? "{}")
      expect(input.slice(-2)).toMatchObject([
        { type: "computer_call", call_id: "c1" },
        {
          type: "computer_call_output",
          call_id: "c1",
          output: { type: "computer_screenshot", image_url: "data:image/png;base64,AQID" }
        }
      ])
      expect(tools.map((tool: { readonly name?: string; readonly type: string }) => tool.name ?? tool.type)).toEqual([
        "computer",
        "computer_open"
      ])
    })
  )

  it.effect("of Claude: an action is done, and a picture goes back", () =>
    Effect.gen(function* () {
      const answer = {
        type: "message",
        role: "assistant",
        model: "claude-opus-5-5",
        usage: { input_tokens: 1, output_tokens: 1 }
      }
      const call = {
        type: "tool_use",
        id: "t1",
        name: "computer",
        input: { action: "left_click", coordinate: [10, 20] }
      }
      const { bodies, fetch } = answers(
        { ...answer, content: [call], stop_reason: "tool_use" },
        { ...answer, content: [{ type: "text", text: "Done." }], stop_reason: "end_turn" }
      )
      const { layer, steps } = scripted()
      const screen = { type: "computer_20251124", name: "computer", display_width_px: 1280, display_height_px: 800 }
      const model = AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey, fetch, serverTools: [screen] })
      const result = yield* Agent.run(surfer, "Click.").pipe(Effect.provide([layer, model]))
      expect(result.text).toBe("Done.")
      expect(steps).toEqual([click])
      const { messages, tools } = JSON.parse(bodies[1] ?? "{}")
      expect(messages.at(-1).content[0]).toMatchObject({
        type: "tool_result",
        tool_use_id: "t1",
        content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AQID" } }]
      })
      expect(tools.map(({ name }: { readonly name: string }) => name)).toEqual(["computer", "computer_open"])
    })
  )

  it.effect("does nothing that OpenAI doubts before a person decides", () =>
    Effect.gen(function* () {
      const checks = [{ id: "check", code: "malicious_instructions", message: "odd" }]
      const actions = [{ type: "type", text: "rm" }]
      const call = { type: "computer_call", id: "cu", call_id: "c1", actions, pending_safety_checks: checks }
      const response = { object: "response", status: "completed", model: "gpt-6-sol" }
      const { bodies, fetch } = answers({ ...response, output: [call] }, { ...response, output: [] })
      const { layer, steps } = scripted()
      const model = OpenAiChatModel.layer({ model: "gpt-6-sol", apiKey, fetch, serverTools: [{ type: "computer" }] })
      const result = yield* Agent.run(surfer, "Click.").pipe(Effect.provide([layer, model]))
      expect([result.stopReason, steps]).toEqual(["suspended", []])
      expect(bodies.join()).not.toContain("acknowledged_safety_checks")
    })
  )
})

const board = `<!doctype html><body style="margin:0"><input id="field" style="position:absolute;left:0;top:0;width:200px;height:40px">
  <div id="box" style="position:absolute;left:300px;top:100px;width:200px;height:200px;background:red"></div>
  <div style="height:4000px"></div><script>
  const say = (text) => { document.title += text + ";" }
  box.addEventListener("click", (event) => say("click" + (event.ctrlKey ? "+ctrl" : "")))
  box.addEventListener("dblclick", () => say("double"))
  box.addEventListener("mousemove", (event) => { if (event.buttons) document.body.dataset.dragged = "yes" })
  addEventListener("mouseup", () => { if (document.body.dataset.dragged) say("dragged") })
  addEventListener("scroll", () => { if (scrollY > 0) say("scrolled") }, { once: true })
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") say("entered " + field.value) })
</script></body>`

describe("a browser's page as the screen", () => {
  it.live("is clicked, written to, dragged on and scrolled", () =>
    Effect.gen(function* () {
      const { port, url } = yield* serve((_, response) => {
        response.setHeader("content-type", "text/html")
        response.end(board)
      })
      yield* Effect.gen(function* () {
        const computer = yield* Computer.Computer
        const browser = yield* Browser.Browser
        yield* computer.open("a", url)
        // Keys of a step that fails do not stay down.
        yield* Effect.flip(computer.act("a", { _tag: "Press", keys: ["Control", "NoSuchKey"], seconds: 0 }))
        const steps: ReadonlyArray<Step> = [
          { _tag: "Click", at: { x: 400, y: 200 }, button: "left", count: 2, keys: [] },
          { _tag: "Click", at: { x: 400, y: 200 }, button: "left", count: 1, keys: ["Control"] },
          {
            _tag: "Drag",
            path: [
              { x: 320, y: 120 },
              { x: 480, y: 280 }
            ],
            keys: []
          },
          { _tag: "Click", at: { x: 50, y: 20 }, button: "left", count: 1, keys: [] },
          { _tag: "Type", text: "hello" },
          { _tag: "Press", keys: ["Enter"], seconds: 0 },
          { _tag: "Scroll", at: { x: 600, y: 400 }, dx: 0, dy: 500 }
        ]
        for (const step of steps) yield* computer.act("a", step)
        const { title } = yield* browser.snapshot("a")
        expect(title.match(/click\+ctrl/g)).toHaveLength(1)
        for (const said of ["click+ctrl", "double", "dragged", "entered hello", "scrolled"])
          expect(title).toContain(said)
        expect((yield* computer.screenshot("a")).bytes.slice(0, 2)).toEqual(new Uint8Array([0xff, 0xd8]))
      }).pipe(
        Effect.provide(Layer.provideMerge(Computer.layerBrowser, browserWith({ allowPrivate: [`127.0.0.1:${port}`] })))
      )
    }).pipe(Effect.scoped)
  )
})
