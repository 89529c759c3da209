/**
 * Runs of an agent by the clock: each time fires once in the whole cluster, on whichever runner is there.
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
import * as AgentClient from "./AgentClient.ts"
import type { AgentEntity } from "./AgentEntity.ts"
import type { Input } from "./internal/inputs.ts"

/** A run may begin so late and still be the one of its time: a runner may have died just then. */
const patience = Duration.minutes(5)

/** As good as forever. */
const ever = Duration.weeks(5_000)

/**
 * `cron` says when, in its own time zone. `threadId` and `input` may depend on the time that a run is for. `missed`
 * says what becomes of the times at which no runner was there: nothing (`skip`, the default; up to five minutes late is
 * not missed), one run for all of them (`once`), or one run each (`all`), oldest first unless a runner dies meanwhile.
 * `name` is what stored messages go by, so keep it.
 */
export interface Options {
  readonly name: string
  readonly cron: EffectCron.Cron
  readonly threadId: string | ((at: DateTime.Utc) => string)
  readonly input: Input | ((at: DateTime.Utc) => Input)
  readonly missed?: "skip" | "once" | "all" | undefined
}

/** While the storage is not there: the run must not be lost for that. */
const patiently = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("1 minute")])

/**
 * Posts the input when its time has come. All runners have it; one of them does it. An input is identified by its time,
 * so one that is posted again after a crash is not taken again.
 */
export const layer = <O, E, R>(
  entity: AgentEntity<O, E, R>,
  { cron, input, missed, name, threadId }: Options
): Layer.Layer<never, never, Sharding.Sharding> =>
  ClusterCron.make({
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
