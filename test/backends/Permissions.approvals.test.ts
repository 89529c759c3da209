/** Requests of rules reach the approvals of the run, before anything is written. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Agent, Approval, Backend, Checkpoint, Message, Middleware, Sandbox, Tool } from "effect-deepagents"
import { ApplyPatch, CompositeBackend, FileTools, MemoryBackend, Permissions } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"

const rules: Permissions.Options["rules"] = [
  { operations: ["read", "write"], paths: ["/secret"], ruling: "refuse" },
  { operations: ["write"], paths: ["/config/**"], ruling: "ask" }
]

const files = { "/config/a.json": "one\n", "/config/b.json": "two\n", "/open.txt": "open\n", "/secret": "x" }

/** The requests to approvals, and their answers. */
const approvals = (decide: (request: Approval.Request) => Effect.Effect<Approval.Decision>) => {
  const requests: Array<Approval.Request> = []
  const layer = Layer.succeed(Approval.Approvals, {
    decide: (request) =>
      Effect.suspend(() => {
        requests.push(request)
        return decide(request)
      })
  })
  return { requests, layer }
}

const running = (
  call: { readonly name: string; readonly arguments: Record<string, string> },
  tools: ReadonlyArray<Tool.Tool<never>> = []
) =>
  Agent.run(
    Agent.make({
      name: "agent",
      prompt: "You are tested.",
      tools: [...FileTools.make({ only: ["write_file", "move_file"] }), ApplyPatch.make(), ...tools]
    }),
    "Go"
  ).pipe(
    Effect.provide(TestChatModel.script([TestChatModel.calls([call]), "done"])),
    Effect.map(({ messages }) => messages.flatMap((one) => (one.role === "tool" ? [one] : [])))
  )

const layerOf = (backend: Backend.Service) => Layer.succeed(Backend.Backend, backend)

/** A backend behind rules, and its files. */
const guarded = Effect.fnUntraced(function* () {
  const inner = yield* MemoryBackend.make({ files })
  const backend = yield* Permissions.wrap(inner, { rules })
  const contents = Effect.gen(function* () {
    const { entries } = yield* inner.glob({ pattern: "**" })
    const read = yield* inner.download(entries.map(({ path }) => path))
    return Object.fromEntries(
      read.flatMap((one) => (one.ok ? [[one.path, new TextDecoder().decode(one.value)] as const] : []))
    )
  })
  return { inner, backend, contents }
})

const write = (path: string, content = "new") => ({
  name: "write_file",
  arguments: { file_path: path, content }
})

