import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Result, Schema } from "effect"
import { Agent, type AgentState, Backend, type BackendError, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { operations, outcomes } from "./operations.ts"

const paths = (listing: Backend.Listing) => listing.entries.map((entry) => entry.path)

const use = <A>(run: (backend: Backend.Service) => Effect.Effect<A, BackendError.BackendError>) =>
  Backend.Backend.use(run)

const reasonOf = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason._tag)

/** An agent that does these things, one a tool call, one call a turn; a failure of one is kept for the test. */
const makeDoing = (
  name: string,
  steps: ReadonlyArray<Effect.Effect<unknown, BackendError.BackendError, Backend.Backend>>
) => {
  const failures: Array<BackendError.BackendError> = []
  const agent = Agent.make({
    name,
    prompt: "You are tested.",
    tools: [
      Tool.make("step", {
        description: "Does a step",
        parameters: { index: Schema.Finite },
        execute: ({ index }) =>
          (steps[index] ?? Effect.void).pipe(
            Effect.tapError((error) => Effect.sync(() => failures.push(error))),
            Effect.as("done")
          )
      })
    ]
  })
  const model = TestChatModel.script([
    ...steps.map((_, index) => TestChatModel.calls([{ name: "step", arguments: { index } }])),
    "done"
  ])
  return { agent, failures, model }
}

/** Runs these things in the tool calls of a run, over files in its state. */
const inState = (
  steps: ReadonlyArray<Effect.Effect<unknown, BackendError.BackendError, Backend.Backend>>,
  state: AgentState.Snapshot = {}
) =>
  Effect.gen(function* () {
    const { agent, failures, model } = makeDoing("tested", steps)
    const result = yield* Agent.run(agent, "Go", { state }).pipe(Effect.provide([model, MemoryBackend.layerState]))
    return { failures, state: result.state }
  })

/** The operations, each once. */
const each = (backend: Backend.Service): ReadonlyArray<Effect.Effect<unknown, BackendError.BackendError>> => [
  backend.ls("/"),
  backend.read("/a"),
  backend.write("/a", "a"),
  backend.edit("/a", [{ old: "a", new: "b" }]),
  backend.delete("/a"),
  backend.move("/a", "/b"),
  backend.grep({ pattern: "a" }),
  backend.glob({ pattern: "a" })
]

