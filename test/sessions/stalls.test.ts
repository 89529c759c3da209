/**
 * A hostile search stops no store's process: the event loop goes on, the search ends, and it can be interrupted.
 */
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Effect, Fiber, Layer, type Scope } from "effect"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import type { SessionConformance } from "effect-deepagents/testing/conformance"
import { isFull, scaled } from "../scale.ts"
import { hasRedis } from "../servers/redis.ts"
import { watched } from "../watchdog.ts"
import { jsonl, memory, Postgres, postgres, redis, RedisServer, sqlite } from "./places.ts"

const times = isFull ? 8 : 1

/** Long messages: a pasted log, a text of joined words, a text without spaces, and a text of near phrases. */
const long = [
  "a line of a log about a question\n".repeat(times * 11_000),
  "a-".repeat(times * 250_000),
  "漢字".repeat(times * 40_000),
  `${"a ".repeat(12_500)}b `.repeat(times * 4)
]

const ordinary = Array.from({ length: scaled(4_000) }, (_, n) => `a question number ${n} about a thing, and a b c d e`)

const hostile: Readonly<Record<string, string>> = {
  "500 characters of one word": "a ".repeat(250),
  "a word a thousand times": "question ".repeat(1000),
  "20,000 repeated phrases": "a-question-number ".repeat(20_000),
  "20,000 different phrases": Array.from({ length: 20_000 }, (_, n) => `a-${n}`).join(" "),
  "32 long phrases that nearly fit": Array.from({ length: 32 }, (_, n) => `${"a-".repeat(31)}z${n}`).join(" "),
  "a text like a regular expression": String.raw`(a+)+$ ^(.*a){20,}.*$ [^\s]{1,1000} (?=a)(?!b)\1 %_*?"'\\ a`,
  "a million characters of one word": "x".repeat(1_000_000),
  "a million characters of one phrase": "a-".repeat(500_000),
  "a million characters without spaces": "漢字".repeat(500_000)
}

const append = (store: SessionStore.Service, leaf: string | null, from: number, texts: ReadonlyArray<string>) =>
  store.append("t", {
    leaf,
    entries: texts.map((text, n) => ({
      id: `e${from + n}`,
      entry: { _tag: "Message", message: Message.human(text) }
    }))
  })

const fill = Effect.fnUntraced(function* (store: SessionStore.Service) {
  yield* store.create({ threadId: "t" })
  let leaf: string | null = null
  for (let from = 0; from < ordinary.length; from += 200) {
    leaf = (yield* append(store, leaf, from, ordinary.slice(from, from + 200))).id
  }
  for (const [n, text] of long.entries()) leaf = (yield* append(store, leaf, ordinary.length + n, [text])).id
})

const hold = <Place, R, E>(
  { layer: layerOf, place, survives }: SessionConformance.Subject<Place, E, R>,
  test: Vitest.Tester<R | Scope.Scope>
) =>
  test(
    "holds the event loop for a moment at most, ends, and can be interrupted",
    Effect.fnUntraced(function* () {
      const there = yield* place
      const open = Effect.map(Layer.build(Layer.fresh(layerOf(there))), (context) =>
        Effect.runSync(Effect.provide(SessionStore.SessionStore, context))
      )
      const first = yield* open
      yield* fill(first)
      // The second store has nothing in memory yet.
      const store = survives === true ? yield* open : first
      const search = (text: string) => watched(Effect.timeout(store.search(text), "20 seconds"))
      yield* search("nothing yet")
      for (const text of Object.values(hostile)) yield* search(text)

      for (let turns = 0; turns < 4; turns++) {
        const searching = yield* Effect.forkChild(store.search(hostile["32 long phrases that nearly fit"] ?? ""))
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* watched(Effect.timeout(Fiber.interrupt(searching), "5 seconds"))
        assert.isTrue((yield* Fiber.await(searching))._tag === "Failure", "it was still at work")
      }
      assert.strictEqual((yield* store.search("question")).items.length, 20)
    }),
    240_000
  )

const servers = { timeout: 60_000, excludeTestServices: true } as const

describe("a hostile search in memory", () => hold(memory, it.live))
describe("a hostile search in SQLite", () => hold(sqlite, it.live))
describe("a hostile search in JSON lines", () => hold(jsonl, it.live))
layer(Postgres.layer, servers)("a hostile search in Postgres", (it) => hold(postgres, it.effect))
describe.skipIf(!hasRedis)("on Redis", () => {
  layer(RedisServer.layer, servers)("a hostile search in Redis", (it) => hold(redis, it.effect))
})
