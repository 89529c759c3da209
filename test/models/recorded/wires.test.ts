/** `npm run check:wires`: recordings in a folder, decoded and sent back. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Message } from "effect-deepagents"
import * as Effect from "effect/Effect"
import { readFixtures } from "../../../scripts/wires/fixtures.ts"
import { makeCheck } from "../../../scripts/wires/openapi.ts"
import { replay, replayWith } from "../../../scripts/wires/replay.ts"
import { problemsIn } from "../../../scripts/wires/requests.ts"

const sse = (events: ReadonlyArray<unknown>): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")

const call = { type: "function_call", id: "f", call_id: "c1", name: "read", arguments: '{"path":"a"}' }
const shell = { type: "shell_call", id: "s", call_id: "c2", action: { commands: ["ls"] }, status: "completed" }
const shellOutput = { type: "shell_call_output", id: "o", call_id: "c2", output: [], status: "completed" }
const response = { object: "response", status: "completed", model: "gpt-5.4", output: [call, shell, shellOutput] }

const claude = [
  { type: "message_start", message: { model: "claude-opus-5-5", usage: { input_tokens: 1 } } },
  {
    type: "content_block_start",
    index: 0,
    content_block: { type: "server_tool_use", id: "s1", name: "advisor", input: {} }
  },
  { type: "content_block_stop", index: 0 },
  {
    type: "content_block_start",
    index: 1,
    content_block: { type: "advisor_tool_result", tool_use_id: "s1", content: {} }
  },
  { type: "content_block_stop", index: 1 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 3 } },
  { type: "message_stop" }
]

const files: { readonly [name: string]: string } = {
  "shell.json": JSON.stringify(response),
  "shell.chunks.txt": [
    ...[call, shell, shellOutput].map((item, output_index) => ({
      type: "response.output_item.done",
      output_index,
      item
    })),
    { type: "response.completed", response }
  ]
    .map((event) => JSON.stringify(event))
    .join("\n"),
  "advisor.sse": sse(claude),
  "cut.sse": sse(claude.slice(0, 4)),
  "chat.yaml": [
    "interactions:",
    "- request: {method: POST}",
    "  response:",
    "    body:",
    `      string: ${JSON.stringify(sse([{ choices: [{ delta: { content: "hi" } }] }, { choices: [{ delta: {}, finish_reason: "stop" }] }]))}`
  ].join("\n"),
  "gemini.json": JSON.stringify({
    candidates: [
      {
        content: { parts: [{ functionCall: { name: "read", args: { path: "a" } }, thoughtSignature: "x" }] },
        finishReason: "STOP"
      }
    ]
  }),
  "settings.json": '{"name":"no recording"}'
}

const recorded = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "wires-"))
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  readFixtures
)

describe("recordings in a folder", () => {
  it.live("are decoded and sent back, and nothing is wrong", () =>
    Effect.gen(function* () {
      const outcomes = yield* Effect.forEach(yield* recorded, replay)
      expect(outcomes.map(({ fixture, isSent, kind }) => [fixture.name, fixture.api, kind, isSent])).toEqual([
        ["advisor.sse", "anthropic", "decoded", true],
        ["chat.yaml 1", "chat", "decoded", true],
        ["cut.sse", "anthropic", "failure", false],
        ["gemini.json", "gemini", "decoded", true],
        ["shell.chunks.txt", "responses", "decoded", true],
        ["shell.json", "responses", "decoded", true]
      ])
      expect(outcomes.flatMap(({ problems }) => problems)).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("show what a request loses", () =>
    Effect.gen(function* () {
      const fixtures = yield* recorded
      const of = (name: string) => fixtures.filter((fixture) => fixture.name === name)
      const [lost] = of("shell.json").map((fixture) =>
        problemsIn(fixture, Message.ai(""), { input: [call, { ...shellOutput, call_id: "c3" }] })
      )
      expect(lost?.join()).toMatch(/c1 has no one answer.*lost or changed.*lost or changed/s)
      const [changed] = of("advisor.sse").map((fixture) => problemsIn(fixture, Message.ai(""), { messages: [] }))
      expect(changed?.join()).toContain("sent without")
    }).pipe(Effect.scoped)
  )

  it.live("are held to OpenAI's document, in both directions", () =>
    Effect.gen(function* () {
      const input = { type: "array", items: { required: ["type"] } }
      const document = (request: object, event: object) =>
        makeCheck(
          JSON.stringify({
            components: {
              schemas: {
                CreateResponse: { type: "object", required: ["model", "input"], ...request },
                Response: { type: "object", required: ["model", "output"] },
                ResponseStreamEvent: { type: "object", required: ["type"], ...event }
              }
            }
          })
        )
      const fixtures = (yield* recorded).filter(({ api }) => api === "responses")
      const replayAll = (check: ReturnType<typeof makeCheck>) => Effect.forEach(fixtures, replayWith(check))
      const right = yield* replayAll(document({}, {}))
      expect(right.map(({ problems, strange }) => [problems, strange])).toEqual([
        [[], undefined],
        [[], undefined]
      ])
      const wrong = yield* replayAll(document({ properties: { input } }, {}))
      // The person's words are a message without a type.
      expect(wrong.flatMap(({ problems }) => problems).join()).toContain("CreateResponse: /input/0")
      const newer = yield* replayAll(document({}, { required: ["type", "sequence"] }))
      expect(newer.map(({ problems, strange }) => [problems.length, strange?.includes("sequence") ?? false])).toEqual([
        [0, true],
        [0, false]
      ])
    }).pipe(Effect.scoped)
  )
})
