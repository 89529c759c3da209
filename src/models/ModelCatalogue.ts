/**
 * The catalogue of models: windows, vision, efforts, prices and retirement dates, by provider and model. The package
 * brings one. Rows of your own, from a file or an address, win over it.
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { ChatModels } from "effect-deepagents/models"
 * import * as ModelCatalogue from "effect-deepagents/models/ModelCatalogue"
 *
 * const prices = ModelCatalogue.layerFile("prices.json").pipe(Layer.provide(NodeServices.layer))
 *
 * export const model = ChatModels.resolve("openai:gpt-6.1-sol").pipe(Layer.provide(prices))
 * ```
 *
 * A file may also be the price file of litellm. {@link convert} makes a small one of it.
 *
 * A file is `{ "providers": { "openai": { "gpt-6.1-sol": { "in": 922000, "prices": [4, 20] } } } }`. A row has `in` and `out`
 * (tokens), `vision`, `efforts` (words), `prices` (dollars of a million tokens: input, output, input from the cache,
 * into it), the same of `flex`, `priority` and `batch`, `long` (`[{ "above": 200000, "prices": […] }]`), `search`
 * (dollars), `until` and `next`.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { readBeginning } from "../support/http/body.ts"
import {
  ageOf,
  type Catalogue,
  overlay,
  type CatalogueFile,
  parseCatalogue,
  writeCatalogue
} from "./internal/facts/catalogue.ts"
import { parseLitellm } from "./internal/facts/litellm.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"

/** A file of rows that can't be read. */
export class CatalogueError extends TaggedError<CatalogueError>("effect-deepagents/models/CatalogueError")(
  "CatalogueError",
  { source: Schema.String, problem: Schema.String }
) {
  override get message(): string {
    return `the catalogue of models at ${this.source} can't be used: ${this.problem}`
  }
}

export type { Catalogue, Rows } from "./internal/facts/catalogue.ts"

export {
  /** The catalogue that layers of models read. Default: the one inside the package. */
  ModelCatalogue
} from "./internal/facts/reference.ts"
import { TaggedError } from "../support/effect/taggedError.ts"

/** The largest file that is read, in bytes: ten times the one inside the package. */
const largest = 8 * 1024 * 1024

const form = 'it is not of the form { "providers": { "openai": { "a-model": { "in": 200000, "prices": [1, 5] } } } }'

const parseRows = (source: string, text: string): Effect.Effect<CatalogueFile, CatalogueError> =>
  Effect.suspend(() => {
    const rows = parseCatalogue(text) ?? parseLitellm(text)
    return rows === undefined ? Effect.fail(new CatalogueError({ source, problem: form })) : Effect.succeed(rows)
  })

/** Lays the rows of a text over the catalogue of the surrounding layers. */
const provideText = (source: string, text: string) =>
  Effect.gen(function* () {
    return overlay(yield* ModelCatalogue, yield* parseRows(source, text))
  })

/**
 * Converts a price file of litellm, or a catalogue, to the text of a small catalogue, dated today. The corrections of the
 * package win over litellm, and `over` wins over both.
 */
export const convert = (
  source: string,
  text: string,
  over: Catalogue["providers"] = {}
): Effect.Effect<string, CatalogueError> =>
  Effect.gen(function* () {
    const { asOf, providers } = yield* parseRows(source, text)
    const today = new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, 10)
    return writeCatalogue(source, overlay({ asOf: asOf ?? today, providers }, { providers: over }))
  })

/** Lays the rows of a JSON file over the catalogue. */
export const layerFile = (path: string): Layer.Layer<never, CatalogueError, FileSystem.FileSystem> =>
  Layer.effect(
    ModelCatalogue,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const text = yield* Effect.mapError(
        fs.readFileString(path),
        ({ message }) => new CatalogueError({ source: path, problem: message })
      )
      return yield* provideText(path, text)
    })
  )

const textAt = Effect.fnUntraced(function* (url: string) {
  const failed = (problem: string) => new CatalogueError({ source: url, problem })
  const response = yield* Effect.mapError(HttpClient.get(url), () => failed("it can't be reached"))
  if (response.status !== 200) return yield* failed(`the server answered with status ${response.status}`)
  const { bytes, isWhole } = yield* Effect.mapError(readBeginning(response, largest), () => failed("it broke off"))
  return isWhole ? new TextDecoder().decode(bytes) : yield* failed("it is larger than 8 MiB")
})

/** Lays the rows at an address over the catalogue, asked for once, when the layer is built. */
export const layerUrl = (url: string): Layer.Layer<never, CatalogueError, HttpClient.HttpClient> =>
  Layer.effect(
    ModelCatalogue,
    Effect.gen(function* () {
      const text = yield* Effect.timeoutOrElse(textAt(url), {
        duration: "10 seconds",
        orElse: () => Effect.fail(new CatalogueError({ source: url, problem: "it does not answer" }))
      })
      return yield* provideText(url, text)
    })
  )

/** Describes the age of the catalogue, from eight weeks on: what it says may have changed since. */
export const describeAge: Effect.Effect<string | undefined> = Effect.gen(function* () {
  return ageOf(yield* ModelCatalogue, yield* Clock.currentTimeMillis)
})
