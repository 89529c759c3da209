/** Invariants of several processes that share a storage, and of their ends by `kill -9`. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Context, Effect, Layer, Redacted } from "effect"
import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
import { bundle } from "../bundle.ts"
import { linesOf, runChild } from "../child.ts"
import { isFull } from "../scale.ts"
import { storage } from "./children/storage.ts"
import { folder } from "./places.ts"

/** Runs a process to its end; `onLine` may end it before. */
const run = (file: string, args: ReadonlyArray<string>, onLine?: (lines: number, kill: () => void) => void) =>
  Effect.map(
    runChild(bundle(new URL(`children/${file}`, import.meta.url)), args, (text, child) =>
      onLine?.(linesOf(text).length, () => child.kill("SIGKILL"))
    ),
    ({ code, text }) => ({ code, lines: linesOf(text) })
  )

/** The rows that must be there, and those that must not, by the printed operations. */
const expected = (lines: ReadonlyArray<string>) => {
  const removed = new Set(lines.filter((line) => line.startsWith("remove ")).map((line) => line.slice(7)))
  const put = lines.filter((line) => line.startsWith("put ")).map((line) => line.slice(4))
  return { put, removed, kept: put.filter((key) => !removed.has(key)) }
}

/** The table, until the test is over. */
const openTable = (kind: string, path: string) =>
  Effect.map(Layer.build(storage(kind, path)), (context) => Context.get(context, Storage.Storage).table("t"))

for (const kind of isFull ? ["file", "sqlite"] : ["file"]) {
  describe(`${kind} and processes`, () => {
    it.live(
      "kill -9 in the middle of writes loses nothing that was acknowledged, and a write is there wholly or not at all",
      Effect.fnUntraced(function* () {
        const path = yield* folder
        const all: Array<string> = []
        for (const name of ["a", "b", "c"]) {
          const { code, lines } = yield* run("write.ts", [kind, path, name, "5000"], (count, kill) => {
            if (count > 60) kill()
          })
          assert.strictEqual(code, null, "it was killed")
          all.push(...lines)
        }
        const { kept, put, removed } = expected(all)
        const table = yield* openTable(kind, path)
        const keys = new Set((yield* table.scan("s", { limit: 20_000 })).map(({ key }) => key))
        // The last of each process may have been removed with nobody told.
        const lasts = new Set(["a", "b", "c"].map((name) => put.findLast((key) => key.startsWith(name))))
        for (const key of kept) assert.isTrue(keys.has(key) || lasts.has(key), key)
        for (const key of removed) assert.isFalse(keys.has(key), key)
        for (const key of put) assert.isTrue(keys.has(`${key}-twin`), key)
        const twins = [...keys].filter((key) => key.endsWith("-twin")).length
        const counter = Number(yield* table.get("s", "counter"))
        assert.isAtLeast(counter, put.length)
        assert.isAtMost(counter, put.length + 3)
        assert.isAtMost(twins, put.length + 3)
      }),
      60_000
    )

    it.live(
      "four processes that write at once lose nothing of each other",
      Effect.fnUntraced(function* () {
        const path = yield* folder
        const names = ["a", "b", "c", "d"]
        const ended = yield* Effect.all(
          names.map((name) => run("write.ts", [kind, path, name, "40"])),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          ended.map(({ code }) => code),
          [0, 0, 0, 0]
        )
        const { kept, put, removed } = expected(ended.flatMap(({ lines }) => lines))
        assert.strictEqual(put.length, 160)
        assert.strictEqual(removed.size, 120)
        const table = yield* openTable(kind, path)
        assert.strictEqual(yield* table.get("s", "counter"), "160")
        const keys = (yield* table.scan("s", { limit: 20_000 })).map(({ key }) => key)
        assert.sameMembers(keys, [...kept, ...put.map((key) => `${key}-twin`), "counter"])
      }),
      60_000
    )

    it.live(
      "of processes that find a token expired, one refreshes it",
      Effect.fnUntraced(function* () {
        const path = yield* folder
        const key = CredentialKey.layerConfig(Config.Redacted("K")).pipe(
          Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ K: Buffer.alloc(32, 1).toString("base64") })))
        )
        yield* CredentialStore.CredentialStore.use((store) =>
          store.set(
            "ada",
            "calendar",
            CredentialStore.OAuthToken.make({ accessToken: Redacted.make("old"), expiresAt: 0 })
          )
        ).pipe(Effect.provide(Layer.provide(CredentialStore.layer, [key, storage(kind, path)])))
        const ended = yield* Effect.all(
          ["a", "b", "c"].map((name) => run("refresh.ts", [kind, path, name])),
          { concurrency: "unbounded" }
        )
        const asked = readFileSync(`${path}/asked`, "utf8").trim().split("\n")
        assert.strictEqual(asked.length, 1)
        for (const { lines } of ended) assert.deepStrictEqual(lines, [`token of ${asked[0]}`])
      }),
      60_000
    )
  })
}
