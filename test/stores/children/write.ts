/** Writes rows beside other writers, counts in a shared row, and removes most of its rows. Prints the acknowledged operations. */
import { writeSync } from "node:fs"
import { Storage } from "effect-deepagents/stores"
import * as Effect from "effect/Effect"
import { storage } from "./storage.ts"

const [kind = "", path = "", name = "", count = ""] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const table = (yield* Storage.Storage).table("t")
  const increment: Effect.Effect<void, Effect.Error<ReturnType<Storage.Table["get"]>>> = Effect.gen(function* () {
    const found = yield* table.get("s", "counter")
    if (!(yield* table.swap("s", "counter", found, `${Number(found ?? 0) + 1}`))) yield* increment
  })
  for (let n = 0; n < Number(count); n++) {
    const key = `${name}-${n}`
    yield* table.put("s", [
      { key, value: "x".repeat(100) },
      { key: `${key}-twin`, value: "y" }
    ])
    yield* increment
    writeSync(1, `put ${key}\n`)
    if (n % 4 === 0) continue
    if (yield* table.swap("s", key, "x".repeat(100), undefined)) writeSync(1, `remove ${key}\n`)
  }
})

await Effect.runPromise(Effect.provide(program, storage(kind, path)))
