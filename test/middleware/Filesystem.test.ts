import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schedule, Schema } from "effect"
import { Agent, Backend, BackendError, Message, Tool } from "effect-deepagents"
import { FileTools, MemoryBackend } from "effect-deepagents/backends"
import { Filesystem } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { isFull } from "../scale.ts"
import { threadTime } from "../spent.ts"

const speak = Tool.make("speak", {
  description: "",
  parameters: { lines: Schema.Int, width: Schema.optionalKey(Schema.Int) },
  execute: ({ lines, width }) =>
    Effect.succeed(Array.from({ length: lines }, (_, n) => `line ${n} ${"x".repeat(width ?? 40)}`).join("\n"))
})

const say = (lines: number, width?: number) =>
  TestChatModel.calls([{ name: "speak", arguments: width === undefined ? { lines } : { lines, width } }])

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const pathIn = (text: string | undefined) => /in the file (\S+):/.exec(text ?? "")?.[1] ?? "/no path"

const agentWith = (options?: Filesystem.Options) =>
  Agent.make({ name: "a", prompt: "", tools: [speak, ...FileTools.make()], middleware: [Filesystem.make(options)] })

describe("Filesystem", () => {
  it.effect(
    "a large result goes to a file; the model gets its path and its ends, and reads the rest page by page",
    () =>
      Effect.gen(function* () {
        const result = yield* Agent.run(agentWith(), "go")
        const [large, small, page] = answers(result.messages)
        assert.isBelow(large?.length ?? Infinity, 2_000)
        assert.include(large, "line 0 ")
        assert.include(large, "line 2999 ")
        assert.include(large, "2990 lines")
        assert.notInclude(large, "line 1500 ")
        assert.include(small, "line 1 ")
        assert.include(page, "line 1500 ")
      }).pipe(
        Effect.provide([
          TestChatModel.reactive((request) => {
            const told = answers(request.messages)
            if (told.length === 0) return say(3_000)
            if (told.length === 1) return say(2)
            return told.length === 2
              ? TestChatModel.calls([
                  { name: "read_file", arguments: { file_path: pathIn(told[0]), offset: 1_501, limit: 1 } }
                ])
              : "done"
          }),
          MemoryBackend.layer()
        ])
      )
  )

  it.effect("the same text is one file, long lines are cut in the preview, and only so many files are kept", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const result = yield* Agent.run(agentWith({ toolResults: 100, keep: 2 }), "go")
      const told = answers(result.messages)
      assert.strictEqual(pathIn(told[0]), pathIn(told[1]))
      assert.isBelow(told[2]?.length ?? Infinity, 12_000)
      const { entries } = yield* backend.ls("/large_results")
      assert.strictEqual(entries.length, 2)
      assert.isTrue(entries.some((entry) => entry.path === pathIn(told[3])))
    }).pipe(
      Effect.provide([
        TestChatModel.script([say(20), say(20, 40), say(3, 5_000), say(30), "done"]),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect("does not move a result that its tool pages itself, or reading it back would never end", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentWith({ toolResults: 100 }), "go")
      const [pointer, page] = answers(result.messages)
      assert.include(pathIn(pointer), "/large_results/")
      assert.include(page, "line 25 ")
    }).pipe(
      Effect.provide([
        TestChatModel.reactive((request) => {
          const told = answers(request.messages)
          if (told.length === 0) return say(50)
          return told.length === 1
            ? TestChatModel.calls([{ name: "read_file", arguments: { file_path: pathIn(told[0]) } }])
            : "done"
        }),
        MemoryBackend.layer()
      ])
    )
  )

  it.effect("puts away a result beyond the largest file whole, in several files", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const result = yield* Effect.provide(Agent.run(agentWith(), "go"), TestChatModel.script([say(250_000), "done"]))
      const [pointer = ""] = answers(result.messages)
      assert.isBelow(pointer.length, 4_000)
      assert.include(pointer, "line 249999 ")
      assert.include(pointer, "249990 lines")
      const paths = /The files: (.+) Its first/.exec(pointer)?.[1]?.split(" ") ?? []
      assert.lengthOf(paths, 7)
      const files = yield* backend.download(paths)
      const whole = Buffer.concat(files.map((file) => (file.ok ? file.value : new Uint8Array()))).toString()
      assert.isTrue(whole === Array.from({ length: 250_000 }, (_, n) => `line ${n} ${"x".repeat(40)}`).join("\n"))
      // The files of one text count as one, and go together.
      yield* Effect.provide(Agent.run(agentWith({ keep: 1 }), "go"), TestChatModel.script([say(3_000), "done"]))
      const { entries } = yield* backend.ls("/large_results")
      assert.lengthOf(entries, 1)
    }).pipe(Effect.provide(MemoryBackend.layer()))
  )

  it.live.runIf(isFull)("50 MB are put away in steps between which other work goes on", () =>
    Effect.gen(function* () {
      const text = Buffer.from("ä".repeat(1_000) + "\n")
        .toString()
        .repeat(50_000)
      const large = Tool.make("large", { description: "", parameters: {}, execute: () => Effect.succeed(text) })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [large, ...FileTools.make()],
        middleware: [Filesystem.make()]
      })
      let last = threadTime()
      let longest = 0
      const watching = yield* Effect.forkChild(
        Effect.repeat(
          Effect.sync(() => {
            const now = threadTime()
            longest = Math.max(longest, now - last)
            last = now
          }),
          Schedule.spaced("1 millis")
        )
      )
      const script = TestChatModel.script([TestChatModel.calls([{ name: "large" }]), "done"])
      const { messages } = yield* Effect.provide(Agent.run(agent, "go"), script)
      yield* Fiber.interrupt(watching)
      assert.include(answers(messages)[0] ?? "", "in 26 files")
      assert.isBelow(longest, 100)
    }).pipe(Effect.provide(MemoryBackend.layer()))
  )

  it.effect("no file goes that a pointer of the last two rounds names, however many there are", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const seen: Array<boolean> = []
      const model = TestChatModel.reactive((request) => {
        const told = answers(request.messages)
        if (told.length === 0) {
          return TestChatModel.calls(
            Array.from({ length: 12 }, (_, n) => ({ name: "speak", arguments: { lines: 100 + n } }))
          )
        }
        if (told.length === 12) {
          return TestChatModel.calls([
            ...told.map((one) => ({ name: "read_file", arguments: { file_path: pathIn(one), limit: 1 } })),
            { name: "speak", arguments: { lines: 200 } }
          ])
        }
        if (told.length === 25) seen.push(...told.slice(12, 24).map((one) => one.includes("line 0 ")))
        return told.length < 27 ? say(300 + told.length) : "done"
      })
      yield* Effect.provide(Agent.run(agentWith({ toolResults: 100, keep: 3 }), "go"), model)
      assert.deepStrictEqual(
        seen,
        Array.from({ length: 12 }, () => true)
      )
      // Those of earlier rounds went.
      const { entries } = yield* backend.ls("/large_results")
      assert.lengthOf(entries, 3)
    }).pipe(Effect.provide(MemoryBackend.layer()))
  )

  it.effect("keeps a result that can't be written, with a warning", () =>
    Effect.gen(function* () {
      const backend = yield* MemoryBackend.make()
      const full: Backend.Service = {
        ...backend,
        write: (path) => Effect.fail(BackendError.make("write", path, { _tag: "Unavailable" }, { detail: "disk full" }))
      }
      const { events } = yield* AgentTest.collect(agentWith({ toolResults: 100 }), "go").pipe(
        Effect.provideService(Backend.Backend, full)
      )
      const warning = events.find((event) => event._tag === "Warning")
      assert.include(warning?._tag === "Warning" ? warning.message : "", "disk full")
      const done = events.find((event) => event._tag === "ToolCompleted")
      assert.include(done?._tag === "ToolCompleted" ? done.text : "", "line 10 ")
    }).pipe(Effect.provide(TestChatModel.script([say(20), "done"])))
  )

  it.effect(
    "a large message of the user is a pointer to the model, in every round the same, and whole in the transcript",
    () =>
      Effect.gen(function* () {
        const long = Array.from({ length: 200 }, (_, n) => `fact ${n}`).join("\n")
        const result = yield* Agent.run(agentWith({ userMessages: 100 }), [Message.human(long), Message.human("Well?")])
        assert.strictEqual(Message.text(result.messages[0] ?? Message.human("")), long)
        const requests = yield* TestChatModel.requests
        const shown = requests.map((request) => request.messages[0])
        assert.strictEqual(shown[0], shown[1])
        const text = Message.text(shown[0] ?? Message.human(""))
        assert.isBelow(text.length, 400)
        const backend = yield* Backend.Backend
        const file = yield* backend.read(pathIn(text))
        assert.strictEqual(file.kind === "text" ? file.text : "", long)
      }).pipe(Effect.provide([TestChatModel.script([say(1), "done"]), MemoryBackend.layer()]))
  )

  it.effect("one value serves runs on other files: each has its own copy of a message", () =>
    Effect.gen(function* () {
      const agent = agentWith({ userMessages: 100 })
      const long = Message.human("fact ".repeat(200))
      for (const tenant of ["first", "second"]) {
        const backend = yield* MemoryBackend.make()
        yield* Effect.provideService(Agent.run(agent, [long, Message.human("Well?")]), Backend.Backend, backend)
        const requests = yield* TestChatModel.requests
        const shown = Message.text(requests.at(-1)?.messages[0] ?? Message.human(""))
        const file = yield* backend.read(pathIn(shown))
        assert.strictEqual(file.kind, "text", tenant)
      }
    }).pipe(Effect.provide(TestChatModel.script(["one", "two"])))
  )
})
