import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agent, type AgentEvent, Approval, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop, Subagents, Todos } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { View } from "effect-deepagents/view"
import fc from "fast-check"
import { scaled } from "../scale.ts"

const base = { seq: 0, runId: "r", path: ["a"], at: 1 }
const begin: AgentEvent.AgentEvent = { _tag: "RunStarted", ...base, agent: "a" }
const end: AgentEvent.AgentEvent = {
  _tag: "RunInterrupted",
  ...base,
  rounds: 1,
  usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
}
const delta = (text: string): AgentEvent.AgentEvent => ({ _tag: "TextDelta", ...base, text })

const all = (events: Iterable<AgentEvent.AgentEvent>) => {
  const parts: Array<View.Part> = []
  let view = View.empty
  for (const event of events) {
    const [next, more] = View.reduce(view, event)
    view = next
    parts.push(...more)
  }
  return { parts, view }
}

const answer = (pieces: ReadonlyArray<string>) => all([begin, ...pieces.map(delta), end]).parts

/** Markdown of lines that matter to the splitter. */
const markdown = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "",
        "",
        "```ts",
        "```",
        "~~~",
        "- item",
        "  more of it",
        "1. first",
        "# Head",
        "| a | b |",
        "| --- | --- |",
        "> quote",
        "\u001b[2Jclear",
        "a\r",
        "    code"
      ),
      fc.string({ maxLength: 30 })
    ),
    { maxLength: 60 }
  )
  .map((lines) => lines.join("\n"))

