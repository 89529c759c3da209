/** Copies all threads of a store to another one, and reports the result. */
import { SessionStore } from "effect-deepagents/sessions"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layer } from "./stores.ts"

const [fromKind = "", fromPath = "", toKind = "", toPath = ""] = process.argv.slice(2)

const storeOf = (kind: string, path: string) =>
  Effect.map(Layer.build(Layer.fresh(layer(kind, path))), (services) =>
    Context.get(services, SessionStore.SessionStore)
  )

const program = Effect.scoped(
  Effect.gen(function* () {
    const [from, to] = [yield* storeOf(fromKind, fromPath), yield* storeOf(toKind, toPath)]
    return yield* SessionStore.copy(from, to, { name: "the target" })
  })
)

console.log(JSON.stringify(await Effect.runPromise(program)))
