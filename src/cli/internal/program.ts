/** Runs the command, and ends with the exit code that says what became of it. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import manifest from "../../../package.json" with { type: "json" }
import { didYouMean } from "../../support/names.ts"
import { command } from "./commands.ts"
import { exits, Failure } from "./failure.ts"
import { sharedNames } from "./flags.ts"

/** Ends when nobody reads the output any more: what is running is interrupted, as by Ctrl-C. */
const closed = Effect.callback<never, Failure>((resume) => {
  const onError = (error: NodeJS.ErrnoException) => {
    const isClosed = error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED"
    resume(Effect.fail(new Failure({ exit: isClosed ? "closed" : "failed", message: isClosed ? "" : error.message })))
  }
  process.stdout.on("error", onError)
})

let signalled: "interrupted" | "terminated" = "interrupted"

const codeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return exits.done
  if (Cause.hasInterruptsOnly(exit.cause)) return exits[signalled]
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (error instanceof Failure) return exits[error.exit]
  return CliError.isCliError(error) ? exits.usage : exits.failed
}

/** The flags that all commands share and that may have been meant: the parser knows those of the command alone. */
const meant = (error: CliError.CliError): string =>
  (error._tag === "ShowHelp" ? error.errors : [])
    .flatMap((one) => (one._tag === "UnrecognizedOption" && one.suggestions.length === 0 ? [one.option] : []))
    .map((option) => didYouMean(option, sharedNames))
    .filter((text) => text !== "")
    .map((text) => `\n ${text}\n`)
    .join("")

const explained = (cause: Cause.Cause<unknown>) =>
  Effect.sync(() => {
    if (Cause.hasInterruptsOnly(cause)) return
    const error = Option.getOrUndefined(Cause.findErrorOption(cause))
    // Errors of the command line were said when it was read.
    if (CliError.isCliError(error)) return void process.stderr.write(meant(error))
    const text = error instanceof Failure ? error.message : Cause.pretty(cause)
    if (text !== "") process.stderr.write(`${text}\n`)
  })

/** Starts the program in this process. */
export const run = (services: Layer.Layer<Command.Environment>): void => {
  process.once("SIGTERM", () => {
    signalled = "terminated"
  })
  const program = Command.run(command, { version: manifest.version }).pipe(
    Effect.raceFirst(closed),
    Effect.tapCause(explained),
    // The standard output is for answers.
    Effect.provideService(Logger.LogToStderr, true),
    Effect.provide(services)
  )
  NodeRuntime.runMain(program, {
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(codeOf(exit))
  })
}
