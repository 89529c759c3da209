/**
 * Inputs by the clock, in a stored list: each tick fires once, also after a restart and with several processes.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Schedules, Server } from "effect-deepagents/server"
 * import { MemorySessions } from "effect-deepagents/sessions"
 * import { Storage } from "effect-deepagents/stores"
 * import { TestChatModel } from "effect-deepagents/testing"
 *
 * const reporter = Agent.make({ name: "reporter", prompt: "You write the report of the day." })
 *
 * const program = Schedules.add({
 *   name: "morning",
 *   cron: "0 7 * * 1-5",
 *   timeZone: "Europe/Berlin",
 *   tenant: "acme",
 *   agent: "reporter",
 *   thread: "report-{date}",
 *   input: "Write the report.",
 *   missed: "once"
 * }).pipe(
 *   Effect.andThen(Layer.launch(Schedules.layer)),
 *   Effect.provide(Server.layer({ reporter }).pipe(Layer.provide(TestChatModel.script(["Monday."])))),
 *   Effect.provide([Storage.layerMemory, MemorySessions.layer])
 * )
 * ```
 */
import * as Clock from "effect/Clock"
import * as Cron from "effect/Cron"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { human } from "../core/Message.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { Storage } from "../stores/Storage.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { nameProblem } from "../support/text/names.ts"
import { post } from "./internal/posting.ts"
import { Runs } from "./internal/service.ts"
import * as shapes from "./internal/shapes.ts"

/** The options of a schedule. */
export interface Options {
  /** Identifies the schedule. */
  readonly name: string
  /** The times, as five fields (minute, hour, day, month, weekday), or six with the second first. */
  readonly cron: string
  /** The time zone of the times, as `Europe/Berlin`. Default: that of the machine that adds it. */
  readonly timeZone?: string | undefined
  /** The tenant whose thread takes the input. */
  readonly tenant: string
  /** The name of the agent, as the layer of runs has it. */
  readonly agent: string
  /** The id of the thread. `{date}` is the day of the tick and `{time}` its hour and minute, as `07-00`. */
  readonly thread: string
  /** The input of each tick, with the same `{date}` and `{time}`. */
  readonly input: string
  /**
   * Decides about ticks that are more than five minutes late, because no process was up: `skip` ignores them, `once` makes one
   * run for all. Default: `"skip"`.
   */
  readonly missed?: "skip" | "once" | undefined
}

/** A schedule of the list, and its next tick. */
export type ScheduleEntry = { readonly [Key in keyof Options]-?: Exclude<Options[Key], undefined> } & {
  readonly next: DateTime.Utc
}

/** The list can't be changed or read. */
export class ScheduleError extends TaggedError<ScheduleError>()("ScheduleError", {
  reason: Schema.Literals(["AlreadyExists", "Invalid", "NotFound", "Unavailable"]),
  name: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return this.problem
  }
}

const Row = Schema.fromJsonString(
  Schema.Struct({
    v: Schema.Literal(1),
    name: Schema.String,
    cron: Schema.String,
    timeZone: Schema.String,
    tenant: Schema.String,
    agent: Schema.String,
    thread: Schema.String,
    input: Schema.String,
    missed: Schema.Literals(["skip", "once"]),
    /** The next tick, in milliseconds since 1970. */
    next: Schema.Finite
  })
)
type Row = typeof Row.Type
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownResult(Row)

const space = "schedules"

const openTable = Storage.useSync(({ table }) => table("schedules"))

const orUnavailable = (name: string) =>
  Effect.mapError(
    () => new ScheduleError({ reason: "Unavailable", name, problem: "the list of schedules can't be read or written" })
  )

const invalid = (name: string, problem: string) => new ScheduleError({ reason: "Invalid", name, problem })

/** The ticks of a schedule, or the problem of its times. Some times never come: 30 February. */
const nextOf = (cron: Cron.Cron, after: number): Result.Result<number, string> =>
  Result.try({ try: () => Cron.next(cron, after).getTime(), catch: () => "these times never come" })

