/** The small tools: tree, diff, time, sums, artifacts, programs. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Agent, type AgentEvent, Backend, BackendError, type Json, Sandbox, Tool, ToolOutput } from "effect-deepagents"
import * as Bash from "effect-deepagents/backends/Bash"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { AgentTest, TestBackend, TestChatModel } from "effect-deepagents/testing"
import { Artifacts, Calculator, CurrentDatetime, Diff, RunCode, Tree } from "effect-deepagents/workspace"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

const textOf = <R>(tool: Tool.Tool<R>, args: Json.JsonObject = {}) =>
  Tool.run(tool, args).pipe(
    Effect.map(ToolOutput.text),
    Effect.catch(({ message }) => Effect.succeed(`FAILED ${message}`))
  )

describe("tree", () => {
  const files = { "/a/b/c/d/e.txt": "", "/a/x.txt": "", "/node_modules/p/i.js": "", "/r\nm.md": "" }

  it.effect("lists nested folders, except closed ones, and reports where it stopped", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* textOf(Tree.make()), "a/\n  b/\n    c/\n  x.txt\nnode_modules/\nr\\nm.md")
      assert.strictEqual(yield* textOf(Tree.make(), { path: "/a", depth: 99 }), "b/\n  c/\n    d/\n      e.txt\nx.txt")
      assert.strictEqual(yield* textOf(Tree.make({ entries: 2 })), "a/\n  b/\n[the first 2; ask for a folder in it]")
      assert.include(yield* textOf(Tree.make(), { path: "/nowhere" }), "FAILED")
    }).pipe(Effect.provide(TestBackend.layer({ files })))
  )

  it.effect("lists the other folders if one can't be listed", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const shut = Layer.succeed(Backend.Backend, {
        ...backend,
        ls: (path: string) =>
          path.replace(/\/$/, "") === "/a/b"
            ? Effect.fail(BackendError.make("ls", path, { _tag: "PermissionDenied" }))
            : backend.ls(path)
      })
      const listed = yield* Effect.provide(textOf(Tree.make()), shut)
      assert.match(listed, /^a\/\n {2}b\/\n {4}\[.*\/a\/b.*\]\n {2}x\.txt\nnode_modules\/\n/)
    }).pipe(Effect.provide(TestBackend.layer({ files })))
  )
})

describe("diff", () => {
  const files = { "/a": "one\ntwo\n", "/b": "one\n2\n", "/c": Uint8Array.of(1, 0, 2) }

  it.effect("shows the differences of two texts", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* textOf(Diff.make(), { before: "/a", after: "/b" }),
        "--- /a\n+++ /b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
      )
      assert.strictEqual(yield* textOf(Diff.make(), { before: "/a", after: "/a" }), "The files are the same.")
      assert.include(yield* textOf(Diff.make(), { before: "/a", after: "/c" }), "FAILED /c is not text")
    }).pipe(Effect.provide(TestBackend.layer({ files })))
  )
})

it.effect("current_datetime is the clock's, in a zone", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 6, 1, 22, 30))
    assert.include(yield* textOf(CurrentDatetime.make()), "Wednesday, 2026-07-01T22:30:00.000+00:00")
    const berlin = yield* textOf(CurrentDatetime.make(), { zone: "Europe/Berlin" })
    assert.include(berlin, "Thursday, 2026-07-02T00:30:00.000+02:00")
    assert.include(yield* textOf(CurrentDatetime.make(), { zone: "Mars" }), 'FAILED "Mars" is no time zone')
  })
)

describe("calculator", () => {
  const sums: ReadonlyArray<readonly [expression: string, result: string]> = [
    ["1 + 2 * 3", "7"],
    ["(1 + 2) * 3", "9"],
    ["2 ^ 3 ^ 2", "512"],
    ["-2 ^ 2", "-4"],
    ["2 ^ -1", "0.5"],
    ["2 * -3", "-6"],
    ["--3", "3"],
    ["0.1 + 0.2", "0.3"],
    ["10 % 4 - 1", "1"],
    ["6 ÷ 2 × 3 − 1", "8"],
    ["sqrt(16) + abs(-2)", "6"],
    ["1e3 / 4", "250"],
    ["2 ** 10", "1024"],
    ["round(pi * 100) / 100", "3.14"],
    [`${"(".repeat(2_000)}1${")".repeat(2_000)}`, "1"],
    ["123456789 * 987654321", "about 1.21932631112635e+17"],
    ["0 - 2 ^ 60", "about -1.15292150460685e+18"],
    ["1 / 0", "FAILED the result is no finite number"],
    ["1 +", "FAILED a number is missing at the end"],
    ["(1", "FAILED a parenthesis is not closed"],
    ["1)", "FAILED a parenthesis is closed that was not opened"],
    ["1 2", "FAILED there is no sign between two numbers"],
    ["process.exit()", 'FAILED ".exit()" can\'t be read'],
    ["constructor(1)", 'FAILED "constructor" is not known'],
    ["", "FAILED a number is missing at the end"]
  ]
  for (const [expression, result] of sums) {
    it.effect(`${expression.slice(0, 40)} = ${result}`, () =>
      Effect.map(textOf(Calculator.make(), { expression }), (text) => assert.include(text, result))
    )
  }

  it.effect("agrees with the machine on any sum of integers", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.constantFrom("+", "-", "*"), fc.integer({ min: 0, max: 99 })), { maxLength: 8 }),
          fc.integer({ min: 0, max: 99 }),
          async (rest, first) => {
            const expression = [first, ...rest.map(([sign, value]) => `${sign} ${value}`)].join(" ")
            // oxlint-disable-next-line typescript/no-implied-eval -- the oracle of numbers made here
            const expected: unknown = new Function(`return ${expression}`)()
            const text = await Effect.runPromise(textOf(Calculator.make(), { expression }))
            if (Number.isSafeInteger(expected)) assert.strictEqual(text, String(expected))
            else assert.closeTo(Number(text.replace(/^about /, "")) / Number(expected), 1, 1e-14)
          }
        ),
        { numRuns: scaled(400) }
      )
    )
  )

  it.effect("fails on any other text, and on nothing else", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.string({ maxLength: 40, unit: fc.constantFrom(..."0123456789.+-*/%^() abceinpqrst") }),
          async (expression) => {
            await Effect.runPromise(textOf(Calculator.make(), { expression }))
          }
        ),
        { numRuns: scaled(2_000) }
      )
    )
  )
})

