/**
 * Runs of an agent by the clock: each scheduled time fires once in the whole cluster, on any runner.
 *
 * ```ts
 * import { Cron as Schedule, DateTime, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { AgentEntity, Cron } from "effect-deepagents/durable"
 *
 * const agent = Agent.make({ name: "reporter", prompt: "You write the report of the day." })
 * const reporter = AgentEntity.make({ name: "reporter", agent })
 *
 * const runner = Layer.merge(
 *   AgentEntity.layer(reporter),
 *   Cron.layer(reporter, {
 *     name: "morning",
 *     cron: Schedule.parseUnsafe("0 7 * * 1-5", "Europe/Berlin"),
 *     threadId: (at) => `report-${DateTime.formatIsoDateUtc(at)}`,
 *     input: "Write it",
 *     missed: "once"
 *   })
 * )
 * ```
 */
import * as ClusterCron from "effect/cluster/ClusterCron"
import type * as Sharding from "effect/cluster/Sharding"
import type * as EffectCron from "effect/Cron"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { makeLayerCheck } from "../support/options/check.ts"
import * as AgentClient from "./AgentClient.ts"
import type { AgentEntity } from "./AgentEntity.ts"
import type { Input } from "./internal/inputs.ts"
import * as shapes from "./internal/shapes.ts"

/** The longest delay that is not a missed time, because a runner may have died. */
const patience = Duration.minutes(5)

/** Practically forever. */
const ever = Duration.weeks(5_000)

/** The options of this module. */
export interface Options {
  /** Stored messages refer to the name, so keep it. */
  readonly name: string
  /** The schedule, in its own time zone. */
  readonly cron: EffectCron.Cron
  /** The thread. A function gets the scheduled time. */
  readonly threadId: string | ((at: DateTime.Utc) => string)
  /** The input. A function gets the scheduled time. */
  readonly input: Input | ((at: DateTime.Utc) => Input)
  /**
   * Decides about times at which no runner was up for more than five minutes: `skip` (the default) ignores them, `once` makes
   * one run for all, and `all` one for each, the oldest first unless a runner dies meanwhile.
   */
  readonly missed?: "skip" | "once" | "all" | undefined
}

/** Retries while the storage is unavailable, so that no run is lost. */
const patiently = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("1 minute")])

const refuseLayer = makeLayerCheck("Cron.layer", shapes.cronLayer)

/**
 * Posts the input at each scheduled time. Provide the layer on all runners; one of them posts. The time identifies the input,
 * so posting it again after a crash has no effect.
 */
export const layer = <O, E, R>(
  entity: AgentEntity<O, E, R>,
  options: Options
): Layer.Layer<never, never, Sharding.Sharding> => {
  const refused = refuseLayer(options)
  if (refused !== undefined) return refused
  const { cron, input, missed, name, threadId } = options
  return ClusterCron.make({
    name: `Agent/${entity.name}/${name}`,
    cron,
    calculateNextRunFromPrevious: missed === "all",
    skipIfOlderThan: missed === "all" || missed === "once" ? ever : patience,
    execute: Effect.gen(function* () {
      const at = yield* ClusterCron.CurrentScheduledTime
      const thread = yield* AgentClient.of(entity, typeof threadId === "string" ? threadId : threadId(at))
      const post = thread.post(typeof input === "function" ? input(at) : input, {
        id: `cron/${name}/${DateTime.formatIso(at)}`
      })
      yield* Effect.retry(post, { schedule: patiently, while: ({ _tag }) => _tag !== "SessionError" })
    })
  })
}
