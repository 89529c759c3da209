import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CompositeBackend, FileTools, MemoryBackend } from "../../src/backends/index.ts"
import { Agent, Backend, type Json, Tool } from "../../src/index.ts"
import { Mcp, McpBackend, McpServers } from "../../src/mcp/index.ts"
import { Skills, Taint } from "../../src/middleware/index.ts"
import { TestChatModel } from "../../src/testing/index.ts"
import { plain, scripted } from "./scripted.ts"
import { everything, layer } from "./servers.ts"

it.live(
  "resources are files that can be read and searched, and not written",
  () =>
    Effect.gen(function* () {
      const servers = yield* McpServers.McpServers
      const backend = yield* Backend.Backend
      const folder = "/everything/demo/resource/static/document"
      const { entries } = yield* backend.ls(folder)
      assert.include(
        entries.map(({ path }) => path),
        `${folder}/features.md`
      )
      const file = yield* backend.read(`${folder}/features.md`)
      assert.strictEqual(file.kind, "text")
      const found = yield* backend.grep({ pattern: "everything", ignoreCase: true, mode: "files" })
      assert.isNotEmpty(found.files)
      // A resource is text from outside, by any way of reading.
      const wipe = Tool.make("wipe", {
        description: "Wipes",
        parameters: {},
        annotations: { destructive: true },
        execute: () => Effect.succeed("wiped")
      })
      const reading = (name: string, args: Json.JsonObject) =>
        Agent.run(
          Agent.make({
            name: "a",
            prompt: "",
            tools: [wipe, ...FileTools.make()],
            middleware: [Taint.make({ servers: ["everything"] }), Mcp.make()]
          }),
          "go"
        ).pipe(
          Effect.map(({ pending }) => pending.map(({ toolName }) => toolName)),
          Effect.provide(
            TestChatModel.script(
              [TestChatModel.calls([{ name, arguments: args }]), TestChatModel.calls([{ name: "wipe" }]), "done"],
              { exhaustive: false }
            )
          )
        )
      assert.deepStrictEqual(yield* reading("ls", { path: "/" }), [])
      for (const [name, args] of [
        ["read_file", { file_path: `${folder}/features.md` }],
        ["grep", { pattern: "everything" }],
        ["ls", { path: folder }],
        ["list_mcp_resources", {}],
        ["read_mcp_resource", { server: "everything", uri: "demo://resource/static/document/features.md" }]
      ] as const) {
        assert.deepStrictEqual(yield* reading(name, args), ["wipe"], name)
      }
      const error = yield* Effect.flip(backend.write(`${folder}/new.md`, "x"))
      assert.strictEqual(error.reason._tag, "Unsupported")
      const [prompt] = (yield* servers.prompts).filter(({ name }) => name === "args-prompt")
      const messages = yield* prompt?.get({ city: "Ulm" }) ?? Effect.die("there is no such prompt")
      assert.include(JSON.stringify(messages), "Ulm")
      const names = yield* servers.complete(
        "everything",
        { prompt: "completable-prompt" },
        { name: "department", value: "E" }
      )
      assert.include(names, "Engineering")
    }).pipe(Effect.provide(Layer.provideMerge(McpBackend.layer, layer({ everything })))),
  30_000
)

it.live("resources of servers whose names are one folder's have a file each", () => {
  const { layer: server } = scripted(
    plain(
      false,
      () => [],
      () => undefined
    )
  )
  return Effect.gen(function* () {
    const servers = yield* McpServers.McpServers
    const names = ["a b?", "a b*", "a b_", "a b<"]
    const resources = names.map((name) => ({
      server: name,
      uri: "demo://text",
      isTemplate: false,
      name: "text",
      description: "",
      mimeType: undefined,
      size: undefined
    }))
    const backend = McpBackend.make({
      ...servers,
      resources: () => Effect.succeed(resources),
      read: (name, uri) => Effect.succeed([{ uri, mimeType: undefined, text: name }])
    })
    const { entries } = yield* backend.glob({ pattern: "**" })
    const read = yield* Effect.forEach(entries, ({ path }) => backend.read(path))
    assert.sameMembers(
      read.map((file) => ("text" in file ? file.text.trim() : "")),
      names
    )
  }).pipe(Effect.provide(server))
})

it.live("skills of a server are skills of an agent, and text from outside", () => {
  const uri = "skill://greet/SKILL.md"
  const text = "---\nname: greet\ndescription: Greets people\n---\n\nSay hello."
  const { layer: server } = scripted(
    plain(
      false,
      () => [],
      ({ id, method }, { reply, say }) => {
        if (method === "resources/list") reply({ resources: [{ uri, name: "greet" }] })
        else if (method === "resources/read") reply({ contents: [{ uri, text }] })
        else if (id !== undefined) say({ id, error: { code: -32601, message: "no" } })
      }
    )
  )
  const wipe = Tool.make("wipe", {
    description: "Wipes",
    parameters: {},
    annotations: { destructive: true },
    execute: () => Effect.succeed("wiped")
  })
  const agent = Agent.make({
    name: "a",
    prompt: "",
    tools: [wipe],
    middleware: [Taint.make(), Skills.make({ sources: ["/mcp/s/skill"] })]
  })
  const files = CompositeBackend.layer({ default: MemoryBackend.layer(), routes: { "/mcp/": McpBackend.layer } })
  const model = TestChatModel.script([
    TestChatModel.calls([{ name: "use_skill", arguments: { name: "greet" } }]),
    TestChatModel.calls([{ name: "wipe" }])
  ])
  return Effect.gen(function* () {
    const { messages, pending } = yield* Agent.run(agent, "Greet")
    assert.include(JSON.stringify(messages), "Say hello.")
    assert.deepStrictEqual(
      pending.map(({ toolName }) => toolName),
      ["wipe"]
    )
    const [first] = yield* TestChatModel.requests
    assert.include(JSON.stringify(first), "Greets people")
  }).pipe(Effect.provide([files.pipe(Layer.provide(server)), model]))
})
