/**
 * Appends so many entries to a thread that others write to as well, and says which were acknowledged.
 */
import { writeSync } from "node:fs"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as Effect from "effect/Effect"
import { layer } from "./stores.ts"

const [kind = "", path = "", name = "", count = ""] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const store = yield* SessionStore.SessionStore
  yield* Effect.ignore(store.create({ threadId: "t" }))
  let leaf = yield* store.leaf("t")
  for (let n = 0; n < Number(count);) {
    const id = `${name}-${n}`
    const entry = { _tag: "Message", message: Message.human(`${id} ${"x".repeat(200)}`) } as const
    const outcome = yield* Effect.result(store.append("t", { leaf: leaf.id, entries: [{ id, entry }] }))
    if (outcome._tag === "Success") {
      writeSync(1, `${id}\n`)
      leaf = outcome.success
      n++
    } else if (outcome.failure.reason._tag === "Conflict") {
      leaf = yield* store.leaf("t")
    } else {
      return yield* outcome.failure
    }
  }
})

await Effect.runPromise(Effect.provide(program, layer(kind, path)))