describe("a view", () => {
  it("gives the same parts, however the text came in pieces", () => {
    fc.assert(
      fc.property(markdown, fc.array(fc.nat(80), { maxLength: 40 }), (text, cuts) => {
        const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].toSorted((left, right) => left - right)
        const pieces = [...places, text.length].map((place, index) => text.slice(places[index - 1] ?? 0, place))
        expect(answer(pieces)).toEqual(answer([text]))
      }),
      { numRuns: scaled(2_000) }
    )
  })

  it("loses no word of an answer, and says none twice", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("", "- ", "```\n", "# ", "1. ", "> "), fc.nat()), { maxLength: 80 }),
        (lines) => {
          const text = lines.map(([mark], index) => `${mark}word${index}x`).join("\n")
          const shown = answer([text])
            .map((part) => (part.kind === "text" ? part.markdown : part.kind === "code" ? part.text : ""))
            .join("\n")
          for (const index of lines.keys()) expect(shown.split(`word${index}x`).length).toBe(2)
        }
      ),
      { numRuns: scaled(500) }
    )
  })

  it("lets nothing of the model's, a tool's or a file's reach the terminal as a command", () => {
    const nasty =
      "\u001b[2J\u001b]52;c;aGk=\u0007\u001b[8mhidden\u001b[0m \u202Eright\u202C \u009b31m \u0000\b\u0007 \u{e0041}"
    const call = { callId: "c", toolName: nasty, ...base }
    const { parts, view } = all([
      begin,
      delta(`${nasty}\n\n\`\`\`${nasty}\n${nasty}\n\`\`\`\n`),
      { _tag: "ReasoningDelta", ...base, text: nasty },
      { _tag: "ToolCalled", ...call, arguments: { command: nasty, [nasty]: nasty } },
      { _tag: "ToolProgress", ...call, progress: { output: nasty } },
      { _tag: "StateChanged", ...base, slot: "todos", value: [{ content: nasty, status: nasty }] },
      {
        _tag: "ToolFailed",
        ...call,
        reason: "Failed",
        text: nasty,
        details: { kind: "edit", diff: nasty },
        durationMillis: 1
      },
      { _tag: "Warning", ...base, code: "x", message: nasty },
      { _tag: "SourcesFound", ...base, sources: [{ number: 1, source: { key: nasty, url: nasty } }] },
      { _tag: "ToolCalled", ...call, callId: "d", arguments: { query: nasty } },
      delta(nasty)
    ])
    // The text that is still open is read through a function of its own, and requests through another.
    const shown = JSON.stringify([parts, { ...view, text: View.openText(view) }])
    expect(shown).not.toMatch(/\p{Cc}|[\u202a-\u202e\u2066-\u2069]|\\u00[01][0-9a-f]|\]52;/u)
    expect(View.withMarks("rm \u202E-rf \u200B/")).toBe("rm ‹U+202E›-rf ‹U+200B›/")
  })

  it("ends calls that were cut off, in their order, with their progress", () => {
    const call = { ...base, toolName: "execute" }
    const { parts, view } = all([
      begin,
      ...["b", "a"].map((callId): AgentEvent.AgentEvent => ({
        _tag: "ToolCalled",
        ...call,
        callId,
        arguments: { command: callId }
      })),
      { _tag: "ToolProgress", ...call, callId: "b", progress: { output: "half" } },
      end
    ])
    expect(parts.filter(({ kind }) => kind === "tool")).toMatchObject([
      {
        gist: "b",
        isError: true,
        summary: "It was interrupted. Whether it had an effect is not known.",
        output: "half"
      },
      { gist: "a", isError: true, output: "" }
    ])
    expect(View.calls(view)).toEqual([])
  })

  it("bounds open parts: a line of a million characters is shown by its end", () => {
    const { view } = all([begin, ...Array.from({ length: 1_000 }, () => delta("x".repeat(1_000)))])
    expect(View.openText(view).length).toBeLessThan(10_000)
  })

  it.effect("tells two runs of one sub-agent apart, and shows plan, calls, decisions and the end", () =>
    Effect.gen(function* () {
      const look = Tool.make("look", { description: "Looks", parameters: {}, execute: () => Effect.succeed("seen") })
      const child = Agent.make({ name: "child", description: "Looks", prompt: "You look.", tools: [look] })
      const agent = Agent.make({
        name: "root",
        prompt: "You delegate.",
        tools: [look],
        middleware: [Todos.make(), Subagents.make({ agents: [child] }), HumanInTheLoop.make({ tools: { look: true } })]
      })
      const task = { name: "task", arguments: { subagent_type: "child", description: "look" } }
      const events = yield* Agent.stream(agent, "Go").pipe(
        Stream.runCollect,
        Effect.provideService(Approval.Approvals, { decide: (request) => Effect.succeed(Approval.approve(request)) }),
        Effect.provide(
          TestChatModel.reactive(({ messages, tools }) => {
            const isRoot = tools.some(({ name }) => name === "task")
            const results = messages.filter(({ role }) => role === "tool").length
            if (!isRoot)
              return results === 0
                ? TestChatModel.calls([{ name: "look", arguments: {} }])
                : TestChatModel.text("child says")
            if (results === 0) {
              return TestChatModel.calls([
                { name: "write_todos", arguments: { todos: [{ content: "Look", status: "in_progress" }] } },
                task,
                task
              ])
            }
            return TestChatModel.text("All **done**.")
          })
        )
      )
      const { parts, view } = all(events)
      const kinds = parts.map(({ kind }) => kind)
      expect(kinds[0]).toBe("user")
      expect(kinds.at(-1)).toBe("turnEnd")
      expect(
        parts.filter(({ kind }) => kind === "subagent").map((part) => (part.kind === "subagent" ? part.calls : 0))
      ).toEqual([1, 1])
      expect(parts.filter(({ kind }) => kind === "decision").length).toBe(2)
      expect(parts.filter((part) => part.kind === "text")).toEqual([{ kind: "text", markdown: "All **done**." }])
      expect(view).toMatchObject({
        status: "idle",
        subagents: [],
        pending: [],
        todos: [{ content: "Look" }]
      })
      expect(View.calls(view)).toEqual([])
      // Any prefix is a view. Both runs have the same path and the same ids of calls.
      const views = events.map((_, index) => all(events.slice(0, index)).view)
      expect(new Set(views.flatMap(({ subagents }) => subagents.map(({ runId }) => runId))).size).toBe(2)
      expect(new Set(views.flatMap(({ pending }) => pending.map(({ runId }) => runId))).size).toBe(2)
      // Stored messages show the same words again.
      const again = View.ofMessages(
        events.flatMap((event) => (event._tag === "MessageAppended" && event.path.length === 1 ? [event.message] : []))
      )
      expect(again.filter(({ kind }) => kind === "text" || kind === "user")).toEqual(
        parts.filter(({ kind }) => kind === "text" || kind === "user")
      )
    })
  )

  it("gives a block the definitions of links that earlier ones had, and no others", () => {
    const text =
      "[Home]: https://a.b/c\n\n[2]: https://d.e\n\nSee [home] and `[x]`.\n\n[home]: https://f.g\n[home] again"
    expect(View.ofMessages([Message.human("Go"), Message.ai(text)]).slice(1)).toEqual(
      [
        "[Home]: https://a.b/c",
        "[2]: https://d.e",
        "See [home] and `[x]`.\n\n[Home]: https://a.b/c",
        "[home]: https://f.g\n[home] again"
      ].map((markdown) => ({ kind: "text", markdown }))
    )
  })

  it("has calls in the order in which they began, and leaves earlier views as they were, however many there are", () => {
    const call = (index: number, name = "look") => ({ ...base, callId: `c${index}`, toolName: name })
    const many = 20_000
    const { view } = all([
      begin,
      ...Array.from({ length: many }, (_, index): AgentEvent.AgentEvent => ({
        _tag: "ToolCalled",
        ...call(index),
        arguments: { path: `/${index}` }
      })),
      ...Array.from({ length: many }, (_, index): AgentEvent.AgentEvent => ({
        _tag: "ToolProgress",
        ...call(index),
        progress: { output: `at ${index}` }
      }))
    ])
    expect(View.calls(view).map(({ gist, output }) => `${gist} ${output}`)).toEqual(
      Array.from({ length: many }, (_, index) => `/${index} at ${index}`)
    )
    const done = Array.from({ length: many - 2 }, (_, index): AgentEvent.AgentEvent => ({
      _tag: "ToolCompleted",
      ...call(index + 1),
      text: "seen",
      durationMillis: 1
    }))
    let rest = view
    for (const event of done) [rest] = View.reduce(rest, event)
    expect(View.calls(rest).map(({ gist }) => gist)).toEqual(["/0", `/${many - 1}`])
    expect(View.calls(view).length).toBe(many)
    const [restarted] = View.reduce(View.reduce(rest, { _tag: "ToolCallDelta", ...call(many), delta: "{" })[0], {
      _tag: "TurnRestarted",
      ...base,
      reason: "overloaded"
    })
    expect(View.calls(restarted).map(({ gist }) => gist)).toEqual(["/0", `/${many - 1}`])
  })

  it("keeps printed parts when the turn is asked again, and says so", () => {
    const { parts } = all([
      begin,
      delta("half an answ"),
      { _tag: "TurnRestarted", ...base, reason: "overloaded" },
      delta("A whole one."),
      end
    ])
    expect(
      parts.flatMap((part) => (part.kind === "text" ? [part.markdown] : part.kind === "note" ? [part.text] : []))
    ).toEqual(["half an answ", "↻ the answer starts again: overloaded", "A whole one."])
  })

  it("counts one file as one", () => {
    const summaries = (files: ReadonlyArray<string>) =>
      all([
        begin,
        {
          _tag: "ToolCompleted",
          ...base,
          callId: "c",
          toolName: "apply_patch",
          text: "",
          durationMillis: 1,
          details: { kind: "patch", files: [...files] }
        }
      ]).parts.flatMap((part) => (part.kind === "tool" ? [part.summary] : []))
    expect([summaries(["a"]), summaries(["a", "b"])]).toEqual([["1 file changed"], ["2 files changed"]])
  })

  it("shows the calls of a thread that have no answer", () => {
    const calls = ["a", "b"].map((id) => ({ id, name: "execute", arguments: { command: `run ${id}` } }))
    const parts = View.ofMessages([
      Message.human("Go"),
      Message.ai("", { toolCalls: calls }),
      Message.tool("done", { toolCallId: "a", toolName: "execute" })
    ])
    expect(parts.slice(1)).toMatchObject([
      { kind: "tool", gist: "run a" },
      { kind: "note", text: "→ execute run b" }
    ])
  })

  it("shows the end of a stored command as that of a command that just ran", () => {
    const output = [...Array.from({ length: 50 }, (_, index) => `line ${index}`), "[Command failed with exit code 3]"]
    const [, part] = View.ofMessages([
      Message.human("Go"),
      Message.ai("", { toolCalls: [{ id: "a", name: "execute", arguments: { command: "npm test" } }] }),
      Message.tool(output.join("\n"), { toolCallId: "a", toolName: "execute", isError: true })
    ])
    expect(part).toMatchObject({ kind: "tool", summary: "exit code 3" })
    expect(part?.kind === "tool" ? part.end?.at(-1) : undefined).toBe("line 49")
  })

  it("shows a partial answer of a thread as one", () => {
    const parts = View.ofMessages([Message.human("Go"), Message.ai("So far", { stopReason: "interrupted" })])
    expect(parts.map(({ kind }) => kind)).toEqual(["user", "text", "note"])
  })
})
