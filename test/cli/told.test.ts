import { assert, describe, it } from "@effect/vitest"
import type { AgentEvent } from "effect-deepagents"
import { makePrinter } from "../../src/cli/internal/plain/printer.ts"

const makeWarning = (code: string, message: string): AgentEvent.AgentEvent => ({
  _tag: "Warning",
  seq: 1,
  runId: "r",
  path: ["a"],
  at: 0,
  code,
  message
})

describe("the warnings of a chat", () => {
  it("about the facts of a model are told once, others each time", () => {
    const lines: Array<string> = []
    const printer = makePrinter({ write: (line) => lines.push(line.trim()), columns: 80, colours: false })
    const warnings = [
      ["model-facts", "unknown prices"],
      ["budget", "80 %"]
    ] as const
    for (const [code, message] of [...warnings, ...warnings]) printer.event(makeWarning(code, message))
    printer.event(makeWarning("model-facts", "unknown prices of another model"))
    assert.deepEqual(
      lines.filter((line) => line !== "").map((line) => line.replace(/^\W+/, "")),
      ["unknown prices", "80 %", "80 %", "unknown prices of another model"]
    )
  })
})
