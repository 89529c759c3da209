/** Checks that acknowledged data survive, and rejected data do not, also on a full disk. */
import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { SessionError } from "../../../../core/SessionError.ts"
import type { Service } from "../../../../core/SessionStore.ts"
import { type NotConformant, assert, fails, expect } from "../assert.ts"
import { append, answer, readIds, human, step } from "./common.ts"

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

/** Reads the visible state of a store. */
const readState = Effect.fnUntraced(function* (store: Service) {
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
  yield* append(store, "t", human("1", "one"), answer("2", "two"))
  yield* store.fork("t", { threadId: "f", at: "1" })
  yield* append(store, "f", answer("3", "three"))
  yield* store.fork("f", { threadId: "g" })
  yield* store.rewind("t", "1")
  yield* append(store, "t", answer("4", "four"))
  yield* store.label("t", "name", "2")
  yield* store.describe("f", { n: 2 })
  yield* store.create({ threadId: "gone" })
  yield* store.delete("gone")
  yield* store.create({ threadId: "old" })
  yield* store.archive("old")
  yield* store.import(store.export("t"), { threadId: "copy" })
  yield* store.delete("f")
  return yield* readState(store)
})

export const survivalRules: ReadonlyArray<Survival> = [
  [
    "a store that is opened again is what it was",
    everything,
    Effect.fnUntraced(function* (store, state) {
      yield* expect(yield* readState(store), state, "what there is")
      yield* append(store, "t", human("5", "goes on"))
      yield* append(store, "g", human("6", "goes on"))
      yield* expect(yield* readIds(store, "t"), ["1", "4", "5"], "a thread goes on")
      yield* expect(yield* readIds(store, "g"), ["1", "3", "6"], "a fork goes on")
      yield* expect((yield* store.search("four")).items.length, 2, "what was said is found")
    })
  ],
  [
    "an append whose answer was lost happens once, also after a restart",
    (store) => Effect.andThen(store.create({ threadId: "t" }), append(store, "t", human("1", "one"), step("2"))),
    Effect.fnUntraced(function* (store) {
      yield* store.append("t", { leaf: null, entries: [human("1", "one"), step("2")] })
      yield* expect(yield* readIds(store, "t"), ["1", "2"], "nothing is doubled")
    })
  ]
]

export const diskRules: ReadonlyArray<Disk> = [
  [
    "a full disk fails with Unavailable, and what was acknowledged stays",
    Effect.fnUntraced(function* (store, fill) {
      yield* store.create({ threadId: "t" })
      yield* append(store, "t", human("0", "there was space"))
      const large = "no space ".repeat(20_000)
      yield* store.create({ threadId: "large" })
      yield* append(store, "large", human("0", large))
      const lines = yield* Stream.runCollect(store.export("large"))
      yield* fill
      let failures = 0
      let n = 1
      // Some appends may use reserved space.
      while (failures < 3 && n < 200) {
        const batch = Array.range(1, 3).map((part) => human(`${n}-${part}`, large))
        const outcome = yield* Effect.result(append(store, "t", ...batch))
        n++
        if (outcome._tag === "Success") continue
        failures++
        yield* expect(outcome.failure.reason._tag, "Unavailable", "why a full disk takes nothing")
      }
      yield* assert(failures === 3, "a full disk refuses", failures)
      yield* fails(
        store.import(Stream.fromIterable(lines), { threadId: "copy" }),
        "an import onto a full disk",
        "Unavailable"
      )
      yield* fails(store.info("copy"), "what is left of that import", "NotFound")
      return yield* readIds(store, "t")
    }),
    Effect.fnUntraced(function* (store, ids) {
      yield* expect(yield* readIds(store, "t"), ids, "what was acknowledged")
      yield* append(store, "t", human("after", "there is space again"))
      yield* expect((yield* readIds(store, "t")).slice(0, -1), ids, "… and it goes on")
    })
  ]
]
