/** The commands about schedules. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { json } from "../flags.ts"
import { load, runWithoutAgent, running } from "../root.ts"

const inSchedules = runWithoutAgent(() => import("../schedule.ts"))

const scheduleAdd = Command.make(
  "add",
  {
    name: Argument.String("name").pipe(Argument.withDescription("Identifies the schedule")),
    cron: Argument.String("times").pipe(
      Argument.withDescription("Minute, hour, day, month, weekday; a second before them is possible")
    ),
    words: Argument.String("prompt").pipe(
      Argument.withDescription("The prompt of each time"),
      Argument.variadic({ min: 1 })
    ),
    zone: Flag.String("zone").pipe(
      Flag.withDescription("The time zone, as Europe/Berlin; that of this machine by default"),
      Flag.optional
    ),
    thread: Flag.String("thread").pipe(
      Flag.withDescription("The thread, with {date} and {time} of the tick; name-{date} by default"),
      Flag.optional
    ),
    missed: Flag.Literals("missed", ["skip", "once"]).pipe(
      Flag.withDescription("Times at which nothing was up: skipped, or one run for all of them"),
      Flag.withDefault("skip")
    )
  },
  ({ thread, zone, ...options }) =>
    inSchedules((Schedule, context) =>
      Schedule.add(context, {
        ...options,
        thread: Option.getOrUndefined(thread),
        zone: Option.getOrUndefined(zone)
      })
    )
).pipe(
  Command.withDescription("Adds a prompt that comes by the clock"),
  Command.withExamples([
    { command: 'deepagents schedule add morning "0 7 * * 1-5" "What is new?"', description: "On workdays at seven" }
  ])
)

const scheduleRemove = Command.make("remove", { name: Argument.String("name") }, ({ name }) =>
  inSchedules((Schedule, context) => Schedule.remove(context, name))
).pipe(Command.withDescription("Removes a schedule; runs that it began go on"))

const scheduleList = Command.make("list", { json }, (options) =>
  inSchedules((Schedule, context) => Schedule.list(context, options.json))
).pipe(Command.withDescription("Lists the schedules of this folder, and their next times"))

const scheduleRun = Command.make(
  "run",
  {},
  Effect.fnUntraced(function* () {
    const Schedule = yield* load(() => import("../schedule.ts"))
    return yield* Schedule.run(yield* running)
  })
).pipe(Command.withDescription("Runs the schedules of this folder until it is ended; deepagents serve does so, too"))

export const schedule = Command.make("schedule").pipe(
  Command.withDescription("Prompts that come by the clock: add, list, remove, run"),
  Command.withSubcommands([scheduleAdd, scheduleList, scheduleRemove, scheduleRun])
)