const refuseAdd = makeEffectCheck<ScheduleError>("Schedules.add", shapes.schedulesAdd, (_, problem) =>
  Effect.fail(invalid("", problem))
)

/** Adds a schedule, which begins with its next tick. Fails with `AlreadyExists` if its name is taken. */
export const add = Effect.fnUntraced(function* (
  schedule: Options
): Effect.fn.Return<ScheduleEntry, ScheduleError, Storage> {
  yield* refuseAdd(schedule) ?? Effect.void
  const { name } = schedule
  const problem = nameProblem(name, 100)
  if (problem !== undefined) return yield* invalid(name, `the name of the schedule: ${problem}`)
  const threadProblem = nameProblem(schedule.thread, 200)
  if (threadProblem !== undefined) return yield* invalid(name, `the thread: ${threadProblem}`)
  const unknown = /\{(?!(?:date|time)\})[^{}]*\}/.exec(schedule.thread)?.[0]
  if (unknown !== undefined) {
    return yield* invalid(name, `the thread: ${JSON.stringify(unknown)} is nothing of a tick; write {date} or {time}`)
  }
  const timeZone = schedule.timeZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone
  const cron = Cron.parse(schedule.cron, timeZone)
  if (Result.isFailure(cron)) {
    return yield* invalid(
      name,
      `${cron.failure.message}: ${JSON.stringify(cron.failure.input)}; a schedule is as "0 7 * * 1-5" in a zone as Europe/Berlin`
    )
  }
  const next = nextOf(cron.success, yield* Clock.currentTimeMillis)
  if (Result.isFailure(next)) return yield* invalid(name, next.failure)
  const { agent, input, missed = "skip", tenant, thread } = schedule
  const row: Row = {
    v: 1,
    name,
    cron: schedule.cron,
    timeZone,
    tenant,
    agent,
    thread,
    input,
    missed,
    next: next.success
  }
  const table = yield* openTable
  if (!(yield* orUnavailable(name)(table.swap(space, name, undefined, encodeRow(row))))) {
    return yield* new ScheduleError({
      reason: "AlreadyExists",
      name,
      problem: `there is a schedule ${JSON.stringify(name)}; remove it first, or take another name`
    })
  }
  return toListed(row)
})

const toListed = ({ next, v: _, ...row }: Row): ScheduleEntry => ({ ...row, next: DateTime.makeUnsafe(next) })

const pageSize = 500

/** Reads all rows, with their texts. A row of another version is left alone. */
const readRows = Effect.gen(function* () {
  const table = yield* openTable
  const entries: Array<{ readonly row: Row; readonly text: string }> = []
  for (let after: string | undefined; ;) {
    const rows = yield* orUnavailable("")(table.scan(space, { after, limit: pageSize }))
    for (const { key, value } of rows) {
      const row = decodeRow(value)
      if (Result.isSuccess(row)) entries.push({ row: row.success, text: value })
      else yield* Effect.logError(`The schedule ${JSON.stringify(key)} can't be read: it does not fire`)
    }
    after = rows.at(-1)?.key
    if (rows.length < pageSize) return entries
  }
})

/** The schedules, by name. */
export const list: Effect.Effect<ReadonlyArray<ScheduleEntry>, ScheduleError, Storage> = Effect.map(readRows, (rows) =>
  rows.map(({ row }) => toListed(row))
)

/** Removes a schedule. Runs that it began go on. Fails with `NotFound` for an unknown name. */
export const remove = Effect.fnUntraced(function* (name: string): Effect.fn.Return<void, ScheduleError, Storage> {
  const table = yield* openTable
  for (;;) {
    const text = yield* orUnavailable(name)(
      nameProblem(name, 100) === undefined ? table.get(space, name) : Effect.undefined
    )
    if (text === undefined) {
      return yield* new ScheduleError({
        reason: "NotFound",
        name,
        problem: `there is no schedule ${JSON.stringify(name)}`
      })
    }
    // A tick may have changed it.
    if (yield* orUnavailable(name)(table.swap(space, name, text, undefined))) return
  }
})

