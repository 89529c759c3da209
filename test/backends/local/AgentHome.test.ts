import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { Backend, Sandbox } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import * as AgentHome from "effect-deepagents/backends/AgentHome"
import * as LocalShell from "effect-deepagents/backends/LocalShell"

describe("AgentHome", () => {
  it.live("is the user's folder for this agent, made for its owner only, beside the other files", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      yield* Effect.gen(function* () {
        const backend = yield* Backend.Backend
        yield* backend.write("/agent/agent.md", "likes tea")
        yield* backend.write("/work.md", "work")
      }).pipe(Effect.provide(AgentHome.layer({ agentId: "coder", folder, files: MemoryBackend.layer() })))
      assert.strictEqual(yield* fs.readFileString(`${folder}/coder/agent.md`), "likes tea")
      assert.deepStrictEqual(yield* fs.readDirectory(`${folder}/coder`), ["agent.md"])
      assert.strictEqual((yield* fs.stat(`${folder}/coder`)).mode & 0o777, 0o700)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("an id that is no name is refused before anything is made; commands go on in the sandbox", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      for (const agentId of ["../x", "", ".", "a/b", "a".repeat(65)]) {
        const error = yield* Effect.flip(
          Effect.provide(
            Backend.Backend,
            AgentHome.layer({ agentId, folder: `${folder}/homes`, files: MemoryBackend.layer() })
          )
        )
        assert.strictEqual(error._tag, "BackendError")
      }
      assert.isFalse(yield* fs.exists(`${folder}/homes`))
      const root = yield* fs.makeTempDirectoryScoped()
      const ran = yield* Sandbox.Sandbox.use((sandbox) => sandbox.execute("echo hi")).pipe(
        Effect.provide(AgentHome.layerSandbox({ agentId: "coder", folder, files: LocalShell.layer({ root }) }))
      )
      assert.strictEqual(ran.output, "hi\n")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
