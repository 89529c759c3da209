/** `deepagents models refresh`: renews the catalogue of models. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as ModelCatalogue from "../../../models/ModelCatalogue.ts"
import { readWebBeginning } from "../../../support/http/body.ts"
import { fail, orFail } from "../failure.ts"
import { filesOf } from "./catalogue.ts"
import { limitsIn } from "./modelLimits.ts"
import { listBodies } from "./modelList.ts"
import type { Places } from "./places.ts"
import { writePrivate } from "./trust.ts"

/** The price file of litellm (MIT), from which the catalogue of the package is made. */
const source = "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"

/** The largest source, in bytes. */
const largest = 32 * 1024 * 1024

/** The longest wait for a source. */
const longest = "1 minute"

const download = (url: string) =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, { signal })
      const { bytes, isWhole } = await readWebBeginning(response.body, largest)
      return { status: response.status, isWhole, text: new TextDecoder().decode(bytes) }
    },
    catch: () => undefined
  }).pipe(
    Effect.orElseSucceed(() => undefined),
    Effect.timeoutOption(longest),
    Effect.flatMap((answer) => {
      const host = URL.parse(url)?.host ?? url
      const failed = (problem: string) => fail("failed", `${host} ${problem}; nothing was changed.`)
      if (Option.isNone(answer)) return failed("does not answer in time")
      if (answer.value === undefined) return failed("can't be reached")
      const { isWhole, status, text } = answer.value
      if (status !== 200) return failed(`answers with status ${status}`)
      return isWhole ? Effect.succeed(text) : failed("breaks off, or sends more than 32 MiB")
    })
  )

/** The result of a refresh. */
interface RefreshResult {
  readonly from: string
  readonly file: string
  readonly models: number
  /** The providers that said the limits of their models themselves. */
  readonly asked: ReadonlyArray<string>
}

/**
 * Renews the catalogue from an address or a file: prices from the source, limits and abilities from the lists of those
 * providers that have a key here.
 */
export const refresh = Effect.fnUntraced(function* (places: Places, from = source) {
  const isAddress = /^https?:\/\//.test(from)
  const fs = yield* FileSystem.FileSystem
  const text = isAddress ? yield* download(from) : yield* orFail("usage")(fs.readFileString(from))
  const lists = yield* listBodies(places)
  const limits = Object.fromEntries(lists.map(({ body, name }) => limitsIn(name, body)))
  const converted = yield* orFail("usage")(ModelCatalogue.convert(from, text, limits))
  const [file = ""] = filesOf(places)
  yield* writePrivate(file, converted)
  return {
    from,
    file,
    models: converted.split("\n").filter((line) => line.startsWith("      ")).length,
    asked: Object.entries(limits).flatMap(([name, rows]) => (Object.keys(rows).length === 0 ? [] : [name]))
  } satisfies RefreshResult
})
