import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Backend } from "../../src/index.ts"
import { McpBackend, McpServers } from "../../src/mcp/index.ts"
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