describe("MemoryBackend.layer", () => {
  it.effect("has the files that it was given, texts and bytes", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "**" })), ["/a/b.txt", "/image"])
      const text = yield* backend.read("/a/b.txt")
      assert(text.kind === "text")
      assert.strictEqual(text.text, "one\ntwo")
      const [bytes] = yield* backend.download(["/image"])
      assert(bytes?.ok)
      assert.deepStrictEqual([...bytes.value], [0, 255])
    }).pipe(
      Effect.provide(MemoryBackend.layer({ files: { "a/b.txt": "one\ntwo", "/image": new Uint8Array([0, 255]) } }))
    )
  )

  it.effect("two layers have nothing in common", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* MemoryBackend.make(), yield* MemoryBackend.make()]
      yield* first.write("/a", "a")
      assert.strictEqual(yield* reasonOf(second.read("/a")), "NotFound")
    })
  )

  it.effect("a path that can't be one is a defect of who gives the files", () =>
    Effect.gen(function* () {
      for (const path of ["../a", "/", "a\\b"]) {
        const exit = yield* Effect.exit(MemoryBackend.make({ files: { [path]: "" } }))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause), path)
      }
    })
  )

  it.effect("names that mean something to the language are names", () =>
    Effect.gen(function* () {
      const backend = yield* MemoryBackend.make()
      const names = ["__proto__", "constructor", "toString", "hasOwnProperty"]
      for (const name of names) {
        assert.strictEqual(yield* reasonOf(backend.read(name)), "NotFound")
        yield* backend.write(`/${name}/${name}`, name)
        yield* backend.edit(`/${name}/${name}`, [{ old: name, new: `${name}!` }])
      }
      assert.deepStrictEqual(paths(yield* backend.ls("/")), names.map((name) => `/${name}`).sort())
      yield* backend.move("/__proto__", "/constructor/prototype")
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "__proto__" })), ["/constructor/prototype/__proto__"])
      yield* backend.delete("/constructor", { recursive: true })
      assert.strictEqual((yield* backend.grep({ pattern: "!" })).files.length, 2)
      assert.isUndefined(Reflect.get({}, "prototype"))
    })
  )

  it.effect("a directory moves at once: who reads meanwhile sees all of it here or there", () =>
    Effect.gen(function* () {
      const count = 5_000
      const files = Object.fromEntries(Array.from({ length: count }, (_, index) => [`/from/${index}`, ""]))
      const backend = yield* MemoryBackend.make({ files })
      const seen = new Set<number>()
      const look = Effect.forever(
        Effect.gen(function* () {
          const listing = yield* Effect.option(backend.ls("/from"))
          seen.add(listing._tag === "Some" ? listing.value.entries.length : 0)
          yield* Effect.yieldNow
        })
      )
      yield* Effect.raceFirst(look, Effect.andThen(Effect.yieldNow, backend.move("/from", "/to")))
      assert.deepStrictEqual(
        [...seen].filter((entries) => entries !== 0 && entries !== count),
        []
      )
      assert.strictEqual((yield* backend.ls("/to")).entries.length, count)
    })
  )

  it.effect("no move makes a path that is longer than paths may be", () =>
    Effect.gen(function* () {
      const deep = `/a${`/${"d".repeat(200)}`.repeat(19)}`
      const backend = yield* MemoryBackend.make({ files: { [deep]: "deep" } })
      assert.strictEqual(yield* reasonOf(backend.move("/a", `/${"b".repeat(250)}/${"c".repeat(250)}`)), "InvalidPath")
      assert.strictEqual((yield* backend.read(deep)).kind, "text")
      yield* backend.move("/a", "/longer")
      assert.strictEqual((yield* backend.grep({ pattern: "deep" })).files.length, 1)
    })
  )

  it.effect("no file gets larger than `maxFileSize`, in bytes", () =>
    Effect.gen(function* () {
      const backend = yield* MemoryBackend.make({ maxFileSize: 9, files: { "/a": "ü" } })
      yield* backend.write("/b", "üüüü!")
      assert.strictEqual(yield* reasonOf(backend.write("/b", "üüüüü")), "TooLarge")
      assert.strictEqual(yield* reasonOf(backend.edit("/a", [{ old: "ü", new: "1234567890" }])), "TooLarge")
      const [uploaded] = yield* backend.upload([{ path: "/c", content: new Uint8Array(10) }])
      assert(uploaded?.ok === false)
      assert.deepStrictEqual(uploaded.error.reason, { _tag: "TooLarge", size: 10, limit: 9 })
      assert.deepStrictEqual(paths(yield* backend.ls("/")), ["/a", "/b"])
    })
  )

  it.effect("half a character is kept as the character that stands for it", () =>
    Effect.gen(function* () {
      const backend = yield* MemoryBackend.make()
      yield* backend.write("/a", "a\ud800")
      yield* backend.edit("/a", [{ old: "\ufffd", new: "b" }])
      const file = yield* backend.read("/a")
      assert.strictEqual(file.kind === "text" && file.text, "ab")
    })
  )

  it.effect("says when a file was written", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust(5)
      const backend = yield* MemoryBackend.make({ files: { "/a": "a" } })
      assert.deepStrictEqual((yield* backend.ls("/")).entries, [{ path: "/a", kind: "file", size: 1, modifiedAt: 5 }])
    })
  )
})

