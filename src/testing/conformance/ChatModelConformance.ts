/**
 * Checks that every chat model must pass, to be run against a layer of your own.
 *
 * A subject makes the model answer by a scenario: through a local server with the provider's wire format, or directly.
 * Each check brings its scenarios and inspects the layer's output.
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
import { NotConformant } from "./internal/assert.ts"
import { failureRules, interruptionRule } from "./internal/model/checkFailures.ts"
import { turnRules } from "./internal/model/checkTurns.ts"
import type * as model from "./internal/model/common.ts"

export { NotConformant }

/** The model's answer to one request: a text, tool calls, or a failure of a kind. */
export type Scenario = model.Scenario

/** A model under test. `layer` answers the n-th request by the n-th scenario; it is built anew for each check. */
export interface Subject<out E, out R> {
  readonly layer: (scenarios: ReadonlyArray<Scenario>) => Layer.Layer<ChatModel, E, R>
  /** Says whether the other side has seen the connection close; asked within a second of an interruption. */
  readonly closed?: Effect.Effect<boolean> | undefined
}

/** One check: run it under any test runner. It needs a live clock if the subject does. */
export interface Check<out E, out R> {
  readonly name: string
  readonly run: Effect.Effect<void, E | ModelError | NotConformant, R>
}

/** The checks, to be run one by one. */
export const suite = <E, R>(subject: Subject<E, R>): ReadonlyArray<Check<E, R>> =>
  [...turnRules, ...failureRules, interruptionRule(subject.closed)].map(([name, scenarios, body]) => ({
    name,
    run: Effect.provide(Effect.scoped(body), subject.layer(scenarios))
  }))
