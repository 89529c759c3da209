/** `deepagents schedule`: the inputs of a folder that come by the clock. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedules from "../../../server/Schedules.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import { Failure, fail, layerOrFail } from "../failure.ts"
import { print, printJson, table } from "../output.ts"
import { type Context, sessions } from "../work/app.ts"
import { openFolder, openRuns } from "../work/served.ts"

/** The flags of `schedule add`. */
export interface AddOptions {
  readonly name: string
  readonly cron: string
  readonly words: ReadonlyArray<string>
  readonly zone: string | undefined
  readonly thread: string | undefined
  readonly missed: "skip" | "once"
}

/** Works on the list of the folder. */
const onList = Effect.fnUntraced(function* <A, R>(
  { places }: Context,
  work: (tenant: string) => Effect.Effect<A, Schedules.ScheduleError, R>
) {
  const { storage, tenant } = yield* openFolder(places)
  return yield* work(tenant).pipe(
    Effect.mapError(
      ({ message, reason }) => new Failure({ exit: reason === "Unavailable" ? "failed" : "usage", message })
    ),
    Effect.provide(storage)
  )
})

const timeOf = ({ next, timeZone }: Schedules.ScheduleEntry): string =>
  DateTime.formatIsoZoned(DateTime.setZoneNamedUnsafe(next, timeZone)).slice(0, 16).replace("T", " ")

/** Adds a schedule. */
export const add = Effect.fnUntraced(function* (context: Context, options: AddOptions) {
  const { cron, missed, name, thread = `${name}-{date}`, words, zone } = options
  const input = words.join(" ").trim()
  if (input === "") return yield* fail("usage", "Add the prompt behind the times.")
  const agent = context.settings.agent?.value ?? "deep"
  const added = yield* onList(context, (tenant) =>
    Schedules.add({ name, cron, timeZone: zone, tenant, agent, thread, input, missed })
  )
  return yield* print(
    `Added. Its next time is ${timeOf(added)} (${visible(added.timeZone)}), while deepagents serve or deepagents schedule run is up in this folder.`
  )
})

/** Lists the schedules of the folder. */
export const list = Effect.fnUntraced(function* (context: Context, asJson: boolean) {
  const schedules = yield* onList(context, () => Schedules.list)
  if (asJson) {
    return yield* printJson({
      schedules: schedules.map(({ next, tenant: _, ...rest }) => ({ ...rest, next: DateTime.formatIso(next) }))
    })
  }
  if (schedules.length === 0)
    return yield* print("There are no schedules. Add one: deepagents schedule add morning '0 7 * * *' '…'")
  return yield* print(
    ...table(
      schedules.map((one) => [
        one.name,
        one.cron,
        one.timeZone,
        timeOf(one),
        one.agent,
        oneLine(one.input).slice(0, 80)
      ])
    )
  )
})

/** Removes a schedule. */
export const remove = Effect.fnUntraced(function* (context: Context, name: string) {
  yield* onList(context, () => Schedules.remove(name))
  return yield* print("Removed.")
})

/** Fires the schedules of the folder until it is ended. */
export const run = Effect.fnUntraced(
  function* (given: Context) {
    const { app, runs } = yield* openRuns(given)
    yield* Layer.build(layerOrFail("failed")(runs))
    const schedules = yield* onList(given, () => Schedules.list)
    yield* print(
      `${schedules.length} ${schedules.length === 1 ? "schedule" : "schedules"} of ${visible(given.places.project)} by ${visible(app.name)} (${visible(app.model)}); what it asks is in deepagents inbox. Ctrl-C ends it.`
    )
    return yield* Effect.never
  },
  Effect.scoped,
  (effect, { places }: Context) => Effect.provide(effect, sessions(places))
)
