import { stripVTControlCharacters } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import { HashMap } from "effect"
import { type AgentEvent, Usage } from "effect-deepagents"
import { View } from "effect-deepagents/view"
import fc from "fast-check"
import stringWidth from "string-width"
import { load } from "../../src/cli/internal/markdown/highlight.ts"
import { render } from "../../src/cli/internal/markdown/markdown.ts"
import { frameOf } from "../../src/cli/internal/render/live.ts"
import { partLines } from "../../src/cli/internal/render/part.ts"
import { fit, styleOf } from "../../src/cli/internal/render/style.ts"
import { type Theme, themes } from "../../src/cli/internal/render/themes.ts"
import { clean } from "../../src/support/text/clean.ts"
import { scaled } from "../scale.ts"

const plain = styleOf(false)

it("follows a theme that changes meanwhile, and has no marks without colours", () => {
  let theme: Theme = "auto"
  const style = styleOf(true, () => theme)
  const seen = themes.map((name) => {
    theme = name
    return [style.red("x"), style.bold("x"), style.link("x", "https://a.b")]
  })
  const [bold, link] = ["\u001b[1mx\u001b[22m", "\u001b]8;;https://a.b\u001b\\x\u001b]8;;\u001b\\"]
  expect(seen).toEqual([
    ["\u001b[31mx\u001b[39m", bold, link],
    ["\u001b[91mx\u001b[39m", bold, link],
    ["x", bold, link],
    ["x", "x", "x"]
  ])
  expect(styleOf(false, () => "bright").red("x")).toBe("x")
})

const surface = (columns: number) => ({ columns, style: plain, highlight: undefined })

const document = `# Title

A paragraph with **bold**, *italic*, \`code\`, a [link](https://example.com/a) and a word that is longer than others: Donaudampfschifffahrtsgesellschaft.

- one
- two
  - nested

3. third
4. fourth

> quoted words

| name | what it is |
| --- | --- |
| left | 日本語 text |
| right | a longer cell that has many words in it |
`

const parts: ReadonlyArray<View.Part> = [
  { kind: "user", text: "Do it\nnow", attachments: 1 },
  { kind: "thinking", text: "hm", characters: 1234, millis: 5_000 },
  { kind: "code", language: "ts", text: "const a = 1", isFirst: true, more: false },
  {
    kind: "tool",
    name: "edit_file",
    gist: "/src/a/very/long/path/that/does/not/fit/into/forty/columns.ts",
    isError: false,
    summary: "edited (+1 −1)",
    diff: "@@ -1 +1 @@\n-old\n+new",
    output: "ok",
    millis: 20
  },
  {
    kind: "tool",
    name: "execute",
    gist: "npm test",
    isError: true,
    summary: "exit code 1",
    diff: undefined,
    output: "a\nb\nc",
    end: ["a", "b", "c"],
    millis: 3_000
  },
  {
    kind: "subagent",
    path: ["researcher"],
    task: "look",
    outcome: "completed",
    calls: 3,
    usage: Usage.make({ inputTokens: 1_500 }),
    millis: 61_000
  },
  { kind: "decision", toolName: "execute", decision: "approve" },
  { kind: "sources", sources: [{ number: 1, title: "A page", url: "https://example.com" }] },
  { kind: "turnEnd", stopReason: "maxRounds", usage: Usage.make({ inputTokens: 10, cost: 0.01 }), millis: 1_000 }
]

const base = { seq: 0, runId: "r", path: ["deep"], at: 1_000 }
const child = { ...base, runId: "r/1", path: ["deep", "researcher"] }

/** A turn in the middle: an answer, a plan, calls that run, a sub-agent, and a request. */
const events: ReadonlyArray<AgentEvent.AgentEvent> = [
  { _tag: "RunStarted", ...base, agent: "deep", model: "demo:script" },
  {
    _tag: "ContextMeasured",
    ...base,
    parts: {
      systemPrompt: 10_000,
      tools: 10_000,
      human: 10_000,
      notices: 0,
      ai: 10_000,
      reasoning: 0,
      toolCalls: 0,
      toolResults: 10_000,
      media: 0
    },
    round: 1,
    unit: "estimatedTokens",
    total: 50_000,
    window: 200_000
  },
  {
    _tag: "StateChanged",
    ...base,
    slot: "todos",
    value: [
      { content: "Read the tests", status: "completed" },
      { content: "Find out why the parser fails on an empty line", status: "in_progress" }
    ]
  },
  {
    _tag: "ToolCalled",
    ...base,
    callId: "a",
    toolName: "execute",
    arguments: { command: "npm test -- --reporter=verbose test/parser.test.ts" }
  },
  { _tag: "ToolProgress", ...base, callId: "a", toolName: "execute", progress: { output: "one\n日本語 passed" } },
  {
    _tag: "ToolCalled",
    ...base,
    callId: "b",
    toolName: "task",
    arguments: { subagent_type: "researcher", description: "look it up" }
  },
  { _tag: "SubagentStarted", ...base, callId: "b", childRunId: "r/1", agent: "researcher" },
  { _tag: "ToolCalled", ...child, callId: "a", toolName: "web_search", arguments: { query: "parser empty line" } },
  { _tag: "TextDelta", ...base, text: "A **finished** block.\n\n- an open list of `things`\n" },
  {
    _tag: "ApprovalRequested",
    ...base,
    id: "q",
    callId: "c",
    toolName: "write_file",
    description: "",
    arguments: {},
    allow: ["approve", "reject"]
  }
]

