/** The values that scripts store, and the time for which they last. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentState from "../../core/AgentState.ts"
import { isObject, Json, type JsonObject } from "../../core/Json.ts"
import type { Run } from "../../core/Run.ts"
import type { ToolContext } from "../../core/ToolContext.ts"
import { valueAt } from "../../support/json/valueAt.ts"
import { cut } from "../../support/text/text.ts"
import { type Refusal, refuse } from "./host.ts"

/** The time for which stored values last. */
export type Lasting = "thread" | "turn" | "call"

/** The values that scripts of a thread have stored. */
export const storeSlot = AgentState.slot("script-store", {
  schema: Schema.Record(Schema.String, Json),
  initial: {}
})

/** The most characters of all that scripts store, as JSON. */
const maxStored = 500_000

export interface Values {
  readonly get: Effect.Effect<JsonObject>
  readonly update: (change: (before: JsonObject) => JsonObject) => Effect.Effect<void>
}

/** Makes the stored values of a script: its thread keeps them, or the call does. */
export const make = ({ state }: Pick<ToolContext["Service"], "state">, lasting: Lasting): Values => {
  let own: JsonObject = {}
  return lasting === "call"
    ? {
        get: Effect.sync(() => own),
        update: (change) =>
          Effect.sync(() => {
            own = change(own)
          })
      }
    : { get: state.get(storeSlot), update: (change) => state.update(storeSlot, change) }
}

/** Drops the values of the last turn as a run begins with an input. A resumed run is of the same turn. */
export const dropOfTurn = (run: Run): Effect.Effect<void> =>
  run.spent.rounds === 0 ? run.state.set(storeSlot, {}) : Effect.void

const keyIn = (args: Json): string => {
  const key = isObject(args) ? valueAt(args, "key") : undefined
  return typeof key === "string" ? key : ""
}

interface Owner {
  readonly context: ToolContext["Service"]
  readonly values: Values
}

export const store = ({ values }: Owner, args: Json): Effect.Effect<Json, Refusal> =>
  Effect.suspend(() => {
    const value = isObject(args) ? (args["value"] ?? null) : null
    const key = cut(keyIn(args), 200)
    let isStored = false
    const update = values.update((before) => {
      const all = { ...before, [key]: value }
      isStored = JSON.stringify(all).length <= maxStored
      return isStored ? all : before
    })
    return Effect.flatMap(update, () =>
      isStored
        ? Effect.succeed(null)
        : Effect.fail(refuse(`Scripts may store ${maxStored} characters of JSON together.`))
    )
  })

/** Looks a value up once: a script that runs again gets the value that it got. */
export const load = ({ context, values }: Owner, args: Json): Effect.Effect<Json, Refusal> => {
  const key = keyIn(args)
  const readValue = Effect.map(values.get, (all) => valueAt(all, key) ?? null)
  return context.step(`script/load/${cut(key, 100)}`, readValue, Json)
}
