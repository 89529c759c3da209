/** Files that were checked out on Windows: lines that end with `\r\n` mean the same as lines with `\n`. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Agent, Backend } from "effect-deepagents"
import { AgentFile } from "effect-deepagents/agents"
import { ApplyPatch, MemoryBackend } from "effect-deepagents/backends"
import { McpConfigFile } from "effect-deepagents/mcp"
import { Skills } from "effect-deepagents/middleware"
import { HarnessProfile } from "effect-deepagents/profiles"
import { Policy } from "effect-deepagents/rules"
import { Chat, JsonlSessions } from "effect-deepagents/sessions"
import { MemoryStore, Storage } from "effect-deepagents/stores"
import { Cassette, TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"
import { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { Path } from "effect/Path"

const crlf = (text: string) => text.replaceAll("\n", "\r\n")

/** Both forms of a text are read alike. */
const alike = <A, E, R>(text: string, read: (text: string) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    assert.notStrictEqual(crlf(text), text)
    assert.deepStrictEqual(yield* read(crlf(text)), yield* read(text))
  })

/** Has all files below a folder end their lines as on Windows. */
const converted = Effect.fnUntraced(function* (folder: string) {
  const [fs, path] = [yield* FileSystem, yield* Path]
  const changed = yield* Effect.forEach(yield* fs.readDirectory(folder, { recursive: true }), (name) =>
    Effect.gen(function* () {
      const file = path.join(folder, name)
      if ((yield* fs.stat(file)).type !== "File") return 0
      const text = yield* fs.readFileString(file)
      yield* fs.writeFileString(file, crlf(text))
      return text.includes("\n") ? 1 : 0
    })
  )
  assert.isAbove(
    changed.reduce<number>((all, one) => all + one, 0),
    0
  )
})

const agent = Agent.make({ name: "helper", prompt: "You help." })

describe("lines that end as on Windows", () => {
  it.effect("files of agents, prompts included", () =>
    alike("---\nname: reviewer\ndescription: Reviews.\ntools: [ls]\n---\n\nYou review.\nWell.\n", (text) =>
      AgentFile.parse(text, { path: "reviewer.md" })
    )
  )

  it.effect("policies and profiles", () =>
    Effect.gen(function* () {
      yield* alike(
        "name: org\ntools:\n  execute:\n    - { ruling: refuse, reason: never }\n    - ask\n",
        Policy.fromYaml
      )
      yield* alike("model: qwen3\nexcludedTools: [grep]\n", HarnessProfile.fromYaml)
    })
  )

  it.effect("skills and ignore files", () =>
    alike("---\nname: notes\ndescription: Writes notes.\nallowed-tools: Read Grep\n---\n\n1. Read.\n", (text) =>
      Effect.gen(function* () {
        const backend = yield* Backend.Backend
        yield* backend.write("/skills/notes/SKILL.md", text)
        yield* backend.write("/.gitignore", text.includes("\r") ? "dist\r\n*.log\r\n" : "dist\n*.log\n")
        yield* backend.write("/dist/a", "")
        yield* backend.write("/a.log", "")
        const { entries } = yield* backend.glob({ pattern: "**/*" })
        return [yield* Skills.scan(["/skills"]), entries.map(({ path }) => path)]
      }).pipe(Effect.provide(MemoryBackend.layer()))
    )
  )

  it.effect("patches", () =>
    alike("*** Begin Patch\n*** Add File: /a\n+one\n*** Update File: /b\n@@\n-old\n+new\n*** End Patch\n", (text) =>
      Effect.fromResult(ApplyPatch.parse(text))
    )
  )

  it.live("configurations of servers, threads, facts and recordings", () =>
    Effect.gen(function* () {
      const [fs, path] = [yield* FileSystem, yield* Path]
      const folder = yield* fs.makeTempDirectoryScoped()
      const file = path.join(folder, ".mcp.json")
      yield* alike('{ // ours\n  "mcpServers": { "a": { "command": "x" }, }\n}\n', (text) =>
        Effect.andThen(fs.writeFileString(file, text), McpConfigFile.readFile(file))
      )

      const threads = path.join(folder, "threads")
      const turn = (answer: string) =>
        Effect.flatMap(Chat.make(agent, "ada"), (chat) => Effect.andThen(chat.send("Hello"), chat.history)).pipe(
          Effect.map((history) => history.length),
          Effect.provide([JsonlSessions.layer({ folder: threads }), TestChatModel.script([answer])])
        )
      assert.strictEqual(yield* turn("One."), 2)
      yield* converted(threads)
      assert.strictEqual(yield* turn("Two."), 4)
      assert.strictEqual(yield* turn("Three."), 6)

      const facts = path.join(folder, "facts")
      const remembered = <A, E>(use: (memory: MemoryStore.MemoryStore["Service"]) => Effect.Effect<A, E>) =>
        MemoryStore.MemoryStore.use(use).pipe(
          Effect.provide(Layer.provide(MemoryStore.layer, Storage.layerFile({ folder: facts })))
        )
      yield* remembered((memory) => memory.add("ada", { text: "Ada drinks tea" }))
      yield* converted(facts)
      assert.lengthOf(yield* remembered((memory) => memory.search("ada", { text: "tea" })), 1)

      const tapes = path.join(folder, "tapes")
      yield* fs.makeDirectory(tapes)
      const tape = path.join(tapes, "tape.jsonl")
      const asked = Effect.map(Agent.run(agent, "Hello"), ({ text }) => text)
      const recording = Layer.provide(Cassette.record(tape), TestChatModel.script(["From the tape."]))
      yield* Effect.provide(asked, recording)
      yield* converted(tapes)
      assert.strictEqual(yield* Effect.provide(asked, Cassette.replay(tape)), "From the tape.")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
