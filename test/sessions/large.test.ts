import * as NodeServices from "@effect/platform-node/NodeServices"
/** Appends of tens of megabytes: other work gets its turn of the event loop meanwhile, and the stored entries are whole. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Message } from "effect-deepagents"
import { JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import * as fc from "fast-check"
import { encode, measure, pieces, stringify } from "../../src/support/json/jsonPieces.ts"
import { isFull } from "../scale.ts"
import { onPostgres } from "./children/postgres.ts"
import { aSchema, folder, Postgres } from "./places.ts"

const size = 12_500_000
const text = 'é "lorem" ipsum\n'.repeat(size / 16)

const large = (count: number): ReadonlyArray<SessionStore.NewEntry> =>
  Array.from({ length: count }, (_, n) => ({
    id: `large-${n}`,
    entry: { _tag: "Message", message: Message.human(text, { id: `m${n}` }) }
  }))

/** Counts how often the event loop comes round during an effect. */
const turnsOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    let turns = 0
    let isOver = false
    const count = () => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    return Effect.map(
      Effect.ensuring(
        effect,
        Effect.sync(() => (isOver = true))
      ),
      () => turns
    )
  })

/** Entries of 12.5 MB each. */
const count = isFull ? 4 : 2

/** Appends large entries: no more than a piece is written in one turn. `least` is how many turns four of them take. */
const appended = (least: number) =>
  Effect.gen(function* () {
    const store = yield* SessionStore.SessionStore
    yield* store.create({ threadId: "t" })
    const turns = yield* turnsOf(store.append("t", { leaf: null, entries: large(count) }))
    assert.isAtLeast(turns, (least * count) / 4)
    for (let n = 0; n < count; n++) {
      const { entries } = yield* store.load("t", { from: `large-${n}`, limit: 1 })
      const entry = entries[0]?.entry
      assert.isTrue(entry?._tag === "Message" && Message.text(entry.message) === text)
    }
    // A refused append leaves nothing behind.
    yield* Effect.flip(store.append("t", { leaf: `large-${count - 1}`, entries: [...large(2), ...large(1)] }))
    assert.strictEqual((yield* store.info("t")).leaf.id, `large-${count - 1}`)
  })

/** To measure them takes so many turns, to write them as many again. */
const pass = 180

describe("many megabytes at once", () => {
  it.effect("in memory", () => Effect.provide(appended(pass), MemorySessions.layer), 60_000)

  it.live.runIf(isFull)(
    "in a file of lines",
    () =>
      Effect.gen(function* () {
        const path = yield* folder
        yield* Effect.provide(
          appended(2 * pass),
          JsonlSessions.layer({ folder: path }).pipe(Layer.provide(NodeServices.layer))
        )
      }).pipe(Effect.scoped),
    60_000
  )

  it.live(
    "in SQLite",
    () =>
      Effect.gen(function* () {
        const path = yield* folder
        yield* Effect.provide(appended(2 * pass), SqliteSessions.layer({ file: `${path}/sessions.db` }))
      }).pipe(Effect.scoped),
    60_000
  )
})

describe.runIf(isFull)("on a server", () => {
  layer(Postgres.layer, { timeout: 60_000, excludeTestServices: true })("many megabytes at once", (it) => {
    it.effect(
      "on Postgres",
      Effect.fnUntraced(function* () {
        const place = yield* Effect.orDie(aSchema)
        yield* Effect.provide(appended(2 * pass), onPostgres(place))
      }, Effect.scoped),
      120_000
    )
  })
})

describe("JSON in pieces", () => {
  const long = fc
    .tuple(fc.string({ unit: "binary" }), fc.nat(300_000))
    .map(([one, length]) => one.repeat(Math.ceil(length / Math.max(1, one.length))))

  it("is what JSON.stringify gives, and no piece is long", () =>
    fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.jsonValue(), fc.dictionary(fc.string(), fc.oneof(long, fc.constant(undefined))), fc.array(long)),
        async (value) => {
          const expected = JSON.stringify(value)
          const parts = [...pieces(value)]
          assert.strictEqual(parts.join(""), expected)
          // A character that is escaped has six.
          for (const part of parts) assert.isAtMost(part.length, 8 * 256 * 1024)
          const bytes = new TextEncoder().encode(expected)
          assert.strictEqual(await Effect.runPromise(stringify(value)), expected)
          assert.isTrue(Buffer.concat([...(await Effect.runPromise(encode(value)))]).equals(bytes))
          assert.strictEqual(await Effect.runPromise(measure(value)), bytes.length)
        }
      ),
      { numRuns: 40 }
    ))
})