describe("MemoryBackend.layerState", () => {
  it.effect("outside of any run all operations fail, and say what to do", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      for (const operation of each(backend)) {
        const error = yield* Effect.flip(operation)
        assert.strictEqual(error.reason._tag, "Unavailable")
        assert.include(error.message, "use MemoryBackend.layer")
      }
      const content = new Uint8Array()
      const transfers = [
        ...(yield* backend.upload([{ path: "/a", content }])),
        ...(yield* backend.download(["b", "c"]))
      ]
      assert.deepStrictEqual(
        transfers.map((one) => [one.path, one.ok || one.error.operation, one.ok || one.error.reason._tag]),
        [
          ["/a", "upload", "Unavailable"],
          ["/b", "download", "Unavailable"],
          ["/c", "download", "Unavailable"]
        ]
      )
    }).pipe(Effect.provide(MemoryBackend.layerState))
  )

  it.effect("files are in the state of the result; deleted ones are not", () =>
    Effect.gen(function* () {
      const { failures, state } = yield* inState([
        use((backend) => backend.write("/a/b.md", "one")),
        use((backend) => backend.edit("/a/b.md", [{ old: "one", new: "two" }])),
        use((backend) => backend.write("/gone", "")),
        use((backend) => backend.delete("/gone")),
        use((backend) => backend.move("/a", "/c"))
      ])
      assert.deepStrictEqual(failures, [])
      assert.deepStrictEqual(MemoryBackend.files(state), Result.succeed({ "/c/b.md": "two" }))
      const listed: Array<string> = []
      const list = use((backend) => Effect.map(backend.glob({ pattern: "**" }), (all) => listed.push(...paths(all))))
      yield* inState([list], state)
      assert.deepStrictEqual(listed, ["/c/b.md"])
    })
  )

  it.effect("a write is one event with this one file, however many there are", () =>
    Effect.gen(function* () {
      const files = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`/old/${index}`, "x".repeat(100)]))
      const { agent, model } = makeDoing("tested", [
        use((backend) => backend.write("/new", "n")),
        use((backend) => backend.edit("/old/7", [{ old: "x", new: "y", replaceAll: true }]))
      ])
      const events = yield* AgentTest.events(agent, "Go", { state: MemoryBackend.snapshot(files) }).pipe(
        Effect.provide([model, MemoryBackend.layerState])
      )
      const changes = events.filter((event) => event._tag === "StateChanged")
      assert.deepStrictEqual(
        changes.map((event) => [event.slot, event.value]),
        [
          ["files/new", { text: "n", modifiedAt: 0 }],
          ["files/old/7", { text: "y".repeat(100), modifiedAt: 0 }]
        ]
      )
    })
  )

  it.effect("looking for files leaves nothing in the state", () =>
    Effect.gen(function* () {
      const { failures, state } = yield* inState([
        use((backend) => backend.read("/nothing")),
        use((backend) => backend.edit("/a/b/c", [{ old: "a", new: "b" }])),
        use((backend) => backend.delete("/x"))
      ])
      assert.strictEqual(failures.length, 3)
      assert.deepStrictEqual(state, {})
    })
  )

  it.effect("a run starts with the files of a snapshot, and their versions outlive it", () =>
    Effect.gen(function* () {
      const versions: Array<string> = []
      const noteVersion = use((backend) =>
        Effect.tap(backend.read("/a"), (file) => Effect.sync(() => versions.push(file.version)))
      )
      const first = yield* inState(
        [noteVersion],
        MemoryBackend.snapshot({ "/a": "a\r\nb", "b/c": new Uint8Array([255]) })
      )
      const saved: AgentState.Snapshot = JSON.parse(JSON.stringify(first.state))
      const second = yield* inState(
        [
          noteVersion,
          use((backend) => backend.edit("/a", [{ old: "a", new: "c" }], { version: versions[0] ?? "" })),
          use((backend) => backend.edit("/a", [{ old: "c", new: "d" }], { version: versions[0] ?? "" }))
        ],
        saved
      )
      assert.strictEqual(versions[0], versions[1])
      assert.deepStrictEqual(
        second.failures.map((error) => error.reason._tag),
        ["Conflict"]
      )
      assert.deepStrictEqual(
        MemoryBackend.files(second.state),
        Result.succeed({ "/a": "c\r\nb", "/b/c": new Uint8Array([255]) })
      )
    })
  )

  it.effect("sub-agents work on the same files, and edits of one file at once are all there", () =>
    Effect.gen(function* () {
      // Each of them has a layer of its own, made anew.
      const workers = ["one", "two", "three"].map((name) => {
        const steps = [
          use((backend) => backend.edit("/list", [{ old: "end", new: `${name}\nend` }])),
          use((backend) => backend.write(`/${name}`, name))
        ]
        const { agent, model } = makeDoing(name, steps)
        return agent.pipe(Agent.provide(MemoryBackend.layerState), Agent.provide(model))
      })
      const parent = Agent.make({
        name: "parent",
        prompt: "You have others work.",
        tools: workers.map((worker) => Agent.asTool(worker))
      })
      // So many that they are all there before the first one has read what there is.
      const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`/many/${index}`, ""]))
      const { state } = yield* Agent.run(parent, "Go", {
        state: MemoryBackend.snapshot({ "/list": "begin\nend", ...many })
      }).pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls(workers.map(({ name }) => ({ name, arguments: { task: "work" } }))),
            "done"
          ])
        )
      )
      const files = Result.getOrThrow(MemoryBackend.files(state))
      const others = Object.keys(files).filter((path) => !path.startsWith("/many/"))
      assert.deepStrictEqual(others, ["/list", "/one", "/three", "/two"])
      assert.deepStrictEqual(String(files["/list"]).split("\n").sort(), ["begin", "end", "one", "three", "two"])
    })
  )

  it.effect("a file that can't be read from the state ends the run, and says where", () =>
    Effect.gen(function* () {
      for (const value of [{ text: 1 }, { base64: "?" }, "text", 1]) {
        const state: AgentState.Snapshot = { "files/b": { text: "b" }, "files/a": value }
        for (const step of [
          use((backend) => backend.ls("/")),
          use((backend) => backend.write("/a", "over it")),
          use((backend) => backend.read("/b"))
        ]) {
          const error = yield* Effect.flip(inState([step], state))
          if (error._tag !== "AgentError" || error.reason._tag !== "InvalidState") return assert.fail(error.message)
          assert.strictEqual(error.reason.slot, "files/a")
        }
      }
    })
  )

  it.effect("a state whose files have no place makes them unavailable, and says where", () =>
    Effect.gen(function* () {
      const broken: ReadonlyArray<readonly [AgentState.Snapshot, string]> = [
        [MemoryBackend.snapshot({ "../a": "" }), "files/../a"],
        [MemoryBackend.snapshot({ "/a": "", "/a/b": "" }), "files/a"],
        [MemoryBackend.snapshot({ "/": "" }), "files/"]
      ]
      for (const [state, slot] of broken) {
        const { failures } = yield* inState([use((backend) => backend.ls("/"))], state)
        assert.strictEqual(failures[0]?.reason._tag, "Unavailable")
        assert.include(failures[0]?.message, slot)
      }
    })
  )
})

