/**
 * Effect's own users of `SqlClient` on ours: the storages of a cluster, and the journal of events.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { ClusterSchema, Entity, MessageStorage, SingleRunner } from "effect/cluster"
import { Digest } from "effect/crypto"
import { EventJournal, SqlEventJournal } from "effect/eventlog"
import { Rpc } from "effect/rpc"
import { SqlClient } from "effect/sql"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "sqlite-cluster-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const Add = Rpc.make("Add", {
  payload: { id: Schema.String, by: Schema.Int },
  success: Schema.Int,
  primaryKey: ({ id }) => id
}).annotate(ClusterSchema.Persisted, true)
const Counter = Entity.make("Counter", [Add])

it.live(
  "carries a cluster's messages and runners: a message that was answered is answered alike after a restart",
  Effect.fnUntraced(function* () {
    const file = join(yield* folder, "cluster.db")
    let handled = 0
    const handler = Counter.toLayer({ Add: ({ payload }) => Effect.sync(() => ++handled * 100 + payload.by) })
    const cluster = () =>
      handler.pipe(
        Layer.provideMerge(SingleRunner.layer({ runnerStorage: "sql" })),
        Layer.provideMerge(SqliteClient.layer({ file })),
        Layer.provide(Digest.layerWebCrypto),
        Layer.fresh
      )
    const add = (id: string, by: number) => Effect.flatMap(Counter.client, (client) => client("one").Add({ id, by }))
    const first = Effect.all([add("a", 1), add("b", 2), add("a", 1)])
    expect(yield* Effect.provide(first, cluster())).toEqual([101, 202, 101])
    const second = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* MessageStorage.MessageStorage
      return [yield* add("a", 1), yield* add("c", 3), (yield* sql`SELECT * FROM cluster_messages`).length]
    })
    expect(yield* Effect.provide(second, cluster())).toEqual([101, 303, 3])
  }),
  30_000
)

it.live(
  "carries a journal of events",
  Effect.fnUntraced(function* () {
    const file = join(yield* folder, "events.db")
    const journal = SqlEventJournal.layer().pipe(Layer.provide(SqliteClient.layer({ file })))
    const entries = Effect.gen(function* () {
      const events = yield* EventJournal.EventJournal
      yield* events.write({
        event: "Said",
        primaryKey: "ada",
        payload: new Uint8Array([1, 2]),
        effect: () => Effect.void
      })
      return yield* events.entries
    })
    const [entry] = yield* Effect.provide(entries, journal)
    expect([entry?.event, entry?.payload]).toEqual(["Said", new Uint8Array([1, 2])])
  })
)
