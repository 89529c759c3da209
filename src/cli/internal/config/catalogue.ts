/** The facts about models that the program uses: a refreshed catalogue, and rows of the user's own over it. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as ModelCatalogue from "../../../models/ModelCatalogue.ts"
import { type Failure, layerOrFail } from "../failure.ts"
import type { Places } from "./places.ts"

/** The refreshed catalogue, and the rows of the user's own. */
export const filesOf = ({ config, data }: Places): ReadonlyArray<string> => [
  join(data, "models.json"),
  join(config, "models.json")
]

/** Lays the files over the catalogue of the package, as far as they exist. */
export const catalogueLayer = (places: Places): Layer.Layer<never, Failure, FileSystem.FileSystem> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const there = yield* Effect.filter(filesOf(places), (file) => Effect.orElseSucceed(fs.exists(file), () => false))
      return there.reduce<Layer.Layer<never, Failure, FileSystem.FileSystem>>(
        (below, file) => layerOrFail("noModel")(ModelCatalogue.layerFile(file)).pipe(Layer.provide(below)),
        Layer.empty
      )
    })
  )
