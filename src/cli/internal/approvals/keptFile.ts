/** The approvals for good of a project, in the data folder of the user: a project can't write them. */
import { createHash } from "node:crypto"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { makeFolder, type Places, textOf } from "../config/places.ts"
import { writePrivate } from "../config/trust.ts"
import { LearnedRules } from "./learned.ts"

const Kept = Schema.Struct({ folder: Schema.String, learned: Schema.Array(LearnedRules) })

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Kept))

/** `folder` is the real path of the project. */
const fileOf = ({ data }: Places, folder: string): string =>
  join(data, "permissions", `${createHash("sha256").update(folder).digest("hex").slice(0, 32)}.json`)

/** Reads the approvals for good of a project. A file of another version has none. */
export const readKept = Effect.fnUntraced(function* (places: Places, folder: string) {
  const result = decode(yield* textOf(fileOf(places, folder)))
  return Result.isSuccess(result) && result.success.folder === folder ? result.success.learned : []
})

/** Keeps the approvals for good of a project. */
export const writeKept = Effect.fnUntraced(function* (
  places: Places,
  folder: string,
  learned: ReadonlyArray<LearnedRules>
) {
  yield* makeFolder(join(places.data, "permissions"))
  yield* writePrivate(fileOf(places, folder), `${JSON.stringify({ folder, learned }, null, 2)}\n`)
})
