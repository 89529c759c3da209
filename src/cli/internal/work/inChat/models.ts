/** The models of a chat: all that providers list, favourites first. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Choice, Problem } from "../../chat/options.ts"
import { listModels } from "../../config/modelList.ts"
import { type Places, userSettings } from "../../config/places.ts"
import { readRecord, type Settings } from "../../config/settings.ts"
import { writePrivate } from "../../config/trust.ts"
import { ago } from "../../output.ts"
import type { Services } from "../app.ts"

type Values = { readonly [name: string]: unknown }

/** Stores a setting of the user, and keeps all others. */
export const keepSetting = Effect.fnUntraced(function* (places: Places, change: (before: Values) => Values) {
  const file = userSettings(places)
  const before = yield* readRecord(file)
  yield* writePrivate(file, `${JSON.stringify({ ...before, ...change(before) }, null, 2)}\n`)
})

/** A list that is older is said to be old, in milliseconds. */
const old = 48 * 3_600_000

/** Gives the list of models and the favourites, for the options of a chat. */
export const modelsInChat = Effect.fnUntraced(function* (places: Places, settings: Settings) {
  const services = yield* Effect.context<Services>()
  let favourites = settings.favourites?.value ?? []
  const models = Effect.gen(function* () {
    const listed = yield* Effect.orElseSucceed(listModels(places), () => [])
    const now = yield* Clock.currentTimeMillis
    return [
      ...favourites.map((name): Choice => ({ name, description: "★" })),
      ...listed
        .filter(({ name }) => !favourites.includes(name))
        .map(({ listedAt, name }): Choice => {
          const age = listedAt === undefined ? 0 : now - listedAt
          return age > old ? { name, description: `listed ${ago(age)}` } : { name }
        })
    ]
  }).pipe(Effect.provideContext(services))
  const onFavourite = (model: string): Effect.Effect<boolean, Problem> =>
    Effect.suspend(() => {
      const isOne = !favourites.includes(model)
      favourites = isOne ? [...favourites, model] : favourites.filter((one) => one !== model)
      return Effect.as(
        keepSetting(places, () => ({ favourites })),
        isOne
      )
    }).pipe(
      Effect.provideContext(services),
      Effect.mapError(({ message }): Problem => ({ message }))
    )
  return { models, onFavourite }
})