describe("rules that ask", () => {
  it.effect("ask the approvals of the run, with path and operation; nothing is written before", () =>
    Effect.gen(function* () {
      const { backend, contents } = yield* guarded()
      const asked = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<boolean>()
      const { layer, requests } = approvals((request) =>
        Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer)).pipe(
          Effect.map((good) => (good ? Approval.approve(request) : Approval.reject(request)))
        )
      )
      const run = yield* Effect.forkChild(
        running(write("/config/new.json")).pipe(Effect.provide([layer, layerOf(backend)]))
      )
      yield* Deferred.await(asked)
      assert.deepStrictEqual(yield* contents, files)
      const [request] = requests
      assert.deepStrictEqual(request?.arguments, {
        operation: "write",
        path: "/config/new.json",
        content: "new",
        accesses: [{ operation: "write", path: "/config/new.json" }]
      })
      assert.strictEqual(request?.description, "write_file: write /config/new.json")
      assert.deepStrictEqual(
        [request?.toolName, request?.path, request?.allow],
        ["write_file", ["agent"], ["approve", "reject"]]
      )
      assert.notStrictEqual(request?.callId, "")
      yield* Deferred.succeed(answer, true)
      const [result] = yield* Fiber.join(run)
      assert.isFalse(result?.isError)
      assert.strictEqual((yield* contents)["/config/new.json"], "new")
    })
  )

  it.effect("tells the model a refusal with its reason; a decision on another request approves nothing", () =>
    Effect.gen(function* () {
      const { backend, contents } = yield* guarded()
      const decisions: ReadonlyArray<(request: Approval.Request) => Approval.Decision> = [
        (request) => Approval.reject(request, "not on Fridays"),
        (request) => Approval.reject(request),
        (request) => Approval.respond(request, "fine"),
        (request) => Approval.edit(request, {}),
        () => Approval.approve({ id: "another" })
      ]
      for (const [index, decide] of decisions.entries()) {
        const { layer } = approvals((request) => Effect.succeed(decide(request)))
        const [result] = yield* running(write("/config/new.json")).pipe(Effect.provide([layer, layerOf(backend)]))
        assert.isTrue(result?.isError)
        if (result !== undefined && index === 0) assert.include(Message.text(result), "not on Fridays")
        assert.deepStrictEqual(yield* contents, files)
      }
    })
  )

  it.effect(
    "asks nobody about allowed or refused paths, nor by the middleware of a run; without approvals, it refuses",
    () =>
      Effect.gen(function* () {
        const { backend, contents } = yield* guarded()
        const { layer, requests } = approvals((request) => Effect.succeed(Approval.approve(request)))
        for (const path of ["/new.txt", "/secret"])
          yield* running(write(path)).pipe(Effect.provide([layer, layerOf(backend)]))
        const failures: Array<string> = []
        const writing = Middleware.make({
          name: "writing",
          beforeModel: () =>
            Effect.matchEffect(backend.write("/config/new.json", "x"), {
              onFailure: ({ message }) => Effect.sync(() => void failures.push(message)),
              onSuccess: () => Effect.void
            })
        })
        yield* Agent.run(Agent.make({ name: "a", prompt: "", middleware: [writing] }), "Go").pipe(
          Effect.provide([TestChatModel.script(["done"]), layer])
        )
        assert.include(failures[0], "nobody is there to ask")
        assert.deepStrictEqual(requests, [])
        const [result] = yield* running(write("/config/new.json")).pipe(Effect.provide(layerOf(backend)))
        assert.isTrue(result?.isError)
        assert.deepStrictEqual(yield* contents, { ...files, "/new.txt": "new" })
      })
  )

  it.effect("a rule for commands asks in the same way, and the command does not run before", () =>
    Effect.gen(function* () {
      const { inner } = yield* guarded()
      const ran: Array<string> = []
      const execute = (command: string) =>
        Effect.sync(() => {
          ran.push(command)
          return { output: "", exitCode: 0, truncated: false }
        })
      const sandbox: Sandbox.Service = {
        ...inner,
        id: "fake",
        reaches: () => true,
        execute,
        executeStream: (command) =>
          Stream.fromEffect(Effect.map(execute(command), () => ({ _tag: "Exited", exitCode: 0, truncated: false })))
      }
      const wrapped = yield* Permissions.wrapSandbox(sandbox, { rules: [{ operations: ["execute"], ruling: "ask" }] })
      const { layer, requests } = approvals((request) =>
        Effect.sync(() => {
          assert.deepStrictEqual(ran, [])
          return Approval.approve(request)
        })
      )
      const agent = Agent.make({ name: "agent", prompt: "Go", tools: FileTools.make({ only: [], execute: true }) })
      yield* Agent.run(agent, "Go").pipe(
        Effect.provide(
          TestChatModel.script([TestChatModel.calls([{ name: "execute", arguments: { command: "ls\n" } }]), "done"])
        ),
        Effect.provide([layer, Sandbox.layer(Effect.succeed(wrapped))])
      )
      assert.deepStrictEqual(ran, ["ls\n"])
      assert.strictEqual(requests[0]?.description, "execute: execute ls\\n")
      assert.strictEqual(requests[0]?.arguments["command"], "ls\n")
    })
  )

  it.effect("escapes hidden characters of a path for the reader of the question", () =>
    Effect.gen(function* () {
      const { backend } = yield* guarded()
      const { layer, requests } = approvals((request) => Effect.succeed(Approval.reject(request)))
      yield* running(write("/config/a\n\u001b[2J\u202eb")).pipe(Effect.provide([layer, layerOf(backend)]))
      assert.strictEqual(requests[0]?.description, "write_file: write /config/a\\n\\u{001b}[2J\\u{202e}b")
    })
  )
})

const patch = {
  name: "apply_patch",
  arguments: {
    input: [
      "*** Begin Patch",
      "*** Update File: /open.txt",
      "@@",
      "-open",
      "+changed",
      "*** Add File: /config/c.json",
      "+three",
      "*** Update File: /config/a.json",
      "*** Move to: /config/moved.json",
      "@@",
      "-one",
      "+1",
      "*** Delete File: /config/b.json",
      "*** End Patch"
    ].join("\n")
  }
}

const patched = {
  "/config/c.json": "three\n",
  "/config/moved.json": "1\n",
  "/open.txt": "changed\n",
  "/secret": "x"
}

