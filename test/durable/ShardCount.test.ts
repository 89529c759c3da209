/** A cluster keeps the number of shards that it began with: another one is refused before any message is lost. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { ShardCount } from "effect-deepagents/durable"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { SingleRunner } from "effect/cluster"
import { sqlite } from "../sessions/places.ts"

const start = (file: string, shardsPerGroup: number) =>
  Effect.scoped(
    Layer.build(
      ShardCount.layer.pipe(
        Layer.provide(SingleRunner.layer({ runnerStorage: "memory", shardingConfig: { shardsPerGroup } })),
        Layer.provide([SqliteClient.layer({ file }), NodeCrypto.layerDigest])
      )
    )
  )

describe("ShardCount", () => {
  it.live("lets the number in that the database began with, and refuses another", () =>
    Effect.gen(function* () {
      const file = yield* sqlite.place
      yield* start(file, 300)
      yield* start(file, 300)
      for (const configured of [299, 301, 30]) {
        const failure = yield* Effect.flip(start(file, configured))
        assert.deepInclude(failure, { _tag: "ShardCountChanged", group: "default", stored: 300, configured })
        assert.include(String(failure), "set SHARDS_PER_GROUP=300")
      }
      yield* start(file, 300)
    })
  )

  it.live("lets processes that start at once agree on one number", () =>
    Effect.gen(function* () {
      const file = yield* sqlite.place
      const exits = yield* Effect.forEach([30, 40, 30, 40], (count) => Effect.exit(start(file, count)), {
        concurrency: "unbounded"
      })
      assert.lengthOf(exits.filter(Exit.isSuccess), 2)
    })
  )
})