describe("artifacts", () => {
  const agent = Agent.make({ name: "writer", prompt: "You write.", tools: [Artifacts.make()] })
  const run = (...calls: ReadonlyArray<Json.JsonObject>) =>
    AgentTest.events(agent, "Go").pipe(
      Effect.provide(
        TestChatModel.script([
          ...calls.map((args) => TestChatModel.calls([{ name: "create_artifact", arguments: args }])),
          "done"
        ])
      )
    )

  it.effect("are a file, an entry of the state and an event; the last of a name counts", () =>
    Effect.gen(function* () {
      const events = yield* run(
        { name: "report.md", content: "# One", title: "Report" },
        { name: "report.md", content: "# Two" },
        { name: "data.bin", from: "/made.bin", media_type: "application/x-thing" }
      )
      const said = events.flatMap((event) =>
        event._tag === "Custom" && event.name === "artifact" ? [event.payload] : []
      )
      assert.deepStrictEqual(said[0], { path: "/artifacts/report.md", title: "Report", mediaType: "text/markdown" })
      const completed = events.find((event): event is AgentEvent.Of<"RunCompleted"> => event._tag === "RunCompleted")
      assert.isDefined(completed)
      const [report, data] = yield* Backend.Backend.use((backend) =>
        backend.download(["/artifacts/report.md", "/artifacts/data.bin"])
      )
      assert.strictEqual(said.length, 3)
      assert.deepInclude(report, { value: new TextEncoder().encode("# Two") })
      assert.deepInclude(data, { value: Uint8Array.of(1, 2) })
    }).pipe(Effect.provide(TestBackend.layer({ files: { "/made.bin": Uint8Array.of(1, 2) } })))
  )

  it.effect("have a name of a file, and content", () =>
    Effect.gen(function* () {
      const results = yield* Agent.run(agent, "Go").pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls(
              [
                { name: "../x", content: "" },
                { name: "a/b", content: "" },
                { name: "..", content: "" },
                { name: "a.md" },
                { name: "a.md", content: "x", from: "/y" },
                { name: "a.md", content: "x", media_type: "text/html\r\nX: y" }
              ].map((args) => ({ name: "create_artifact", arguments: args }))
            ),
            "done"
          ])
        )
      )
      const answers = results.messages.flatMap((message) => (message.role === "tool" ? [message.isError] : []))
      assert.deepStrictEqual(answers, [true, true, true, true, true, true])
      assert.deepStrictEqual(Artifacts.of(results), [])
    }).pipe(Effect.provide(TestBackend.layer()))
  )
})

