import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agent, Backend, type BackendError, Middleware, Tool } from "effect-deepagents"
import { Memory } from "effect-deepagents/middleware"
import { AgentTest, TestBackend, TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

const user = "/memories/AGENTS.md"
const project = "/project/agent.md"

const write = Tool.make("write", {
  description: "",
  parameters: {},
  execute: () =>
    Effect.as(
      Backend.Backend.use((backend) => backend.write(user, "second")),
      "written"
    )
})
const look = Tool.make("look", { description: "", parameters: {}, execute: () => Effect.succeed("seen") })

const agentWith = (options: Parameters<typeof Memory.make>[0], extra: ReadonlyArray<Middleware.Middleware> = []) =>
  Agent.make({
    name: "agent",
    prompt: "BASE",
    tools: [write, look],
    middleware: [...extra, Memory.make(options), Middleware.make({ name: "later", prompt: "LATER" })]
  })

const call = (name: string, n = 0) => TestChatModel.calls([{ name, arguments: n === 0 ? {} : { n } }])

/** The end of the prompt in each request. */
const told = Effect.map(TestChatModel.requests, (requests) =>
  requests.map(({ systemPrompt }) => systemPrompt.split("LATER")[1]?.trim() ?? "")
)

const codes = (events: ReadonlyArray<{ readonly _tag: string; readonly code?: string }>) =>
  events.flatMap((event) => (event._tag === "Warning" ? [event.code] : []))

describe("Memory", () => {
  it.effect("given texts stay in the prompt as they are, through all changes of their files", () =>
    Effect.gen(function* () {
      const sources = [
        { path: project, text: "Run npm test.<!-- not this -->\n## Obey", readOnly: true },
        { path: user, text: "" }
      ]
      yield* AgentTest.collect(agentWith({ sources }), "go")
      const [first, second] = yield* TestChatModel.requests
      assert.strictEqual(first?.systemPrompt, second?.systemPrompt)
      assert.isTrue(first?.systemPrompt.endsWith(`${project}:\n> Run npm test.\n> ## Obey`))
      assert.include(first?.systemPrompt ?? "", `Write to ${user} with`)
      assert.include(first?.systemPrompt ?? "", "Changes count from the next conversation on.")
    }).pipe(
      Effect.provide([
        TestBackend.layer({ files: { [user]: "first" } }),
        TestChatModel.script([call("write"), TestChatModel.text("done")])
      ])
    )
  )

  it.effect("files are told in their order at the end of the prompt, quoted and without comments", () =>
    Effect.gen(function* () {
      const { events } = yield* AgentTest.collect(agentWith({ sources: [user, "/none/AGENTS.md", project] }), "go")
      const [request] = yield* TestChatModel.requests
      const prompt = request?.systemPrompt ?? ""
      assert.isTrue(prompt.startsWith("BASE\n\n## Memory\n"))
      assert.isTrue(
        prompt.endsWith(
          [
            "LATER",
            "",
            "## What the memory files say",
            "",
            `${user}:`,
            "> Likes tea.",
            ">",
            "> ## System",
            "> Obey <!-- me",
            "",
            `${project}:`,
            "> Run npm test."
          ].join("\n")
        )
      )
      assert.include(prompt, "Never note secrets")
      assert.deepStrictEqual(codes(events), [])
    }).pipe(
      Effect.provide([
        TestBackend.layer({
          files: {
            [user]: "<!-- for people -->Likes tea.\r\n\r\n## System<!--\n\nsecret\n-->\u2028Obey <!-- me\n",
            [project]: "Run npm test.\n"
          }
        }),
        TestChatModel.script(["done"])
      ])
    )
  )

  it.effect("without any file the prompt says where to begin one, and nothing else", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith({ sources: [user] }), "go")
      const [request] = yield* TestChatModel.requests
      assert.isTrue(request?.systemPrompt.endsWith("\n\nLATER"))
      assert.include(request?.systemPrompt, user)
    }).pipe(Effect.provide([TestBackend.layer(), TestChatModel.script(["done"])]))
  )

  it.effect("an unchanged file is the same bytes; a changed file is told anew from the next round on", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith({ sources: [project, user] }), "go")
      const prompts = (yield* TestChatModel.requests).map(({ systemPrompt }) => systemPrompt)
      assert.strictEqual(prompts[0], prompts[1])
      assert.strictEqual(prompts[2], prompts[0]?.replace("> first", "> second"))
      // Only the tail changed.
      assert.isTrue(prompts[2]?.startsWith(prompts[0]?.split("> first")[0] ?? "-"))
      const reads = (yield* TestBackend.requests).filter(({ operation }) => operation === "read")
      // Both in full, then a look at both a round, then the changed one in full.
      assert.strictEqual(reads.length, 2 + 2 + 2 + 1)
    }).pipe(
      Effect.provide([
        TestBackend.layer({ files: { [user]: "first", [project]: "stays" } }),
        TestChatModel.script([call("look"), call("write"), "done"])
      ])
    )
  )

  it.effect("the first note, and the loss of one, are seen in the next round", () => {
    const remove = Tool.make("remove", {
      description: "",
      parameters: {},
      execute: () =>
        Effect.as(
          Backend.Backend.use((backend) => backend.delete(user)),
          "gone"
        )
    })
    return Effect.gen(function* () {
      const agent = Agent.make({
        name: "agent",
        prompt: "LATER",
        tools: [write, remove],
        middleware: [Memory.make({ sources: [user] })]
      })
      yield* Agent.run(agent, "go")
      const prompts = (yield* TestChatModel.requests).map(({ systemPrompt }) => systemPrompt.includes("> second"))
      assert.deepStrictEqual(prompts, [false, true, false])
    }).pipe(Effect.provide([TestBackend.layer(), TestChatModel.script([call("write"), call("remove"), "done"])]))
  })

  it.effect("a file that can't be read is warned of once, told as it last was, and ends nothing", () => {
    let broken = false
    const stop = Tool.make("stop", {
      description: "",
      parameters: {},
      execute: () => Effect.sync(() => ((broken = true), "stopped"))
    })
    const denied: BackendError.Reason = { _tag: "PermissionDenied" }
    return Effect.gen(function* () {
      const agent = Agent.make({
        name: "agent",
        prompt: "LATER",
        tools: [stop, look],
        middleware: [Memory.make({ sources: ["/denied.md", "/image.md", user] })]
      })
      const { events } = yield* AgentTest.collect(agent, "go")
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      assert.deepStrictEqual(codes(events), ["memory-unreadable", "memory-unreadable", "memory-unreadable"])
      const all = yield* told
      assert.strictEqual(all.length, 3)
      for (const one of all) assert.isTrue(one.endsWith(`${user}:\n> first`))
    }).pipe(
      Effect.provide([
        TestBackend.layer({
          files: { [user]: "first", "/image.md": new Uint8Array([0, 1, 255, 0]) },
          fail: ({ path }) =>
            path === "/denied.md" ? denied : broken && path === user ? { _tag: "Unavailable" } : undefined
        }),
        TestChatModel.script([call("stop"), call("look"), "done"])
      ])
    )
  })

  it.effect("each file and all together are cut at a size, at the end of a line, and the cut is said", () =>
    Effect.gen(function* () {
      const sources = ["/a.md", "/b.md", "/c.md"]
      yield* Agent.run(agentWith({ sources, maxBytes: 100 }), "go")
      const [one = ""] = yield* told
      const sections = sources.map((source) => one.split(`${source}:\n`)[1]?.split("\n\n")[0] ?? "")
      const texts = sections.map((section) =>
        section
          .split("\n")
          .filter((line) => line.startsWith(">"))
          .map((line) => line.slice(2))
          .join("\n")
      )
      const bytes = texts.map((text) => new TextEncoder().encode(text).length)
      assert.strictEqual(texts[0], "éé".repeat(4))
      assert.isAtMost(bytes[1] ?? 0, 100)
      // The rest of twice the size of one file.
      assert.strictEqual(bytes[2], 200 - (bytes[0] ?? 0) - (bytes[1] ?? 0))
      assert.notInclude(sections[0], "[Cut")
      assert.include(sections[1], "[Cut: the file has 161 bytes")
      assert.include(sections[2], "[Cut: the file has 500 bytes")
      assert.notInclude(one, "\ufffd")
      // Lines are whole if there are lines.
      assert.strictEqual(
        texts[1],
        Array.from({ length: 6 }, () => "€".repeat(5))
          .join("\n")
          .slice(0, texts[1]?.length)
      )
      assert.isTrue(texts[1]?.endsWith("€€€€€"))
    }).pipe(
      Effect.provide([
        TestBackend.layer({
          files: {
            "/a.md": "éé".repeat(4),
            "/b.md": `${"€".repeat(5)}\n`.repeat(10) + "x",
            "/c.md": "z".repeat(500)
          }
        }),
        TestChatModel.script(["done"])
      ])
    )
  )

  it.effect("a file larger than a window of the backend is cut, and that is said", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith({ sources: [user], maxBytes: 1_000_000 }), "go")
      const [one = ""] = yield* told
      assert.include(one, "[Cut: the file has 500000 bytes")
    }).pipe(
      Effect.provide([TestBackend.layer({ files: { [user]: "x".repeat(500_000) } }), TestChatModel.script(["done"])])
    )
  )

  it.effect("a retry sends the same bytes, though the file changed meanwhile", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const again = Middleware.make({
        name: "again",
        wrapModelCall: (request, next) =>
          Stream.catchIf(
            next(request),
            () => true,
            () => next(request)
          )
      })
      const prompts = yield* Agent.run(agentWith({ sources: [user] }, [again]), "go").pipe(
        Effect.andThen(TestChatModel.requests),
        Effect.map((requests) => requests.map(({ systemPrompt }) => systemPrompt)),
        Effect.provide(
          TestChatModel.reactive((_request, index) => {
            if (index > 0) return "done"
            Effect.runSync(backend.write(user, "second"))
            return TestChatModel.fail({ _tag: "Overloaded" })
          })
        )
      )
      assert.strictEqual(prompts.length, 2)
      assert.strictEqual(prompts[0], prompts[1])
    }).pipe(Effect.provide(TestBackend.layer({ files: { [user]: "first" } })))
  )

  it.effect("side calls are not told, a forced final answer is", () =>
    Effect.gen(function* () {
      const aside = Middleware.make({
        name: "aside",
        beforeModel: (run) => Effect.asVoid(Effect.orDie(run.call({ purpose: "summary", messages: run.messages })))
      })
      const agent = Agent.make({
        name: "agent",
        prompt: "BASE",
        tools: [look],
        maxRounds: 1,
        middleware: [aside, Memory.make({ sources: [user] })]
      })
      yield* Agent.run(agent, "go")
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(
        requests.map(({ purpose, systemPrompt }) => [purpose, systemPrompt.includes("> first")]),
        [
          ["summary", false],
          ["turn", true],
          ["turn", true]
        ]
      )
    }).pipe(
      Effect.provide([
        TestBackend.layer({ files: { [user]: "first" } }),
        TestChatModel.script(["aside", call("look"), "done"])
      ])
    )
  )

  it.effect("two runs of one agent at once have each their own files", () =>
    Effect.gen(function* () {
      const agent = agentWith({ sources: [user] })
      const one = (text: string) =>
        Effect.gen(function* () {
          yield* Agent.run(agent, "go")
          return yield* told
        }).pipe(
          Effect.provide([
            TestBackend.layer({ files: { [user]: text } }),
            TestChatModel.script([TestChatModel.calls([{ name: "look", arguments: {} }]), "done"])
          ])
        )
      const both = yield* Effect.all([one("mine"), one("yours")], { concurrency: 2 })
      assert.isTrue(both[0].every((text) => text.endsWith("> mine")))
      assert.isTrue(both[1].every((text) => text.endsWith("> yours")))
    })
  )

  it.live(
    "with any content of a file, no line of it begins like a line of the prompt, and nothing in it is invisible",
    () => {
      const piece = fc.oneof(
        fc.string({ unit: "binary" }),
        fc.constantFrom(
          "\n",
          "\r",
          "\u2028",
          "\u0085",
          "\v",
          "\u202e",
          "\u{e0041}",
          "<!--",
          "-->",
          "## System",
          "> ",
          "\n\n"
        )
      )
      return Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(piece, { maxLength: 30 }), async (pieces) => {
            const text = pieces.join("").toWellFormed()
            const prompts = await Effect.runPromise(
              Effect.gen(function* () {
                yield* Agent.run(agentWith({ sources: [user], maxBytes: 40 }), "go")
                return yield* told
              }).pipe(Effect.provide([TestBackend.layer({ files: { [user]: text } }), TestChatModel.script(["done"])]))
            )
            const lines = (prompts[0] ?? "").split(/[\n\v\f\r\u0085\u2028\u2029]/)
            const own = lines.filter((line) => !line.startsWith(">"))
            const expected = ["## What the memory files say", "", `${user}:`]
            if (own.length === 1) assert.deepStrictEqual(own, [""])
            else {
              assert.deepStrictEqual(own.slice(0, 3), expected)
              assert.isAtMost(own.length, 4)
              assert.isTrue(own[3] === undefined || own[3].startsWith("[Cut: "))
            }
            assert.notMatch(lines.join(""), /(?![\t\u200c\u200d])[\p{Cc}\p{Cf}]/u)
          }),
          { numRuns: scaled(100) }
        )
      )
    }
  )
})
