/**
 * Checks your own index of documents.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { MemoryIndex } from "effect-deepagents/rag"
 * import * as RagIndexConformance from "effect-deepagents/rag/RagIndexConformance"
 *
 * for (const check of RagIndexConformance.suite(MemoryIndex.layer)) it.live(check.name, () => check.run)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { NotConformant } from "./internal/conformance/assert.ts"
import { rules } from "./internal/conformance/checks.ts"
import type { RagError } from "./RagError.ts"
import { RagIndex } from "./RagIndex.ts"

export { NotConformant }

/** One check, for any test runner with a live clock. */
export interface Check<E, R> {
  readonly name: string
  readonly run: Effect.Effect<void, E | RagError | NotConformant, R>
}

/** Lists the checks of an index. Each gets an empty index: a fresh build of the layer. */
export const suite = <E, R>(layer: Layer.Layer<RagIndex, E, R>): ReadonlyArray<Check<E, R>> =>
  rules.map(([name, body]) => ({ name, run: Effect.provide(RagIndex.use(body), Layer.fresh(layer)) }))
