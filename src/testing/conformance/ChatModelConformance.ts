/**
 * Checks your own chat model.
 *
 * A subject makes the model answer by scenarios: through a local server with the provider's wire format, or directly.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import type { Layer } from "effect"
 * import type { ChatModel } from "effect-deepagents"
 * import { ChatModelConformance } from "effect-deepagents/testing/conformance"
 *
 * declare const layer: (scenarios: ReadonlyArray<ChatModelConformance.Scenario>) => Layer.Layer<ChatModel.ChatModel>
 *
 * for (const check of ChatModelConformance.suite({ layer })) it.live(check.name, () => check.run)
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { ChatModel } from "../../core/ChatModel.ts"
import type { ModelError } from "../../core/ModelError.ts"
import type { Check } from "./internal/assert.ts"
import { failureRules, interruptionRule } from "./internal/model/checkFailures.ts"
import { turnRules } from "./internal/model/checkTurns.ts"
import type * as model from "./internal/model/common.ts"

/** The answer to one request: a text, tool calls, or a failure. */
export type Scenario = model.Scenario

/** A model under test. `layer` answers the n-th request by the n-th scenario. Each check builds it anew. */
export interface Subject<out E, out R> {
  readonly layer: (scenarios: ReadonlyArray<Scenario>) => Layer.Layer<ChatModel, E, R>
  /** Returns true if the server has seen the connection close, within a second of an interruption. */
  readonly closed?: Effect.Effect<boolean> | undefined
}

/** Lists the checks. They need a live clock if the subject does. */
export const suite = <E, R>(subject: Subject<E, R>): ReadonlyArray<Check<E | ModelError, R>> =>
  [...turnRules, ...failureRules, interruptionRule(subject.closed)].map(([name, scenarios, body]) => ({
    name,
    run: Effect.provide(Effect.scoped(body), subject.layer(scenarios))
  }))
