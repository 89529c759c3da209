/** Appends to Postgres: those of several threads are one statement, and each fails alone. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { onPostgres } from "./children/postgres.ts"
import { aSchema, Postgres } from "./places.ts"

const message = (id: string): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(`text ${id}`) }
})

const threads = Array.from({ length: 300 }, (_, n) => `t${n}`)

layer(Postgres.layer, { timeout: 60_000, excludeTestServices: true })("on Postgres", (it) => {
  it.effect(
    "of 300 appends at once, a refused one keeps the others from no commit",
    Effect.fnUntraced(function* () {
      const place = yield* Effect.orDie(aSchema)
      yield* Effect.gen(function* () {
        const store = yield* SessionStore.SessionStore
        yield* Effect.forEach(threads, (threadId) => store.create({ threadId }), { concurrency: 8 })
        const all = (leaf: string | null, ids: (n: number) => ReadonlyArray<string>) =>
          Effect.forEach(
            threads,
            (threadId, n) => Effect.result(store.append(threadId, { leaf, entries: ids(n).map(message) })),
            { concurrency: "unbounded" }
          )
        yield* all(null, () => ["a"])
        yield* store.archive("t1")
        yield* store.delete("t2")
        yield* store.append("t3", { leaf: "a", entries: [message("x")] })
        yield* store.fork("t0", { threadId: "t2" })
        const tried = yield* all("a", (n) => (n === 2 || n === 4 ? ["b", "a"] : ["b", "c"]))
        assert.deepStrictEqual(
          tried.slice(0, 6).map((one) => (one._tag === "Success" ? one.success.step : one.failure.reason._tag)),
          [3, "Archived", "InvalidEntry", "Conflict", "InvalidEntry", 3]
        )
        assert.isTrue(tried.slice(5).every((one) => one._tag === "Success" && one.success.step === 3))
        assert.deepStrictEqual(
          (yield* store.load("t299")).entries.map(({ id }) => id),
          ["a", "b", "c"]
        )
      }).pipe(Effect.provide(onPostgres(place)))
    }, Effect.scoped),
    60_000
  )
})