describe("a patch", () => {
  it.effect("is asked about once and as a whole, before any file is written", () =>
    Effect.gen(function* () {
      const { backend, contents } = yield* guarded()
      const { layer, requests } = approvals((request) =>
        Effect.map(Effect.orDie(contents), (now) => {
          assert.deepStrictEqual(now, files)
          return Approval.approve(request)
        })
      )
      const [result] = yield* running(patch).pipe(Effect.provide([layer, layerOf(backend)]))
      assert.isFalse(result?.isError)
      assert.deepStrictEqual(yield* contents, patched)
      assert.strictEqual(requests.length, 1)
      assert.strictEqual(requests[0]?.arguments["patch"], patch.arguments.input)
      assert.strictEqual(
        requests[0]?.description,
        "apply_patch: write /config/c.json, write /config/a.json, write /config/moved.json, write /config/b.json"
      )
    })
  )

  it.effect("that is refused changes nothing", () =>
    Effect.gen(function* () {
      const { backend, contents } = yield* guarded()
      const { layer, requests } = approvals((request) => Effect.succeed(Approval.reject(request, "no")))
      const [result] = yield* running(patch).pipe(Effect.provide([layer, layerOf(backend)]))
      assert.isTrue(result?.isError)
      assert.deepStrictEqual(yield* contents, files)
      assert.strictEqual(requests.length, 1)
    })
  )

  it.effect("that breaks in the middle is taken back without another question", () =>
    Effect.gen(function* () {
      const { contents, inner } = yield* guarded()
      const broken: Backend.Service = {
        ...inner,
        delete: (path, options) =>
          path === "/config/b.json"
            ? Effect.andThen(inner.write("/other", ""), inner.ls("/none")).pipe(Effect.asVoid)
            : inner.delete(path, options)
      }
      const backend = yield* Permissions.wrap(broken, { rules })
      const { layer, requests } = approvals((request) => Effect.succeed(Approval.approve(request)))
      const [result] = yield* running(patch).pipe(Effect.provide([layer, layerOf(backend)]))
      assert.isTrue(result?.isError)
      const { "/other": _, ...left } = yield* contents
      assert.deepStrictEqual(left, files)
      assert.strictEqual(requests.length, 1)
    })
  )

  it.effect("that has a file that may not be written is not asked about", () =>
    Effect.gen(function* () {
      const { backend, contents } = yield* guarded()
      const { layer, requests } = approvals((request) => Effect.succeed(Approval.approve(request)))
      const input = patch.arguments.input.replace("/open.txt", "/secret")
      yield* running({ name: "apply_patch", arguments: { input } }).pipe(Effect.provide([layer, layerOf(backend)]))
      assert.deepStrictEqual(requests, [])
      assert.deepStrictEqual(yield* contents, files)
    })
  )

  it.effect("an approval for a patch does not cover later changes", () =>
    Effect.gen(function* () {
      const { backend } = yield* guarded()
      const { layer, requests } = approvals((request) => Effect.succeed(Approval.approve(request)))
      yield* running(patch).pipe(Effect.provide([layer, layerOf(backend)]))
      yield* running(write("/config/b.json")).pipe(Effect.provide([layer, layerOf(backend)]))
      assert.strictEqual(requests.length, 2)
    })
  )

  it.effect("over a composite asks by the rules of its parts, before any of them is changed", () =>
    Effect.gen(function* () {
      const { backend, contents, inner } = yield* guarded()
      const base = yield* MemoryBackend.make({ files: { "/x.txt": "x\n" } })
      const composite = yield* Effect.map(
        Layer.build(CompositeBackend.layer({ default: layerOf(base), routes: { "/files": layerOf(backend) } })),
        (context) => Layer.succeedContext(context)
      )
      const input = patch.arguments.input
        .replaceAll(/: \//g, ": /files/")
        .replace(
          "*** End Patch",
          "*** Update File: /x.txt\n*** Move to: /files/config/x.txt\n@@\n-x\n+y\n*** End Patch"
        )
      const no = approvals((request) => Effect.succeed(Approval.reject(request)))
      yield* running({ name: "apply_patch", arguments: { input } }).pipe(Effect.provide([no.layer, composite]))
      assert.deepStrictEqual(yield* contents, files)
      const yes = approvals((request) => Effect.succeed(Approval.approve(request)))
      const [result] = yield* running({ name: "apply_patch", arguments: { input } }).pipe(
        Effect.provide([yes.layer, composite])
      )
      assert.isFalse(result?.isError)
      assert.strictEqual(yes.requests.length, 1)
      assert.strictEqual((yield* inner.read("/config/x.txt")).kind, "text")
    })
  )

  it.effect("end a run that can be suspended; the tool's actions before the question happen once", () =>
    Effect.gen(function* () {
      const { backend, contents } = yield* guarded()
      const twoFiles = Tool.make("two_files", {
        description: "Edits one file, then writes another",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const files = yield* Backend.Backend
          yield* files.edit("/open.txt", [{ old: "open", new: "opened" }])
          const written = yield* files.write("/config/new.json", "new")
          return `${written.path} ${written.created}`
        })
      })
      const provided = Effect.provide(layerOf(backend))
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools: [twoFiles],
        middleware: [Middleware.make({ asks: true, name: "suspendable" })]
      })
      const first = yield* provided(Agent.run(agent, "Go"))
      const [request] = first.pending
      assert(request !== undefined)
      assert.deepInclude(request, { toolName: "two_files", allow: ["approve", "reject"] })
      assert.deepInclude(request.arguments, { operation: "write", path: "/config/new.json", content: "new" })
      assert.deepInclude(yield* contents, { "/open.txt": "opened\n" })
      const json = JSON.parse(JSON.stringify(Checkpoint.encode(first)))
      const decisions = [Approval.approve(request, { always: true })]
      const checkpoint = yield* Checkpoint.decode(json)
      const second = yield* provided(Agent.resume(agent, { checkpoint, decisions }))
      assert.deepStrictEqual(
        second.messages.flatMap((one) => (one.role === "tool" ? [Message.text(one)] : [])),
        ["/config/new.json true"]
      )
      assert.deepInclude(yield* contents, { "/open.txt": "opened\n", "/config/new.json": "new" })
      assert.deepStrictEqual(second.state[Approval.always.name], [
        JSON.stringify(["permissions", "/config/**", "write", "/config/new.json"])
      ])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "two_files", arguments: {} }]), "done"])))
  )
})