describe("the view of a turn", () => {
  for (const columns of [40, 80, 250]) {
    it(`is this at ${columns} columns`, () => {
      const finished: Array<string> = []
      let view = View.empty
      for (const event of events) {
        const [next, more] = View.reduce(view, event)
        view = next
        finished.push(...more.flatMap((part) => partLines(part, surface(columns))))
      }
      const around = {
        now: 13_000,
        frame: 0,
        isPlanOpen: true,
        queue: [{ kind: "followUp" as const, text: "and then the docs" }],
        panel: [],
        editor: ["› a draft"],
        caret: { row: 0, column: 9 },
        hints: "Esc interrupts · Enter tells it now · Tab queues",
        facts: ["ask", "deep", "demo:script"]
      }
      const { caret, lines } = frameOf(view, around, surface(columns), 24)
      expect(lines[caret.row]).toBe("› a draft")
      expect([...finished, "", ...lines].join("\n")).toMatchSnapshot()
    })
  }
})

it("shows a definition of a link without a reference: nobody could see its target otherwise", () => {
  const at = { columns: 80, style: plain, highlight: undefined }
  expect(render("See [docs][1].\n\n[1]: https://a.b/c", at)).toEqual(["See docs (https://a.b/c)."])
  expect(render("[1]: https://a.b/c\n[Two]: https://d.e", at)).toEqual(["[1]: https://a.b/c", "[two]: https://d.e"])
})

describe("lines", () => {
  for (const columns of [40, 80, 250]) {
    it(`are these at ${columns} columns`, () => {
      expect(render(document, surface(columns)).join("\n")).toMatchSnapshot()
      expect(parts.flatMap((part) => partLines(part, surface(columns))).join("\n")).toMatchSnapshot()
    })
  }

  it("of prose and of the live part are never wider than they may be, and steer nothing but colours", () => {
    const colours = /\p{Cc}(?:\[[0-9;]*m|\]8;;\P{Cc}*\p{Cc}\\)/gu
    const style = styleOf(true)
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 400 }),
        fc.integer({ min: 20, max: 250 }),
        (raw, columns) => {
          const text = clean(raw)
          const around = {
            now: 0,
            frame: 0,
            isPlanOpen: true,
            queue: [{ kind: "steer" as const, text }],
            panel: [text.replaceAll("\n", " ")],
            editor: ["› "],
            caret: { row: 0, column: 2 },
            hints: text.replaceAll("\n", " "),
            facts: ["ask"]
          }
          const view: View.View = {
            ...View.empty,
            runId: "r",
            status: "working",
            text: { ...View.empty.text, tail: raw },
            calls: HashMap.make([
              "r/1",
              {
                key: "r/1",
                runId: "r",
                order: 0,
                name: "tool",
                gist: text,
                output: text,
                startedAt: 0,
                isWritten: true
              }
            ]),
            todos: [{ content: text, status: "in_progress" }]
          }
          const { lines } = frameOf(view, around, { columns, style, highlight: undefined }, 20)
          expect(lines.length).toBeLessThanOrEqual(20)
          const prose = partLines(
            { kind: "text", markdown: "word ".repeat(100) },
            { columns, style, highlight: undefined }
          )
          for (const line of [...lines, ...prose]) {
            const bare = line.replaceAll(colours, "")
            expect(bare).not.toMatch(/\p{Cc}/u)
            expect(stringWidth(bare)).toBeLessThanOrEqual(columns)
          }
        }
      ),
      { numRuns: scaled(400) }
    )
  })

  it("of a listing are as they are in the source: neither broken nor indented", async () => {
    const highlight = await load()
    const code = `const long = "${"x".repeat(200)}"\n  if (a < b) return \`\${a}\` // yes`
    const part: View.Part = { kind: "code", language: "ts", text: code, isFirst: true, more: false }
    const [, ...lines] = partLines(part, surface(40))
    expect(lines.slice(0, -1).join("\n")).toBe(code)
    const coloured = partLines(part, { columns: 40, style: styleOf(true), highlight })
      .slice(1, -1)
      .join("\n")
    expect(stripVTControlCharacters(coloured)).toBe(code)
    expect(coloured).toContain("\u001b[35mconst\u001b[39m")
    expect(highlight("class Go {}", "ts", styleOf(true))).toContain("\u001b[34mGo\u001b[39m")
  })

  it("of a long listing are as they are in the source, wherever it is parted to be coloured", async () => {
    const highlight = await load()
    for (const code of [
      `const a = "${"x".repeat(5_000)}"\nb`,
      `a\n${"y".repeat(4_100)}\n\nb\n`,
      "a\n".repeat(5_000),
      ""
    ]) {
      const coloured = highlight(code, "ts", styleOf(true))
      expect(stripVTControlCharacters(coloured ?? "")).toBe(code)
    }
  })

  it("are cut by their visible width, and their colours end", () => {
    const red = styleOf(true).red("日本語のテキスト")
    expect(fit(red, 7)).toBe("\u001b[31m日本語…\u001b[39m")
    expect(fit("short", 7)).toBe("short")
  })
})