/** The lateness at which a tick counts as missed: a process that starts anew is not late. */
const patience = 300_000

/** The time after which the list is read again, since other processes change it. */
const rest = 10_000

/** The time after which a tick is tried again that nobody could take. */
const retryDelay = 2_000

/** Gives the latest tick that is not after `now`. The search of Effect is strict, and counts in seconds. */
const lastTick = (cron: Cron.Cron, now: number): number => {
  const tick = Cron.prev(cron, now + 1_000).getTime()
  return tick <= now ? tick : Cron.prev(cron, tick).getTime()
}

/** Fills in the day and the time of a tick. */
const fillTick = (template: string, tick: number, timeZone: string): string => {
  const text = DateTime.formatIsoZoned(DateTime.makeZonedUnsafe(tick, { timeZone }))
  return template.replaceAll("{date}", text.slice(0, 10)).replaceAll("{time}", text.slice(11, 16).replace(":", "-"))
}

/** Fires the last due tick of a schedule, and gives the time of its next tick. */
const fire = Effect.fnUntraced(function* ({ row, text }: { readonly row: Row; readonly text: string }) {
  const now = yield* Clock.currentTimeMillis
  if (row.next > now) return row.next
  const { agent, input, missed, name, tenant, thread, timeZone } = row
  const cron = Cron.parseUnsafe(row.cron, timeZone)
  const tick = Math.max(row.next, lastTick(cron, now))
  const next = Result.getOrElse(nextOf(cron, now), () => Number.MAX_SAFE_INTEGER)
  const table = yield* openTable
  // Another process may have fired it, or removed it, since the list was read.
  if ((yield* table.get(space, name)) !== text) return next
  if (missed === "once" || now - tick <= patience) {
    const failure = yield* post(yield* Runs, yield* SessionStore, {
      principal: { tenant, id: `schedule ${name}`, roles: [] },
      thread: fillTick(thread, tick, timeZone),
      agent,
      message: human(fillTick(input, tick, timeZone)),
      id: `schedule:${name}:${new Date(tick).toISOString()}`,
      title: input
    }).pipe(Effect.as(undefined), Effect.catch(Effect.succeed))
    if (failure?.reason === "TooMany" || failure?.reason === "Unavailable") return now + retryDelay
    if (failure !== undefined) {
      if (typeof failure.reason !== "string" && failure.reason._tag === "Unavailable") return now + retryDelay
      yield* Effect.logError(`The schedule ${JSON.stringify(name)} did not fire: ${failure.message}`)
    }
  }
  // The input counts once by its id: a process that ends before this fires nothing twice.
  yield* table.swap(space, name, text, encodeRow({ ...row, next }))
  return next
})

/**
 * Fires the schedules of the `Storage` until its scope closes. Several processes may have it: a tick is the id of its input, and
 * counts once. A tick whose input can't be taken now is tried again; a refused tick is
 * logged.
 */
export const layer: Layer.Layer<never, never, Runs | SessionStore | Storage> = Layer.effectDiscard(
  Effect.gen(function* () {
    const round = Effect.gen(function* () {
      const rows = yield* readRows
      const now = yield* Clock.currentTimeMillis
      let wake = now + rest
      for (const row of rows) {
        const next = yield* Effect.catchCause(fire(row), (cause) =>
          Effect.as(Effect.logError(`The schedule ${JSON.stringify(row.row.name)} did not fire`, cause), now + rest)
        )
        wake = Math.min(wake, next)
      }
      return Math.max(0, wake - (yield* Clock.currentTimeMillis))
    }).pipe(Effect.catch((error) => Effect.as(Effect.logError("The schedules can't be read", error), rest)))
    yield* Effect.forkScoped(Effect.forever(Effect.flatMap(round, (millis) => Effect.sleep(millis))))
  })
)
