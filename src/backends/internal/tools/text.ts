/** Texts and details that several file tools share. */
import * as Schema from "effect/Schema"
import type { Listing } from "../../../core/Backend.ts"
import type { Json } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"

/** Writes a path in a line of text. It is quoted if it would break the line or could be misread. */
export const showPath = (path: string): string => (/[\p{Cc}\u2028\u2029]/u.test(path) ? JSON.stringify(path) : path)

export const filePath = Schema.String.annotate({
  description: "The path of the file, from the root, for example /src/index.ts"
})

/** The most entries, or lines, that the details of a result have. */
export const maxDetails = 1_000

/** A listing as people are shown it. */
export const listingDetails = (path: string, { entries, truncated }: Listing): { readonly [key: string]: Json } => ({
  kind: "listing",
  path,
  count: entries.length,
  entries: entries.slice(0, maxDetails).map(({ kind, path, size }) => defined({ path, kind, size })),
  ...defined({ truncated })
})
