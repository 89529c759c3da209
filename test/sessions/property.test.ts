/** Every store answers any operations in any order like the memory store. */
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Effect, Layer, type Scope, Stream } from "effect"
import { Message, Usage } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { hasRedis } from "../servers/redis.ts"
import * as places from "./places.ts"

const threadIds = ["t", "T", "u/../t", "ü"]
const entryIds = Array.from({ length: 12 }, (_, n) => `e${n}`)
const words = ["alpha", "beta", "Ärger", "東京"]

const entry = fc.oneof(
  fc.constantFrom(...words).map((text) => ({ _tag: "Message", message: Message.human(text, { id: "m" }) }) as const),
  fc.constantFrom("a", "b").map(
    (id) =>
      ({
        _tag: "Message",
        message: Message.ai("", { id: "m", toolCalls: [{ id, name: "x", arguments: {} }] })
      }) as const
  ),
  fc
    .constantFrom("a", "b")
    .map(
      (toolCallId) =>
        ({ _tag: "Message", message: Message.tool("seen", { id: "m", toolCallId, toolName: "x" }) }) as const
    ),
  fc.constant({ _tag: "Step", usage: Usage.zero, rounds: 1 } as const)
)

const threadId = fc.constantFrom(...threadIds)
const place = fc.option(fc.constantFrom(...entryIds), { nil: null })
const metadata = fc.dictionary(fc.constantFrom("k", "__proto__", "a.b"), fc.constantFrom(1, "1", null, true))

const operation = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant("create" as const), threadId, metadata }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("append" as const),
      threadId,
      // Most of the time behind the leaf that is there.
      leaf: fc.option(place, { nil: undefined, freq: 4 }),
      behind: fc.option(place, { nil: undefined, freq: 4 }),
      entries: fc.array(fc.record({ id: fc.constantFrom(...entryIds), entry }), { maxLength: 3 })
    })
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("rewind" as const), threadId, to: place }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("fork" as const),
      threadId,
      to: threadId,
      at: fc.option(place, { nil: undefined })
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("label" as const), threadId, name: fc.constantFrom("x", "y"), at: place })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("archive" as const), threadId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unarchive" as const), threadId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), threadId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("copy" as const), threadId, to: threadId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("describe" as const), threadId, metadata }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("list" as const), metadata }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("search" as const), text: fc.constantFrom(...words, "al", "東") })
  }
)
type Operation = typeof operation extends fc.Arbitrary<infer A> ? A : never

const perform = (store: SessionStore.Service, step: Operation): Effect.Effect<unknown, unknown> => {
  switch (step.do) {
    case "create":
      return store.create(step)
    case "append":
      return Effect.flatMap(
        step.leaf === undefined ? store.leaf(step.threadId) : Effect.succeed({ id: step.leaf }),
        (leaf) =>
          store.append(step.threadId, {
            leaf: leaf.id,
            entries: step.entries,
            ...(step.behind === undefined ? {} : { behind: step.behind })
          })
      )
    case "rewind":
      return store.rewind(step.threadId, step.to)
    case "fork":
      return store.fork(step.threadId, { threadId: step.to, ...(step.at === undefined ? {} : { at: step.at }) })
    case "label":
      return store.label(step.threadId, step.name, step.at)
    case "archive":
    case "unarchive":
    case "delete":
      return store[step.do](step.threadId)
    case "copy":
      return store.import(store.export(step.threadId), { threadId: step.to })
    case "describe":
      return store.describe(step.threadId, step.metadata)
    case "list":
      return store.list({ where: step.metadata })
    case "search":
      return store.search(step.text, { limit: 3 })
  }
}

/** The final state; the ids of labels' entries are random. */
const readAll = (store: SessionStore.Service) =>
  Effect.forEach([...threadIds, "none"], (id) =>
    Effect.result(
      Effect.all({
        thread: store.info(id),
        path: store.load(id),
        labels: Effect.map(store.labels(id), (labels) => [labels.get("x"), labels.get("y")]),
        entries: Effect.map(Stream.runCollect(store.export(id)), (lines) =>
          lines.filter((line) => !line.includes('"_tag":"Label"'))
        )
      })
    )
  )

/** The result of each operation, and the final state. */
const history = <E>(layer: Layer.Layer<SessionStore.SessionStore, E>, steps: ReadonlyArray<Operation>, chunk: number) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(0)
    const outcomes: Array<unknown> = []
    // The layer is built anew every so often.
    for (let start = 0; start === 0 || start < steps.length; start += chunk) {
      yield* SessionStore.SessionStore.use((store) =>
        Effect.forEach(steps.slice(start, start + chunk), (step) =>
          Effect.andThen(
            TestClock.adjust("1 millis"),
            Effect.map(Effect.result(perform(store, step)), (outcome) => outcomes.push(step.do, outcome))
          )
        )
      ).pipe(Effect.provide(Layer.fresh(layer)))
    }
    const end = yield* SessionStore.SessionStore.use(readAll).pipe(Effect.provide(Layer.fresh(layer)))
    // Errors are compared by their messages.
    return JSON.parse(JSON.stringify({ outcomes, end }))
  })

/** A memory store that outlives its layer. */
const lasting = Effect.map(Effect.scoped(Layer.build(places.memory.layer())), (context) =>
  Layer.succeedContext(context)
)

const alike = <P, E, R>(
  name: string,
  subject: {
    readonly place: Effect.Effect<P, never, R | Scope.Scope>
    readonly layer: (place: P) => Layer.Layer<SessionStore.SessionStore, E>
  },
  runs: number,
  test: Vitest.Tester<R | Scope.Scope>
) =>
  test(
    `${name} answers as MemorySessions does, however often it is opened again`,
    Effect.fnUntraced(function* () {
      const context = yield* Effect.context<R | Scope.Scope>()
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.array(operation, { minLength: 5, maxLength: 60 }),
            fc.integer({ min: 3, max: 40 }),
            (steps, chunk) =>
              Effect.gen(function* () {
                const expected = yield* history(yield* lasting, steps, steps.length + 1)
                const layer = subject.layer(yield* subject.place)
                assert.deepStrictEqual(yield* history(layer, steps, chunk), expected)
              }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromiseWith(context))
          ),
          { numRuns: scaled(runs) }
        )
      )
    }),
    120_000
  )

describe("any operations", () => {
  alike("SqliteSessions", places.sqlite, 80, it.effect)
  alike("JsonlSessions", places.jsonl, 60, it.effect)
})

layer(places.Postgres.layer, { timeout: 60_000 })("any operations on Postgres", (it) =>
  alike("SqlSessions", places.postgres, 15, it.effect)
)

describe.skipIf(!hasRedis)("on Redis", () => {
  layer(places.RedisServer.layer, { timeout: 60_000 })("any operations on Redis", (it) =>
    alike("RedisSessions", places.redis, 60, it.effect)
  )
})
