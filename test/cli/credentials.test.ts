import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { keepKey, keptKey } from "../../src/cli/internal/config/credentials.ts"
import type { Places } from "../../src/cli/internal/config/places.ts"

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "credentials-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)

describe("keys of providers", () => {
  it.effect("that several processes keep at once, the first time, can all be read", () =>
    Effect.gen(function* () {
      const data = yield* folder
      const places: Places = { data, config: data, project: data }
      const names = Array.from({ length: 8 }, (_, index) => `provider${index}`)
      yield* Effect.forEach(names, (name) => keepKey(places, name, Redacted.make(`key of ${name}`)), {
        concurrency: "unbounded"
      })
      for (const name of names) {
        const key = yield* keptKey(places, name)
        assert.strictEqual(key && Redacted.value(key), `key of ${name}`)
      }
      const left = yield* Effect.promise(() => readdir(join(data, "credentials")))
      assert.sameMembers(left, ["key", "sealed"])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