describe("the deciders of rules", () => {
  const ask = (path: string, who: string): Permissions.Options["rules"][number] => ({
    operations: ["write"],
    paths: [path],
    ruling: "ask",
    name: who,
    deciders: [who]
  })
  const deciding = (who: string) =>
    approvals((request) =>
      Effect.succeed(Approval.decidedBy(Approval.approve(request, { always: true }), request, { by: { id: who } }))
    )

  it.effect("all decide on a tree below which several rules ask", () =>
    Effect.gen(function* () {
      for (const folder of ["/config/b.json", "/config"]) {
        const inner = yield* MemoryBackend.make({ files })
        const rules = [ask("/config/a.json", "ada"), ask(folder, "bob")]
        const backend = yield* Permissions.wrap(inner, { rules })
        const { layer } = deciding("ada")
        const call = { name: "delete_file", arguments: { file_path: "/config", recursive: true } }
        const agent = Agent.make({ name: "agent", prompt: "", tools: FileTools.make({ only: ["delete_file"] }) })
        const { messages } = yield* Agent.run(agent, "Go").pipe(
          Effect.provide([TestChatModel.script([TestChatModel.calls([call]), "done"]), layer, layerOf(backend)])
        )
        assert.include(messages.map(Message.text).join(), "no decider in common")
        assert.lengthOf((yield* inner.ls("/config")).entries, 2)
      }
    })
  )

  it.effect("decide on their own rules only, also with approvals for good", () =>
    Effect.gen(function* () {
      const inner = yield* MemoryBackend.make({ files })
      const lower = yield* Permissions.wrap(inner, { rules: [ask("/config/**", "bob")] })
      const backend = yield* Permissions.wrap(lower, { rules: [ask("/config/**", "ada")] })
      const { layer, requests } = deciding("ada")
      const [result] = yield* running(write("/config/new.json")).pipe(Effect.provide([layer, layerOf(backend)]))
      assert.deepStrictEqual(
        requests.map(({ rule }) => rule),
        ["ada", "bob"]
      )
      assert.include(result === undefined ? "" : Message.text(result), 'may be decided by bob, not by "ada"')
    })
  )

  it.effect("belong to the rule when the run is resumed", () =>
    Effect.gen(function* () {
      const inner = yield* MemoryBackend.make({ files })
      const rule: Permissions.Options["rules"][number] = { operations: ["write"], paths: ["/config/**"], ruling: "ask" }
      const open = yield* Permissions.wrap(inner, { rules: [rule] })
      const strict = yield* Permissions.wrap(inner, { rules: [{ ...rule, deciders: ["bob"] }] })
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools: FileTools.make({ only: ["write_file"] }),
        middleware: [Middleware.make({ name: "Asking", asks: true })]
      })
      const model = TestChatModel.script([TestChatModel.calls([write("/config/new.json")])], { exhaustive: false })
      const first = yield* Agent.run(agent, "Go").pipe(Effect.provide([model, layerOf(open)]))
      const decisions = first.pending.map((request) => Approval.approve(request))
      const second = yield* Agent.resume(agent, { checkpoint: first, decisions }).pipe(
        Effect.provide([model, layerOf(strict)])
      )
      assert.deepStrictEqual(
        second.pending.map(({ deciders }) => deciders),
        [["bob"]]
      )
    })
  )
})
