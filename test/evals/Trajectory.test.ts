import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { type Json, Message } from "effect-deepagents"
import { Trajectory } from "effect-deepagents/evals"
import * as fc from "fast-check"
import { conversation, factsOf } from "./conversation.ts"

const fixture = (name: string) => readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8")

const about = { agent: "clerk", version: "1.0.0", sessionId: "thread-1", model: "m-0" }

// The schema is of the models of harbor 0.26.
const validate = new Ajv2020({ strict: false }).compile<object>(JSON.parse(fixture("atif.schema.json")))

interface Step {
  readonly step_id: number
  readonly source: string
  readonly model_name?: string
  readonly metrics?: object
  readonly tool_calls?: ReadonlyArray<{ readonly tool_call_id: string }>
  readonly observation?: {
    readonly results: ReadonlyArray<{
      readonly source_call_id?: string
      readonly content?: string
      readonly extra?: object
    }>
  }
}

const stepsOf = (document: Json.JsonObject) => document["steps"] as unknown as ReadonlyArray<Step>

const message = fc.oneof(
  fc.string().map((text) => Message.human(text)),
  fc.string().map((text) => Message.system(text)),
  fc
    .record({ text: fc.string(), ids: fc.uniqueArray(fc.constantFrom("a", "b", "c")) })
    .map(({ ids, text }) =>
      Message.ai(text, { toolCalls: ids.map((id) => ({ id, name: `tool ${id}`, arguments: { id } })) })
    ),
  fc
    .record({ text: fc.string(), id: fc.constantFrom("a", "b", "c", "stray"), isError: fc.boolean() })
    .map(({ id, isError, text }) => Message.tool(text, { toolCallId: id, toolName: "tool", isError }))
)

describe("a trajectory", () => {
  it("of any conversation is valid, its steps are numbered, and each observation belongs to a call of its step", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), (messages) => {
        const document = Trajectory.toAtif(messages, about)
        const steps = stepsOf(document)
        if (steps.length > 0) assert.isTrue(validate(document), JSON.stringify(validate.errors))
        assert.deepStrictEqual(
          steps.map(({ step_id }) => step_id),
          steps.map((_, index) => index + 1)
        )
        for (const { observation, tool_calls = [] } of steps) {
          const ids = tool_calls.map(({ tool_call_id }) => tool_call_id)
          for (const { source_call_id } of observation?.results ?? []) {
            if (source_call_id !== undefined) assert.include(ids, source_call_id)
          }
        }
      })
    )
  })

  it("has usage, models and failed calls", () => {
    const document = Trajectory.toAtif(conversation, about)
    assert.isTrue(validate(document), JSON.stringify(validate.errors))
    const [, , call] = stepsOf(document)
    assert.deepInclude(call, {
      model_name: "m-1",
      metrics: { prompt_tokens: 100, completion_tokens: 20, cached_tokens: 40, cost_usd: 0.01 }
    })
    assert.deepStrictEqual(call?.observation?.results[1], {
      source_call_id: "call_2",
      content: "no such tool",
      extra: { is_error: true }
    })
    assert.deepInclude(document["final_metrics"], { total_prompt_tokens: 250, total_steps: 6 })
  })
})

