/** Regular expressions in linear time: a large module, which a search for a text does not need. */
import * as Effect from "effect/Effect"
import type { RE2JS } from "re2js"
import { onDemand } from "../../../support/effect/once.ts"

export type Re2 = typeof RE2JS

/** Loads the module. */
export const re2 = Effect.map(
  onDemand(() => import("re2js")),
  (module): Re2 => module.RE2JS
)