const anyText = fc.array(fc.integer({ min: 0, max: 0x10ffff })).map((points) =>
  points
    .map((point) => String.fromCodePoint(point))
    .join("")
    .toWellFormed()
)

describe("MemoryBackend.snapshot and files", () => {
  it("give back any texts and bytes, through JSON", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, fc.uint8Array()), (content) => {
        const state: AgentState.Snapshot = JSON.parse(JSON.stringify(MemoryBackend.snapshot({ "/a": content })))
        const file = Result.getOrThrow(MemoryBackend.files(state))["/a"] ?? ""
        const bytes = (value: string | Uint8Array) => [
          ...(typeof value === "string" ? new TextEncoder().encode(value) : value)
        ]
        assert.deepStrictEqual(bytes(file), bytes(content))
      })
    )
  })

  it("a text is a text in the state, bytes are base64", () => {
    assert.deepStrictEqual(
      MemoryBackend.snapshot({ a: "ü", "/b": new TextEncoder().encode("ü"), "/c/./d": new Uint8Array([255]) }),
      { "files/a": { text: "ü" }, "files/b": { text: "ü" }, "files/c/d": { base64: "/w==" } }
    )
  })

  it("takes files only from their places, by paths that stay in the root", () => {
    assert.deepStrictEqual(MemoryBackend.files({ files: 1, filesystem: 2, "files/a": null }), Result.succeed({}))
    for (const name of ["files/../a", "files/", "files//a", "files/a/"]) {
      const found = MemoryBackend.files({ [name]: { text: "" } })
      assert.isTrue(Result.isFailure(found) && found.failure.path === name, name)
    }
    const proto = Result.getOrThrow(MemoryBackend.files({ "files/__proto__": { text: "x" } }))
    assert.deepStrictEqual(Object.entries(proto), [["/__proto__", "x"]])
  })
})

describe("files in the state are files in memory", () => {
  it.effect("any operations give the same", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(operations, (sequence) =>
          Effect.gen(function* () {
            const found: Array<ReadonlyArray<unknown>> = []
            yield* inState([use((backend) => Effect.map(outcomes(backend, sequence), (all) => found.push(all)))])
            assert.deepStrictEqual(found, [yield* outcomes(yield* MemoryBackend.make(), sequence)])
          }).pipe(Effect.runPromise)
        ),
        { numRuns: 60 }
      )
    )
  )
})