describe("a session of another program", () => {
  const expected = conversation.map(factsOf)

  it("of Claude Code is the same conversation, without its system message", () => {
    const { kept, messages } = Trajectory.fromClaudeCode(fixture("claude-code.jsonl"))
    assert.deepStrictEqual(messages.map(factsOf), expected.slice(1))
    assert.deepStrictEqual(kept, [])
  })

  it("of Claude Code has the blocks of a turn in lines of their own, errors, thoughts, and lines of others", () => {
    const line = (type: string, content: unknown, more: object = {}) =>
      JSON.stringify({ type, message: { id: "msg_1", role: type, content }, uuid: `u${Math.random()}`, ...more })
    const sidechain = line("assistant", [{ type: "text", text: "of a sub-agent" }], { isSidechain: true })
    const summary = JSON.stringify({ type: "summary", summary: "Rivers" })
    const file = [
      summary,
      line("assistant", [{ type: "thinking", thinking: "hm", signature: "s" }]),
      line("assistant", [{ type: "text", text: "I look." }]),
      line("assistant", [{ type: "tool_use", id: "t1", name: "look", input: { about: "x" } }]),
      sidechain,
      line("user", [
        { type: "tool_result", tool_use_id: "t1", is_error: true, content: [{ type: "text", text: "no" }] }
      ]),
      "{ torn"
    ].join("\n")
    const { kept, messages } = Trajectory.fromClaudeCode(file)
    assert.deepStrictEqual(kept, [summary, sidechain, "{ torn"])
    assert.deepStrictEqual(messages.map(factsOf), [
      { role: "ai", text: "I look.", calls: [{ id: "t1", name: "look", given: { about: "x" } }] },
      { role: "tool", text: "no", callId: "t1", name: "look" }
    ])
    assert.strictEqual(Message.reasoning(messages[0] ?? Message.ai("")), "hm")
    assert.deepInclude(messages[1], { isError: true })
  })

  it("of Codex is the same conversation; lines that say it again are kept", () => {
    const { kept, messages } = Trajectory.fromCodex(fixture("codex.jsonl"))
    assert.deepStrictEqual(messages.map(factsOf), expected)
    assert.strictEqual(kept.length, 6)
    assert.isTrue(kept.every((line) => line.includes("session_meta") || line.includes("event_msg")))
  })

  it("of opencode is the same conversation; parts of other kinds are kept", () => {
    const message = (id: string, role: string, ...parts: ReadonlyArray<object>) => ({
      info: { id, role, sessionID: "s", ...(role === "assistant" ? { modelID: "m-1", providerID: "p" } : {}) },
      parts: parts.map((part, index) => ({ id: `${id}/${index}`, messageID: id, sessionID: "s", ...part }))
    })
    const tool = (callID: string, name: string, state: object) => ({ type: "tool", callID, tool: name, state })
    const text = (said: string) => ({ type: "text", text: said })
    const patch = { type: "patch", hash: "h", files: ["a"] }
    const step = [{ type: "step-start" }, { type: "step-finish", reason: "stop", cost: 0 }] as const
    const file = JSON.stringify({
      info: { id: "s", title: "Rivers", version: "1" },
      messages: [
        message("a", "user", text("Where does the Danube begin, and what is 2 + 2?")),
        message(
          "b",
          "assistant",
          step[0],
          { type: "reasoning", text: "hm" },
          text("I look it up."),
          tool("call_1", "look", {
            status: "completed",
            input: { about: "Danube" },
            output: 'In the "Black Forest"\nnear Donaueschingen',
            title: "",
            metadata: {}
          }),
          tool("call_2", "add", { status: "error", input: { a: 2, b: 2 }, error: "no such tool" }),
          step[1],
          patch,
          step[0],
          text("In the Black Forest; I could not add. 🏞"),
          step[1]
        ),
        message("c", "user", text("Thanks")),
        message("d", "assistant", text("You are welcome."))
      ]
    })
    const { kept, messages } = Trajectory.fromOpenCode(file)
    assert.deepStrictEqual(messages.map(factsOf), expected.slice(1))
    assert.deepStrictEqual(
      messages.map((one) => one.role === "tool" && one.isError),
      conversation.slice(1).map((one) => one.role === "tool" && one.isError)
    )
    assert.strictEqual(Message.reasoning(messages[1] ?? Message.ai("")), "hm")
    assert.strictEqual(kept.length, 2)
    assert.include(kept[0], "Rivers")
    assert.deepInclude(JSON.parse(kept[1] ?? ""), patch)
    assert.deepStrictEqual(Trajectory.fromOpenCode("{ torn"), { messages: [], kept: ["{ torn"] })
  })

  it("of pi is the branch of its last entry", () => {
    const entry = (id: string, parentId: string | null, said: object) =>
      JSON.stringify({ type: "message", id, parentId, timestamp: "2026-01-01T00:00:00Z", message: said })
    const left = entry("b", "a", { role: "assistant", content: [{ type: "text", text: "left branch" }] })
    const head = JSON.stringify({ type: "session", version: 3, id: "s", timestamp: "", cwd: "/" })
    const model = JSON.stringify({ type: "model_change", id: "m", parentId: "c", provider: "p", modelId: "x" })
    const call = { type: "toolCall", id: "t", name: "look", arguments: { about: "x" } }
    const file = [
      head,
      entry("a", null, { role: "user", content: "Hello" }),
      left,
      entry("c", "a", { role: "assistant", model: "x", content: [{ type: "thinking", thinking: "hm" }, call] }),
      model,
      entry("d", "m", { role: "toolResult", toolCallId: "t", toolName: "look", isError: true, content: [] })
    ].join("\n")
    const { kept, messages } = Trajectory.fromPi(file)
    assert.deepStrictEqual(kept, [head, left, model])
    assert.deepStrictEqual(messages.map(factsOf), [
      { role: "human", text: "Hello" },
      { role: "ai", text: "", calls: [{ id: "t", name: "look", given: { about: "x" } }] },
      { role: "tool", text: "", callId: "t", name: "look" }
    ])
  })

  it("of any text gives messages, and keeps every line that gave none", () => {
    const json = fc.oneof(
      fc.json(),
      fc.string(),
      fc
        .record({ type: fc.constantFrom("user", "assistant", "message", "response_item"), message: fc.jsonValue() })
        .map((line) => JSON.stringify(line)),
      fc.record({ type: fc.constant("response_item"), payload: fc.jsonValue() }).map((line) => JSON.stringify(line))
    )
    fc.assert(
      fc.property(fc.array(json, { maxLength: 6 }), (lines) => {
        for (const read of [Trajectory.fromClaudeCode, Trajectory.fromCodex, Trajectory.fromPi]) {
          const { kept, messages } = read(lines.join("\n"))
          assert.isAtMost(kept.length + messages.length, lines.join("\n").split(/\r?\n/).length)
        }
      })
    )
  })
})
