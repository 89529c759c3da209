import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { makeScreen } from "../../src/cli/internal/screen/screen.ts"
import { scaled } from "../scale.ts"
import { makeTerminal } from "./xterm.ts"

const operation = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant("commit" as const),
      count: fc.integer({ min: 1, max: 6 }),
      long: fc.boolean()
    })
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant("live" as const),
      lines: fc.integer({ min: 1, max: 12 }),
      caret: fc.nat(11)
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("resize" as const),
      columns: fc.integer({ min: 20, max: 120 }),
      rows: fc.integer({ min: 15, max: 40 })
    })
  }
)

describe("the screen", () => {
  it("keeps committed lines once, in order, and the live lines once, through any operations and resizes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 80 }), async (operations) => {
        let columns = 60
        let rows = 20
        let live: ReadonlyArray<string> = ["live 0 begin", "live 1"]
        let caret = 0
        let committed = 0
        let written: Array<string> = []
        const terminal = makeTerminal(columns, rows)
        const screen = makeScreen(
          { write: (text) => written.push(text), columns: () => columns, rows: () => rows },
          () => ({ lines: live, caret: { row: Math.min(caret, live.length - 1), column: 3 } })
        )
        const flush = async () => {
          const text = written.join("")
          written = []
          await terminal.write(text)
        }
        screen.paint()
        await flush()
        for (const [step, one] of operations.entries()) {
          if (one.op === "commit") {
            screen.commit(
              Array.from({ length: one.count }, () => `part ${committed++}.${one.long ? " word".repeat(30) : ""}`)
            )
          } else if (one.op === "live") {
            live = Array.from({ length: one.lines }, (_, index) => `live ${index} of ${step}`)
            caret = one.caret
          } else {
            ;({ columns, rows } = one)
            terminal.resize(columns, rows)
            screen.resized()
            await flush()
            continue
          }
          screen.paint()
          await flush()
        }
        const lines = terminal.lines()
        const parts = lines.filter((line) => line.startsWith("part")).map((line) => Number.parseInt(line.slice(5), 10))
        expect(parts).toEqual(Array.from({ length: committed }, (_, index) => index))
        // The last of the live lines are there, once: what does not fit is left out at the top.
        const shown = live.slice(-(rows - 1))
        expect(lines.filter((line) => line.startsWith("live")).slice(-shown.length)).toEqual(shown)
        expect(lines.filter((line) => line === shown.at(-1)).length).toBe(1)
        expect(lines.filter((line) => line.startsWith("live")).length).toBe(shown.length)
      }),
      { numRuns: scaled(100) }
    )
  })

  it("clears only its own lines, and writes between marks of one frame", () => {
    const written: Array<string> = []
    const screen = makeScreen({ write: (text) => written.push(text), columns: () => 40, rows: () => 10 }, () => ({
      lines: ["›"],
      caret: { row: 0, column: 2 }
    }))
    screen.commit(["one", "two"])
    screen.paint()
    screen.resized()
    screen.close()
    const all = written.join("")
    expect(all).not.toContain("\u001b[2J")
    expect(all).not.toContain("\u001b[3J")
    expect(all).not.toContain("\u001b[H")
    for (const frame of written) {
      expect(frame.startsWith("\u001b[?2026h") && frame.endsWith("\u001b[?2026l")).toBe(true)
    }
    const before = written.length
    screen.paint()
    screen.paint()
    expect(written.length).toBe(before + 1)
  })

  it("leaves a long command one line: the terminal breaks it, and its copy is whole", async () => {
    const terminal = makeTerminal(40, 10)
    let text = ""
    const screen = makeScreen({ write: (more) => (text += more), columns: () => 40, rows: () => 10 }, () => ({
      lines: ["a live line that was there before", "› "],
      caret: { row: 1, column: 2 }
    }))
    screen.paint()
    const command = `echo ${"x".repeat(94)}`
    screen.commit([command])
    screen.paint()
    await terminal.write(text)
    terminal.resize(120, 10)
    expect(terminal.lines()[0]).toBe(command)
  })
})