describe("run_code", () => {
  const agentOf = (options?: Parameters<typeof RunCode.make>[0]) =>
    Agent.make({ name: "analyst", prompt: "You compute.", tools: [RunCode.make(options)] })
  const run = (calls: ReadonlyArray<Json.JsonObject>, options?: Parameters<typeof RunCode.make>[0]) =>
    Agent.run(agentOf(options), "Go").pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls(calls.map((args) => ({ name: "run_code", arguments: args }))),
          "done"
        ])
      ),
      Effect.map(({ messages }) =>
        messages.flatMap((message) =>
          message.role === "tool" && message.content[0]?.type === "text" ? [message.content[0].text] : []
        )
      )
    )
  const inFolder = <A, E, R>(work: (root: string) => Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "code-"))),
      work,
      (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
    )

  const knowingly = Layer.succeed(Sandbox.Isolated, { by: "nothing", network: "open" })

  it.live("does not compile over a shell of the machine, and runs there for who says so", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const calls = [{ language: "shell", code: "touch ran" }]
        // @ts-expect-error a local shell provides no `Isolated`
        const missing: Effect.Effect<unknown, unknown> = run(calls).pipe(Effect.provide(LocalShell.layer({ root })))
        assert.isDefined(missing)
        const others = Layer.succeed(Sandbox.Isolated, { by: "docker", network: "none" })
        const [refused] = yield* Effect.provide(run(calls), others)
        assert.include(refused, "run_code is refused here")
        assert.deepStrictEqual(readdirSync(root), [])
        yield* Effect.provide(run(calls), knowingly)
        assert.include(readdirSync(root), "ran")
      }).pipe(Effect.provide(LocalShell.layer({ root })))
    )
  )

  it.live("runs four languages, with input, and leaves no file of the program", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const said = yield* run([
          { language: "javascript", code: "console.log(1 + 1)" },
          { language: "typescript", code: "const n: number = 3; console.log(n)" },
          { language: "python", code: "print(input() + '!')", input: "hello\n" },
          { language: "shell", code: "echo no; exit 4" }
        ])
        assert.deepStrictEqual(said, ["2", "3", "hello!", "no\n[the program failed with exit code 4]"])
        assert.deepStrictEqual(readdirSync(join(root, ".code")), [])
      }).pipe(Effect.provide([LocalShell.layer({ root }), knowingly]))
    )
  )

  it.live("runs its own program, with any ids of other runs' calls in the sandbox", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const calling = (word: string) =>
          Agent.run(agentOf(), "Go").pipe(
            Effect.provide(
              TestChatModel.script([
                TestChatModel.calls([
                  { id: "call_0", name: "run_code", arguments: { language: "shell", code: `sleep 0.5; echo ${word}` } }
                ]),
                "done"
              ])
            ),
            Effect.map(({ messages }) => JSON.stringify(messages.filter((message) => message.role === "tool")))
          )
        const words = ["one", "two", "three"]
        const said = yield* Effect.forEach(words, calling, { concurrency: "unbounded" })
        for (const [index, word] of words.entries()) assert.include(said[index], `"${word}"`)
      }).pipe(Effect.provide([LocalShell.layer({ root }), knowingly]))
    )
  )

  it.live("runs in a sandbox that isolates, over files of a folder too", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const calls = [{ language: "shell", code: "echo $((6 * 7))" }]
        for (const files of [TestBackend.layer(), FilesystemBackend.layer({ root })]) {
          const [said] = yield* run(calls).pipe(Effect.provide(Layer.provide(Bash.layer(), files)))
          assert.strictEqual(said, "42")
        }
      })
    )
  )
})
