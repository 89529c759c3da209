/**
 * The doors of the stores: options that are read from the configuration, and spans.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Effect, Layer, Redacted, Stream, Tracer } from "effect"
import { Message } from "effect-deepagents"
import { JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { CredentialKey, CredentialStore, MemoryStore, Storage } from "effect-deepagents/stores"
import { folder } from "./places.ts"

const withNames = (values: { readonly [name: string]: string }) =>
  Layer.succeed(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(values))

describe("doors", () => {
  it.live(
    "folders and files are read from the configuration, and what is not there is named",
    Effect.fnUntraced(function* () {
      const at = yield* folder
      const options = { folder: Config.String("FOLDER"), fsync: undefined }
      const jsonl = JsonlSessions.layerConfig(options)
      const sqlite = SqliteSessions.layerConfig({ file: Config.String("FILE"), synchronous: "full" })
      const files = Storage.layerFileConfig(options)
      const values = withNames({ FOLDER: join(at, "threads"), FILE: join(at, "threads.db") })
      yield* Layer.build(Layer.mergeAll(jsonl, files).pipe(Layer.provide(NodeServices.layer), Layer.provide(values)))
      yield* Layer.build(Layer.provide(sqlite, values))
      assert.isTrue(existsSync(join(at, "threads")))
      assert.isTrue(existsSync(join(at, "threads.db")))
      const error = yield* Effect.flip(Layer.build(Layer.provide(sqlite, withNames({}))))
      assert.include(String(error), "FILE")
    }, Effect.scoped)
  )

  it.effect("operations of stores are spans", () => {
    const names: Array<string> = []
    const tracer = Tracer.make({
      span: (options) => {
        names.push(options.name)
        return new Tracer.NativeSpan(options)
      }
    })
    return Effect.gen(function* () {
      const sessions = yield* SessionStore.SessionStore
      yield* sessions.create({ threadId: "t" })
      const entry = { _tag: "Message", message: Message.human("hello") } as const
      yield* sessions.append("t", { leaf: null, entries: [{ id: "1", entry }] })
      yield* sessions.load("t")
      yield* Stream.runDrain(sessions.export("t"))
      const memory = yield* MemoryStore.MemoryStore
      yield* memory.add("n", { text: "tea" })
      yield* memory.search("n", {})
      yield* Stream.runDrain(memory.facts("n"))
      const credentials = yield* CredentialStore.CredentialStore
      const key = CredentialStore.ApiKey.make({ key: Redacted.make("secret") })
      yield* credentials.set("n", "a", key)
      yield* credentials.refreshed("n", "a", { refresh: () => Effect.succeed(key) })
      assert.deepStrictEqual(names, [
        "SessionStore.create",
        "SessionStore.append",
        "SessionStore.load",
        "SessionStore.export",
        "MemoryStore.add",
        "MemoryStore.search",
        "MemoryStore.facts",
        "CredentialStore.set",
        "CredentialStore.refreshed"
      ])
    }).pipe(
      Effect.provide(
        Layer.mergeAll(
          MemorySessions.layer,
          Layer.provide(MemoryStore.layer, Storage.layerMemory),
          Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])
        )
      ),
      Effect.withTracer(tracer)
    )
  })
})
