/** Asks the next model of the person's list while a provider is down, or has no quota left. */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type { ChatModel } from "../../../core/ChatModel.ts"
import type * as Middleware from "../../../core/Middleware.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import * as ModelFallback from "../../../middleware/ModelFallback.ts"
import * as ModelRetry from "../../../middleware/ModelRetry.ts"
import type { Settings } from "../config/settings.ts"
import { isHopeless, patience, waits } from "./patience.ts"

/** The most models beside the first one. */
const mostModels = 5

/** Time that a model has to recover before the next one is asked, in milliseconds. */
const recovery = 60_000

/** Time for which a model that did not recover is asked only once a round, in milliseconds. */
const remembered = 5 * 60_000

/** The models that may answer in place of the first one: those of the setting `fallback`, else the favourites. */
export const nextModels = (settings: Settings, model: string): ReadonlyArray<string> =>
  [...new Set(settings.fallback?.value ?? settings.favourites?.value ?? [])]
    .filter((name) => name !== model)
    .slice(0, mostModels)

/** An outage and a used-up quota concern the provider. Every other failure would happen again, or a person has to know. */
const concernsProvider = (error: ModelError): boolean => error.isRetryable || error.reason._tag === "QuotaExhausted"

/** Waits a minute for a model, but asks once if it failed for a minute just now. */
const makeSchedule = () => {
  const failedAt = new Map<string, number>()
  return waits.pipe(
    Schedule.while(({ attempt, elapsed, input, now }) =>
      Effect.sync(() => {
        const name = `${input.provider}/${input.model ?? ""}`
        const last = failedAt.get(name)
        const isDown = last !== undefined && now - last < remembered
        if (!isDown && elapsed < recovery && !isHopeless(input, attempt)) return true
        failedAt.set(name, now)
        return false
      })
    )
  )
}

/** The patience of an agent with its model, and with these models after it. */
export const persistence = <E, R>(
  layers: ReadonlyArray<Layer.Layer<ChatModel, E, R>>
): ReadonlyArray<Middleware.Middleware<E, R>> =>
  layers.length === 0
    ? [patience()]
    : [
        patience(),
        ModelFallback.make(layers, { when: concernsProvider }),
        ModelRetry.make({ schedule: makeSchedule(), within: "2 minutes" })
      ]
