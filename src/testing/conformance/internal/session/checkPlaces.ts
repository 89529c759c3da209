/**
 * Checks of what outlives the store: everything that was acknowledged, and nothing that was refused; on a full disk,
 * too.
 */
import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { SessionError } from "../../../../core/SessionError.ts"
import type { Service } from "../../../../core/SessionStore.ts"
import { type NotConformant, assert, fails, same } from "../assert.ts"
import { add, answered, ids, said, step } from "./common.ts"

type Survival = readonly [
  name: string,
  write: (store: Service) => Effect.Effect<unknown, SessionError | NotConformant>,
  read: (store: Service, written: unknown) => Effect.Effect<void, SessionError | NotConformant>
]

type Disk = readonly [
  name: string,
  write: (
    store: Service,
    fill: Effect.Effect<void>
  ) => Effect.Effect<ReadonlyArray<string>, SessionError | NotConformant>,
  read: (store: Service, written: ReadonlyArray<string>) => Effect.Effect<void, SessionError | NotConformant>
]

/** All that can be seen of a store. */
const seen = Effect.fnUntraced(function* (store: Service) {
  const threads = [...(yield* store.list()).items, ...(yield* store.list({ archived: true })).items]
  return yield* Effect.forEach(threads, (thread) =>
    Effect.all({
      thread: Effect.succeed(thread),
      lines: Stream.runCollect(store.export(thread.threadId)),
      labels: Effect.map(store.labels(thread.threadId), (labels) => [...labels])
    })
  )
})

const everything = Effect.fnUntraced(function* (store: Service) {
  yield* store.create({ threadId: "t", metadata: { n: 1 } })
  yield* add(store, "t", said("1", "one"), answered("2", "two"))
  yield* store.fork("t", { threadId: "f", at: "1" })
  yield* add(store, "f", answered("3", "three"))
  yield* store.fork("f", { threadId: "g" })
  yield* store.rewind("t", "1")
  yield* add(store, "t", answered("4", "four"))
  yield* store.label("t", "name", "2")
  yield* store.describe("f", { n: 2 })
  yield* store.create({ threadId: "gone" })
  yield* store.delete("gone")
  yield* store.create({ threadId: "old" })
  yield* store.archive("old")
  yield* store.import(store.export("t"), { threadId: "copy" })
  yield* store.delete("f")
  return yield* seen(store)
})

export const survivalRules: ReadonlyArray<Survival> = [
  [
    "a store that is opened again is what it was",
    everything,
    Effect.fnUntraced(function* (store, written) {
      yield* same(yield* seen(store), written, "what there is")
      yield* add(store, "t", said("5", "goes on"))
      yield* add(store, "g", said("6", "goes on"))
      yield* same(yield* ids(store, "t"), ["1", "4", "5"], "a thread goes on")
      yield* same(yield* ids(store, "g"), ["1", "3", "6"], "a fork goes on")
      yield* same((yield* store.search("four")).items.length, 2, "what was said is found")
    })
  ],
  [
    "an append whose answer was lost happens once, also after a restart",
    (store) => Effect.andThen(store.create({ threadId: "t" }), add(store, "t", said("1", "one"), step("2"))),
    Effect.fnUntraced(function* (store) {
      yield* store.append("t", { leaf: null, entries: [said("1", "one"), step("2")] })
      yield* same(yield* ids(store, "t"), ["1", "2"], "nothing is doubled")
    })
  ]
]

export const diskRules: ReadonlyArray<Disk> = [
  [
    "a full disk fails with Unavailable, and what was acknowledged stays",
    Effect.fnUntraced(function* (store, fill) {
      yield* store.create({ threadId: "t" })
      yield* add(store, "t", said("0", "there was space"))
      const large = "no space ".repeat(20_000)
      yield* store.create({ threadId: "large" })
      yield* add(store, "large", said("0", large))
      const lines = yield* Stream.runCollect(store.export("large"))
      yield* fill
      let failures = 0
      let n = 1
      // Some appends may still go where space was kept.
      while (failures < 3 && n < 200) {
        const batch = Array.range(1, 3).map((part) => said(`${n}-${part}`, large))
        const outcome = yield* Effect.result(add(store, "t", ...batch))
        n++
        if (outcome._tag === "Success") continue
        failures++
        yield* same(outcome.failure.reason._tag, "Unavailable", "why a full disk takes nothing")
      }
      yield* assert(failures === 3, "a full disk refuses", failures)
      yield* fails(
        store.import(Stream.fromIterable(lines), { threadId: "copy" }),
        "an import onto a full disk",
        "Unavailable"
      )
      yield* fails(store.info("copy"), "what is left of that import", "NotFound")
      return yield* ids(store, "t")
    }),
    Effect.fnUntraced(function* (store, written) {
      yield* same(yield* ids(store, "t"), written, "what was acknowledged")
      yield* add(store, "t", said("after", "there is space again"))
      yield* same((yield* ids(store, "t")).slice(0, -1), written, "… and it goes on")
    })
  ]
]
