import assert from "node:assert/strict"
import { test } from "node:test"
import { Effect, Layer } from "effect"
import { Agent, Backend } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"
import { agent } from "../src/agent.ts"

const call = (name: string, args: Record<string, string>) => TestChatModel.calls([{ name, arguments: args }])

test("it has researchers read, and writes a report", async () => {
  const model = TestChatModel.reactive((request, index) => {
    const isLead = request.tools.some(({ name }) => name === "task")
    if (!isLead) return "Every night since March (/documents/2026.md)."
    if (index === 0) return call("task", { subagent_type: "researcher", description: "When does the bus run?" })
    return request.messages.some((message) => message.role === "tool" && message.toolName === "write_file")
      ? "The report is in /report.md."
      : call("write_file", { file_path: "/report.md", content: "Every night since March (/documents/2026.md)." })
  })
  const report = Effect.gen(function* () {
    yield* Agent.run(agent, "When does the night bus run?")
    const backend = yield* Backend.Backend
    return yield* backend.read("/report.md")
  })
  const read = await Effect.runPromise(Effect.provide(report, Layer.merge(model, MemoryBackend.layer())))
  assert.match(read.kind === "text" ? read.text : "", /2026/)
})
