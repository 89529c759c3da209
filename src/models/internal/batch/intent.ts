/** The intent to begin a batch, and the batch that came of it: for processes that died before they learned its id. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ModelError } from "../../../core/ModelError.ts"

/**
 * A batch that is about to begin: the time in milliseconds, the number of its requests, and the id of its upload if it
 * has one.
 */
const Intent = Schema.Struct({
  at: Schema.Finite,
  count: Schema.Finite,
  upload: Schema.optionalKey(Schema.String)
})

/** A batch that is about to begin. */
export type Intent = typeof Intent.Type

const IntentText = Schema.fromJsonString(Intent)
/** Reads what the store keeps of a request: an intent, or none. */
export const readIntent = Schema.decodeUnknownOption(IntentText)
/** Writes an intent for the store. */
export const writeIntent = Schema.encodeSync(IntentText)

/** A batch in a list. `at` is the time at which it began, in milliseconds. */
export interface ListedBatch extends Intent {
  readonly id: string
}

/** The list of a provider's batches. */
interface Listing {
  readonly provider: string
  readonly model: string
  readonly list: (after: string | undefined) => Effect.Effect<ReadonlyArray<ListedBatch>, ModelError>
}

/** Milliseconds that the clock of a provider may differ, and that the beginning of a batch may take. */
const tolerance = 15 * 60_000

/** Milliseconds that are looked back for an upload, which is exact. */
const day = 24 * 3_600_000

/** The most pages of a list that are read. */
const mostPages = 100

/**
 * Finds the batch of an intent. Without an upload it is the nearest in time of the same size, which may be another's: its
 * results tell. `isForeign` batches are others.
 */
export const findBatch = Effect.fnUntraced(function* (
  { list, model, provider }: Listing,
  intent: Intent,
  isForeign: (batch: string) => boolean
) {
  const oldest = intent.at - (intent.upload === undefined ? tolerance : day)
  const distance = ({ at }: ListedBatch): number => Math.abs(at - intent.at)
  const guesses: Array<ListedBatch> = []
  let after: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const batches = yield* list(after)
    const own = batches.find(({ upload }) => upload !== undefined && upload === intent.upload)
    if (own !== undefined) return own.id
    if (intent.upload === undefined) {
      guesses.push(
        ...batches.filter((one) => one.count === intent.count && distance(one) <= tolerance && !isForeign(one.id))
      )
    }
    if (batches.every(({ at }) => at < oldest)) {
      return guesses.toSorted((left, right) => distance(left) - distance(right))[0]?.id
    }
    after = batches.at(-1)?.id
  }
  const detail = "there are too many batches to find out whether this request was sent: delete its entry in the store"
  return yield* new ModelError({ provider, model, reason: { _tag: "Unknown" }, detail })
})
