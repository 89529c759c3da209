/** The commands about sessions. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { json, off } from "../flags.ts"
import { load, runWithoutAgent } from "../root.ts"

export const session = Argument.String("session").pipe(
  Argument.withDescription("The id of a session, or its beginning or end (deepagents sessions)")
)

const inSessions = runWithoutAgent(() => import("../sessionsCommand.ts"))

/** `sessions` alone means `sessions list`. */
const listing = <const Name extends string>(name: Name) =>
  Command.make(
    name,
    {
      all: Flag.Boolean("all").pipe(Flag.withDescription("Sessions of all folders"), off),
      archived: Flag.Boolean("archived").pipe(Flag.withDescription("Archived sessions"), off),
      json,
      limit: Flag.Int("limit").pipe(Flag.withDescription("The most sessions"), Flag.withDefault(50))
    },
    (options) => inSessions((Sessions, { places }) => Sessions.list(places, options))
  ).pipe(Command.withDescription("Lists the sessions of this folder, the last one first"))

const show = Command.make("show", { session, json }, (options) =>
  inSessions((Sessions, { places }) => Sessions.show(places, options.session, options.json))
).pipe(Command.withDescription("Shows the messages and calls of a session"))

const fork = Command.make("fork", { session }, (options) =>
  inSessions((Sessions, { places }) => Sessions.fork(places, options.session))
).pipe(Command.withDescription("Copies a session into a new one, and prints its id"))

const diff = Command.make(
  "diff",
  {
    left: session,
    right: Argument.String("other").pipe(Argument.withDescription("The session to compare it with")),
    json
  },
  ({ json: asJson, left, right }) =>
    Effect.flatMap(
      load(() => import("../sessionsDiff.ts")),
      (Diff) => inSessions((_, { places }) => Diff.compare(places, left, right, asJson))
    )
).pipe(Command.withDescription("Shows what differs in two branches of a session, and what each took"))

const archive = Command.make(
  "archive",
  { session, undo: Flag.Boolean("undo").pipe(Flag.withDescription("Undoes the archiving; needs the whole id"), off) },
  (options) => inSessions((Sessions, { places }) => Sessions.archive(places, options.session, options.undo))
).pipe(Command.withDescription("Takes a session out of lists and searches"))

const exported = Command.make(
  "export",
  {
    session,
    format: Flag.Literals("format", ["markdown", "jsonl"]).pipe(
      Flag.withDescription("Markdown to read, or everything as lines of JSON"),
      Flag.withDefault("markdown")
    )
  },
  (options) => inSessions((Sessions, { places }) => Sessions.exported(places, options.session, options.format))
).pipe(Command.withDescription("Writes a session to the standard output"))

const search = Command.make(
  "search",
  { words: Argument.String("words").pipe(Argument.variadic({ min: 1 })), json },
  (options) => inSessions((Sessions, { places }) => Sessions.search(places, options.words, options.json))
).pipe(Command.withDescription("Finds messages that have all of these words"))

const copy = Command.make(
  "copy",
  {
    from: Argument.String("from").pipe(
      Argument.withDescription("The store: a file of SQLite, a folder, or the URL of Postgres or Redis")
    ),
    to: Argument.String("to").pipe(
      Argument.withDescription("The new store: threads.db, threads/, postgres://…, redis://…")
    ),
    json
  },
  ({ from, json: asJson, to }) => inSessions((Sessions) => Sessions.copy(from, to, asJson))
).pipe(Command.withDescription("Copies a whole store to another one, verifies it, and closes the first"))

const reopen = Command.make(
  "reopen",
  { store: Argument.String("store").pipe(Argument.withDescription("The store that was copied")) },
  ({ store }) => inSessions((Sessions) => Sessions.reopen(store))
).pipe(Command.withDescription("Opens a copied store for changes again. Only if nobody uses its copy"))

export const sessionsCommand = listing("sessions").pipe(
  Command.withDescription(
    "Lists the sessions of this folder; list, show, fork, diff, archive, export, search, copy, reopen"
  ),
  Command.withSubcommands([listing("list"), show, fork, diff, archive, exported, search, copy, reopen])
)
