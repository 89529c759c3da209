/** The part of the tree of commands that is about sessions. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { Context } from "./app.ts"
import { json, off } from "./flags.ts"

export const session = Argument.String("session").pipe(
  Argument.withDescription("Its id, or the beginning or end of it (deepagents sessions)")
)

const load = Effect.promise(() => import("./sessionsCommand.ts"))

export const sessionsCommand = <E, R>(looking: Effect.Effect<Context, E, R>) => {
  /** `sessions` alone is the same as `sessions list`. */
  const listing = <const Name extends string>(name: Name) =>
    Command.make(
      name,
      {
        all: Flag.Boolean("all").pipe(Flag.withDescription("Of all folders"), off),
        archived: Flag.Boolean("archived").pipe(Flag.withDescription("Those that were archived"), off),
        json,
        limit: Flag.Int("limit").pipe(Flag.withDescription("At most so many"), Flag.withDefault(50))
      },
      Effect.fnUntraced(function* (options) {
        const { places } = yield* looking
        return yield* (yield* load).list(places, options)
      })
    ).pipe(Command.withDescription("Lists the sessions of this folder, the last one first"))

  const show = Command.make(
    "show",
    { session, json },
    Effect.fnUntraced(function* (options) {
      const { places } = yield* looking
      return yield* (yield* load).show(places, options.session, options.json)
    })
  ).pipe(Command.withDescription("Shows what was said and done in a session"))

  const fork = Command.make(
    "fork",
    { session },
    Effect.fnUntraced(function* (options) {
      const { places } = yield* looking
      return yield* (yield* load).fork(places, options.session)
    })
  ).pipe(Command.withDescription("Makes a session that begins with all that another one has, and prints its id"))

  const archive = Command.make(
    "archive",
    { session, undo: Flag.Boolean("undo").pipe(Flag.withDescription("Takes it back; needs the whole id"), off) },
    Effect.fnUntraced(function* (options) {
      const { places } = yield* looking
      return yield* (yield* load).archive(places, options.session, options.undo)
    })
  ).pipe(Command.withDescription("Takes a session out of lists and searches"))

  const exported = Command.make(
    "export",
    {
      session,
      format: Flag.Literals("format", ["markdown", "jsonl"]).pipe(
        Flag.withDescription("To be read, or everything as lines of JSON"),
        Flag.withDefault("markdown")
      )
    },
    Effect.fnUntraced(function* (options) {
      const { places } = yield* looking
      return yield* (yield* load).exported(places, options.session, options.format)
    })
  ).pipe(Command.withDescription("Writes a session to the standard output"))

  const search = Command.make(
    "search",
    { words: Argument.String("words").pipe(Argument.variadic({ min: 1 })), json },
    Effect.fnUntraced(function* (options) {
      const { places } = yield* looking
      return yield* (yield* load).search(places, options.words, options.json)
    })
  ).pipe(Command.withDescription("Finds messages that have all of these words"))

  return listing("sessions").pipe(
    Command.withDescription("Lists the sessions of this folder; list, show, fork, archive, export, search"),
    Command.withSubcommands([listing("list"), show, fork, archive, exported, search])
  )
}
