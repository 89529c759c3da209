import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Agent, Approval, Backend, Tool, ToolContext } from "effect-deepagents"
import { FileTools, MemoryBackend } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { BackgroundSubagents, BackgroundTasks, Taint } from "effect-deepagents/middleware"
import { MemoryStore, MemoryTools, Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { folder } from "../sessions/places.ts"

const ran: Array<string> = []
const tool = (name: string, annotations: Tool.Annotations = {}) =>
  Tool.make(name, {
    description: name,
    parameters: {},
    annotations,
    execute: () => Effect.sync(() => (ran.push(name), `${name} says something`))
  })
const fetchPage = tool("fetch_page", { openWorld: true, readOnly: true })
const look = tool("look", { readOnly: true })
const wipe = tool("wipe", { destructive: true })
const send = tool("send", { openWorld: true })
const drop = tool("drop", { destructive: true })
const tools = [fetchPage, look, wipe, drop, send]

/** Turns of calls by name, one after the other, then an answer. */
const turns = (...rounds: ReadonlyArray<ReadonlyArray<string>>) =>
  TestChatModel.script([...rounds.map((names) => TestChatModel.calls(names.map((name) => ({ name })))), "done"], {
    exhaustive: false
  })

const agent = Agent.make({ name: "a", prompt: "", tools, middleware: [Taint.make()] })

const askedFor = (result: { readonly pending: ReadonlyArray<Approval.Request> }) =>
  result.pending.map(({ toolName }) => toolName)

/** A person who says no to everything, and whom it was asked of. */
const refusing = () => {
  const asked: Array<string> = []
  const layer = Layer.succeed(Approval.Approvals, {
    decide: (request) => Effect.sync(() => (asked.push(request.toolName), Approval.reject(request)))
  })
  return { asked, layer }
}

describe("Taint", () => {
  it.effect("without outside text, nothing is asked; then acting tools ask, and reading ones don't", () =>
    Effect.gen(function* () {
      ran.length = 0
      const result = yield* Effect.provide(
        Agent.run(agent, "go"),
        turns(["wipe", "look"], ["fetch_page"], ["look", "wipe"])
      )
      assert.deepStrictEqual(askedFor(result), ["wipe"])
      assert.deepStrictEqual(ran, ["wipe", "look", "fetch_page"])
      assert.include(result.pending[0]?.description, "Text from outside is in the conversation (fetch_page)")
    })
  )

  it.effect("an approval is for the call; with always it clears, until something comes in again", () =>
    Effect.gen(function* () {
      ran.length = 0
      const model = turns(["fetch_page"], ["wipe"], ["drop"], ["wipe"], ["fetch_page"], ["drop"])
      const steps = Effect.gen(function* () {
        const first = yield* Agent.run(agent, "go")
        const approve = (always: boolean) => (request: Approval.Request) => Approval.approve(request, { always })
        const second = yield* Agent.resume(agent, { checkpoint: first, decisions: first.pending.map(approve(false)) })
        assert.deepStrictEqual(askedFor(second), ["drop"])
        const third = yield* Agent.resume(agent, { checkpoint: second, decisions: second.pending.map(approve(true)) })
        assert.deepStrictEqual(askedFor(third), ["drop"])
      })
      yield* Effect.provide(steps, model)
      assert.deepStrictEqual(ran, ["fetch_page", "wipe", "drop", "wipe", "fetch_page"])
    })
  )

  it.effect("the mark stays in the thread: a later run on its state asks, and so does one on its messages alone", () =>
    Effect.gen(function* () {
      const first = yield* Effect.provide(Agent.run(agent, "go"), turns(["fetch_page"]))
      for (const state of [first.state, {}]) {
        const next = yield* Effect.provide(
          Agent.run(agent, "and now", { history: first.messages, state }),
          turns(["wipe"])
        )
        assert.deepStrictEqual(askedFor(next), ["wipe"])
      }
    })
  )

  it.effect("a secret does not leave without a word; a tool with clearance may send it", () =>
    Effect.gen(function* () {
      const run = (options: Taint.Options) =>
        Effect.provide(
          Agent.run(Agent.make({ name: "a", prompt: "", tools, middleware: [Taint.make(options)] }), "go"),
          turns(["look"], ["send"])
        )
      const asked = yield* run({ secrets: { look: ["mail"] } })
      assert.deepStrictEqual(askedFor(asked), ["send"])
      assert.include(asked.pending[0]?.description, "secret (mail)")
      assert.deepStrictEqual(askedFor(yield* run({ secrets: { look: ["mail"] }, clearance: { send: ["mail"] } })), [])
    })
  )

  it.effect("a misspelt name fails the runs", () =>
    Effect.gen(function* () {
      const wrong = Agent.make({ name: "a", prompt: "", tools, middleware: [Taint.make({ trusted: ["lok"] })] })
      assert.include((yield* Effect.flip(Agent.run(wrong, "go"))).message, 'Did you mean "look"?')
    }).pipe(Effect.provide(turns()))
  )

  it.effect("a task in the background begins with the mark of its parent", () =>
    Effect.gen(function* () {
      ran.length = 0
      const worker = Agent.provide(
        Agent.make({ name: "worker", prompt: "", tools: [wipe] }),
        TestChatModel.reactive(({ messages }) =>
          messages.at(-1)?.role === "tool" ? "done" : TestChatModel.calls([{ name: "wipe" }])
        )
      )
      const { asked, layer } = refusing()
      const lead = Agent.make({
        name: "lead",
        prompt: "",
        tools: [fetchPage],
        middleware: [Taint.make(), BackgroundSubagents.make({ agents: [worker] })]
      })
      const model = TestChatModel.script([
        TestChatModel.calls([{ name: "fetch_page" }]),
        TestChatModel.calls([{ name: "start_task", arguments: { description: "x", subagent_type: "worker" } }]),
        TestChatModel.calls([{ name: "check_task", arguments: { task_id: "task-1", wait_seconds: 5 } }]),
        "done"
      ])
      yield* Agent.run(lead, "go").pipe(Effect.provide([model, layer, BackgroundTasks.layer()]))
      assert.deepStrictEqual([asked, ran], [["wipe"], ["fetch_page"]])
    })
  )

  it.effect("a file that a marked run wrote marks its readers, in another thread; nobody sees the labels", () =>
    Effect.gen(function* () {
      const files = Taint.layer.pipe(Layer.provide(MemoryBackend.layer()))
      const { asked, layer } = refusing()
      const make = (options: Taint.Options) =>
        Agent.make({ name: "a", prompt: "", tools: [...tools, ...FileTools.make()], middleware: [Taint.make(options)] })
      const call = (name: string, args: { readonly [key: string]: string }) =>
        TestChatModel.calls([{ name, arguments: args }])
      const steps = Effect.gen(function* () {
        const backend = yield* Backend.Backend
        yield* backend.write("/clean", "x")
        const writes = TestChatModel.script([
          TestChatModel.calls([{ name: "fetch_page" }]),
          call("write_file", { file_path: "/notes/a", content: "from the page" }),
          "done"
        ])
        yield* Effect.provide(Agent.run(make({ harmless: ["write_file"] }), "go"), writes)
        const reads = (path: string) =>
          TestChatModel.script([
            call("read_file", { file_path: path }),
            TestChatModel.calls([{ name: "wipe" }]),
            "done"
          ])
        yield* Effect.provide(Agent.run(make({}), "go"), reads("/clean"))
        assert.deepStrictEqual(asked, [])
        yield* backend.move("/notes", "/other")
        yield* Effect.provide(Agent.run(make({}), "go"), reads("/other/a"))
        assert.deepStrictEqual(asked, ["wipe"])
        const { entries } = yield* backend.ls("/")
        assert.deepStrictEqual(entries.map(({ path }) => path).sort(), ["/clean", "/other"])
        const labels = yield* Effect.flip(backend.write("/./.deepagents-labels/=content", "{}"))
        assert.strictEqual(labels.reason._tag, "PermissionDenied")
      })
      yield* Effect.provide(steps, [files, layer])
    })
  )

  const call = (name: string, args: { readonly [key: string]: string }) =>
    TestChatModel.calls([{ name, arguments: args }])
  const filer = (options: Taint.Options = {}) =>
    Agent.make({ name: "a", prompt: "", tools: [...tools, ...FileTools.make()], middleware: [Taint.make(options)] })

  /** A run that is marked, and then makes a call. */
  const runMarked = (name: string, args: { readonly [key: string]: string }) =>
    Effect.provide(
      Agent.run(filer({ harmless: ["write_file", "move_file"] }), "go"),
      TestChatModel.script([TestChatModel.calls([{ name: "fetch_page" }]), call(name, args), "done"])
    )

  /** A run that makes a call and then an acting one: tells whether that was asked about. */
  const isMarkedBy = Effect.fnUntraced(function* (name: string, args: { readonly [key: string]: string }) {
    const { asked, layer } = refusing()
    const model = TestChatModel.script([call(name, args), TestChatModel.calls([{ name: "wipe" }]), "done"])
    yield* Effect.provide(Agent.run(filer(), "go"), [model, layer])
    return asked.includes("wipe")
  })

  const quiet = refusing().layer

  it.effect("labels stay with files that are moved out of a labelled folder, and with names", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      yield* backend.write("/old/clean", "x")
      yield* runMarked("write_file", { file_path: "/do this/now", content: "from the page" })
      assert.isFalse(yield* isMarkedBy("read_file", { file_path: "/old/clean" }))
      assert.isTrue(yield* isMarkedBy("ls", { path: "/" }), "the name of a folder that a marked run made")
      assert.isTrue(yield* isMarkedBy("glob", { pattern: "**/now" }))
      assert.isFalse(yield* isMarkedBy("ls", { path: "/old" }))
      // A folder that is labelled as a whole, since a marked run moved it.
      yield* backend.write("/given/file", "x")
      yield* Effect.provide(
        Effect.gen(function* () {
          const { state } = yield* ToolContext.ToolContext
          yield* state.set(Taint.labels, { arrivals: 1, cleared: 0, from: [], secrets: [], asked: {} })
          yield* backend.move("/given", "/taken")
          return "moved"
        }).pipe((execute) => {
          const move = Tool.make("move", { description: "Moves", parameters: {}, execute: () => execute })
          return Agent.run(Agent.make({ name: "a", prompt: "", tools: [move], middleware: [Taint.make()] }), "go")
        }),
        turns(["move"])
      )
      yield* backend.move("/taken/file", "/old/file")
      assert.isTrue(yield* isMarkedBy("read_file", { file_path: "/old/file" }))
      const [labels, clean] = yield* backend.download(["/.deepagents-labels/=content", "/old/clean"])
      assert.deepInclude(labels, { path: "/.deepagents-labels/=content", ok: false })
      assert.deepInclude(clean, { path: "/old/clean", ok: true })
      const folded = yield* Effect.flip(backend.write("/.DeepAgents-Labels/x", "{}"))
      assert.strictEqual(folded.reason._tag, "PermissionDenied")
    }).pipe(Effect.provide([Taint.layer.pipe(Layer.provide(MemoryBackend.layer())), quiet]))
  )

  it.effect("a file that is written while somebody reads it marks the reader", () =>
    Effect.gen(function* () {
      const base = yield* Backend.Backend
      yield* base.write("/x", "clean")
      const begun = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const slow = Layer.succeed(Backend.Backend, {
        ...base,
        read: (path: string, window?: Backend.Window) =>
          path === "/x"
            ? Effect.andThen(
                Deferred.succeed(begun, undefined),
                Effect.andThen(Deferred.await(gate), base.read(path, window))
              )
            : base.read(path, window)
      })
      const [reads, writes] = [slow, Layer.succeed(Backend.Backend, base)].map((files) =>
        Layer.fresh(Layer.provide(Taint.layer, files))
      )
      assert(reads !== undefined && writes !== undefined)
      const reader = yield* Effect.forkChild(Effect.provide(isMarkedBy("read_file", { file_path: "/x" }), reads))
      yield* Deferred.await(begun)
      yield* Effect.provide(runMarked("write_file", { file_path: "/x", content: "from the page" }), writes)
      yield* Deferred.succeed(gate, undefined)
      assert.isTrue(yield* Fiber.join(reader))
    }).pipe(Effect.provide([MemoryBackend.layer(), quiet]))
  )

  it.effect("labels belong to files, by any link", () =>
    Effect.gen(function* () {
      const root = yield* folder
      mkdirSync(join(root, "real"))
      symlinkSync("real", join(root, "link"))
      const files = Taint.layer.pipe(
        Layer.provide(FilesystemBackend.layer({ root })),
        Layer.provide(NodeServices.layer)
      )
      yield* Effect.gen(function* () {
        yield* runMarked("write_file", { file_path: "/link/a", content: "from the page" })
        yield* runMarked("write_file", { file_path: "/real/b", content: "from the page" })
        assert.isTrue(yield* isMarkedBy("read_file", { file_path: "/real/a" }))
        assert.isTrue(yield* isMarkedBy("read_file", { file_path: "/link/b" }))
        const backend = yield* Backend.Backend
        yield* backend.move("/link/b", "/moved")
        assert.isTrue(yield* isMarkedBy("read_file", { file_path: "/moved" }))
      }).pipe(Effect.provide([files, quiet]))
    })
  )

  it.effect("labels that several processes write at once are all kept", () =>
    Effect.gen(function* () {
      const base = yield* Backend.Backend
      const late = {
        ...base,
        download: (paths: ReadonlyArray<string>) => Effect.tap(base.download(paths), Effect.yieldNow)
      }
      const process = () => Layer.fresh(Layer.provide(Taint.layer, Layer.succeed(Backend.Backend, late)))
      const paths = Array.from({ length: 8 }, (_, index) => `/${index}`)
      yield* Effect.forEach(
        paths,
        (path) => Effect.provide(runMarked("write_file", { file_path: path, content: "from the page" }), process()),
        { concurrency: "unbounded" }
      )
      for (const path of paths) {
        assert.isTrue(yield* Effect.provide(isMarkedBy("read_file", { file_path: path }), process()), path)
      }
    }).pipe(Effect.provide([MemoryBackend.layer(), quiet]))
  )

  it.live(
    "no order of writing, moving and deleting by several runs leaves dirty text, or a dirty name, unmarked",
    () => {
      interface Change {
        readonly what: string
        readonly at: string
        readonly to: string
        readonly isMarked: boolean
      }
      // Names that only marked runs give say so.
      const path = fc.constantFrom("/a", "/a/x", "/a/b", "/a/b/x", "/b/x", "/evil", "/evil/x", "/a/evil", "/b/evil/x")
      const change: fc.Arbitrary<Change> = fc.record({
        what: fc.constantFrom("write", "write", "upload", "edit", "move", "move", "delete"),
        at: path,
        to: path,
        isMarked: fc.boolean()
      })
      const folders = ["/", "/a", "/a/b", "/b", "/evil", "/a/evil", "/b/evil"]
      const worker = (execute: Effect.Effect<string, never, ToolContext.ToolContext>) =>
        Effect.provide(
          Agent.run(
            Agent.make({
              name: "a",
              prompt: "",
              tools: [Tool.make("work", { description: "", parameters: {}, execute: () => execute })],
              middleware: [Taint.make()]
            }),
            "go"
          ),
          turns(["work"])
        )
      const holds = Effect.fnUntraced(function* (changes: ReadonlyArray<Change>) {
        const backend = yield* Backend.Backend
        const exists = (one: string) =>
          Effect.map(Effect.exit(Effect.all([backend.ls(one), backend.read(one)], { mode: "result" })), (exit) =>
            exit._tag === "Success" ? exit.value.some(({ _tag }) => _tag === "Success") : false
          )
        for (const { at, isMarked, to, what } of changes) {
          const name = what === "move" ? to : at
          const named = name.slice(0, name.indexOf("evil") + 4)
          if (!isMarked && name.includes("evil") && !(yield* exists(named))) continue
          const text = isMarked ? "DIRTY" : "clean"
          const works: { readonly [name: string]: Effect.Effect<unknown, unknown> } = {
            write: backend.write(at, text),
            upload: backend.upload([{ path: at, content: new TextEncoder().encode(text) }]),
            edit: backend.edit(at, [{ old: "clean", new: text }]),
            move: backend.move(at, to),
            delete: backend.delete(at, { recursive: true })
          }
          const work = Effect.as(Effect.ignore(works[what] ?? Effect.void), "done")
          yield* worker(isMarked ? Effect.andThen(Taint.bringIn("page"), work) : work)
        }
        const { entries } = yield* backend.glob({ pattern: "**/*" })
        const looks = [
          ...entries.map(({ path: one }) => Effect.map(backend.read(one), (file) => ("text" in file ? file.text : ""))),
          ...entries.map(({ path: one }) =>
            Effect.map(backend.download([one]), ([file]) =>
              file?.ok === true ? new TextDecoder().decode(file.value) : ""
            )
          ),
          ...folders.map((one) =>
            Effect.map(backend.ls(one), (found) => found.entries.map((each) => each.path.slice(one.length)).join())
          ),
          Effect.map(backend.glob({ pattern: "**/*" }), (found) => found.entries.map((each) => each.path).join()),
          Effect.map(backend.grep({ pattern: "DIRTY" }), ({ files }) => (files.length > 0 ? "DIRTY" : ""))
        ]
        for (const [index, look] of looks.entries()) {
          const seen: Array<boolean> = []
          const read = Effect.gen(function* () {
            const text = yield* Effect.orElseSucceed(look, () => "")
            const { state } = yield* ToolContext.ToolContext
            const { arrivals } = yield* state.get(Taint.labels)
            if (/DIRTY|evil/.test(text)) seen.push(arrivals > 0)
            return "done"
          })
          yield* worker(read)
          assert.isTrue(
            seen.every((is) => is),
            `${index}: ${JSON.stringify(changes)}`
          )
        }
      })
      const files = () => Taint.layer.pipe(Layer.provide(Layer.fresh(MemoryBackend.layer())))
      const property = fc.asyncProperty(fc.array(change, { minLength: 3, maxLength: 10 }), (changes) =>
        Effect.runPromise(Effect.provide(holds(changes), [files(), quiet]))
      )
      return Effect.promise(() => fc.assert(property, { numRuns: scaled(400) }))
    }
  )

  it.effect("asks about facts that other threads would remember", () =>
    Effect.gen(function* () {
      const { asked, layer } = refusing()
      const store = Layer.provide(MemoryStore.layer, Storage.layerMemory)
      const mindful = Agent.make({
        name: "a",
        prompt: "",
        tools: [fetchPage, ...MemoryTools.make({ namespace: "ada" })],
        middleware: [Taint.make()]
      })
      const remember = { name: "remember", arguments: { text: "Pay eve first" } }
      const model = TestChatModel.script([
        TestChatModel.calls([remember]),
        TestChatModel.calls([{ name: "fetch_page" }]),
        TestChatModel.calls([{ name: "remember", arguments: { text: "and bob" } }, { name: "recall" }]),
        "done"
      ])
      yield* Effect.provide(Agent.run(mindful, "go"), [model, layer, store])
      assert.deepStrictEqual(asked, ["remember"])
    })
  )

  it.effect("tools that the provider ran mark the calls of the same turn", () =>
    Effect.gen(function* () {
      const { asked, layer } = refusing()
      const model = TestChatModel.script([
        TestChatModel.calls([{ name: "web_search", arguments: {}, providerExecuted: true }, { name: "wipe" }]),
        "done"
      ])
      yield* Effect.provide(Agent.run(filer(), "go"), [model, layer, MemoryBackend.layer()])
      assert.deepStrictEqual(asked, ["wipe"])
    })
  )

  const names = ["fetch_page", "look", "wipe", "send", "child", "code"] as const
  type Name = (typeof names)[number]

  it.live(
    "no order of calls, at once or after each other, in sub-agents and by other tools, acts unseen behind the first word from outside",
    () => {
      const scripts = fc.array(fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 4 }), {
        minLength: 1,
        maxLength: 6
      })
      const holds = Effect.fnUntraced(function* (rounds: ReadonlyArray<ReadonlyArray<Name>>) {
        const log: Array<{ readonly name: string; readonly isSeen: boolean }> = []
        let isDirty = false
        let round = 0
        const one = (name: string, annotations: Tool.Annotations) =>
          Tool.make(name, {
            description: name,
            parameters: {},
            annotations,
            execute: () =>
              Effect.sync(() => {
                log.push({ name, isSeen: isDirty })
                return "text"
              })
          })
        const own = [
          one("fetch_page", { openWorld: true, readOnly: true }),
          one("look", { readOnly: true }),
          one("wipe", { destructive: true }),
          one("send", { openWorld: true })
        ]
        const code = Tool.make("code", {
          description: "Calls others, one after the other",
          parameters: {},
          execute: Effect.fnUntraced(function* () {
            const { call } = yield* ToolContext.ToolContext
            yield* call("fetch_page", {})
            const before = log.length
            yield* Effect.ignore(call("wipe", {}))
            // A tool's own reading reaches it at once.
            assert.strictEqual(log.slice(before).filter(({ name }) => name === "wipe").length, 0)
            return "done"
          })
        })
        const child = Agent.provide(
          Agent.make({ name: "child", prompt: "", tools: own }),
          TestChatModel.reactive(({ messages }) => {
            const seen = messages.filter(({ role }) => role === "ai").length
            return seen === 0
              ? TestChatModel.calls([{ name: "fetch_page" }])
              : seen === 1
                ? TestChatModel.calls([{ name: "wipe" }, { name: "send" }])
                : "done"
          })
        )
        const { layer } = refusing()
        const lead = Agent.make({
          name: "lead",
          prompt: "",
          tools: [...own, code, Agent.asTool(child, { name: "child", description: "" })],
          middleware: [Taint.make()]
        })
        const model = TestChatModel.reactive(() => {
          // The model answers with all content of the rounds before.
          isDirty = rounds
            .slice(0, round)
            .flat()
            .some((name: Name) => !["look", "wipe"].includes(name))
          const next = rounds[round++]
          return next === undefined
            ? "done"
            : TestChatModel.calls(next.map((name) => ({ name, arguments: name === "child" ? { task: "x" } : {} })))
        })
        yield* Agent.run(lead, "go").pipe(Effect.provide([model, layer]))
        assert.deepStrictEqual(
          log.filter(({ isSeen, name }) => isSeen && (name === "wipe" || name === "send")),
          []
        )
      })
      const property = fc.asyncProperty(scripts, (rounds) => Effect.runPromise(holds(rounds)))
      return Effect.promise(() => fc.assert(property, { numRuns: scaled(400) }))
    }
  )

  it("marks are merged in any order, and again, to the same", () => {
    const { merge } = Taint.labels
    assert(merge !== undefined)
    const list = fc.subarray(["a", "b", "c"])
    const labels: fc.Arbitrary<Taint.Labels> = fc.record({
      arrivals: fc.nat(5),
      cleared: fc.nat(5),
      from: list,
      secrets: list,
      asked: fc.constant({})
    })
    const sorted = ({ arrivals, cleared, from, secrets }: Taint.Labels) => [
      arrivals,
      cleared,
      from.toSorted(),
      secrets.toSorted()
    ]
    fc.assert(
      fc.property(labels, labels, labels, (one, two, three) => {
        assert.deepStrictEqual(sorted(merge(one, two)), sorted(merge(two, one)))
        assert.deepStrictEqual(merge(merge(one, two), three), merge(one, merge(two, three)))
        const both = merge(one, two)
        assert.strictEqual(merge(both, two), both)
      })
    )
  })
})
