/** Runs the command, and exits with the code of its outcome. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import manifest from "../../../package.json" with { type: "json" }
import { valueAt } from "../../support/json/valueAt.ts"
import { didYouMean } from "../../support/text/names.ts"
import { visible } from "../../support/text/untrusted.ts"
import { command } from "./commands/commands.ts"
import { sharedNames } from "./commands/flags.ts"
import { exits, Failure } from "./failure.ts"

/** Fails when the reader of the output leaves. The running work is interrupted, as by Ctrl-C. */
const closed = Effect.callback<never, Failure>((resume) => {
  const onError = (error: NodeJS.ErrnoException) => {
    const isClosed = error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED"
    const message = isClosed ? "" : `The output can't be written: ${error.message}`
    resume(Effect.fail(new Failure({ exit: isClosed ? "closed" : "failed", message })))
  }
  process.stdout.on("error", onError)
})

/** Fails when the terminal closes, so that no command keeps running. The system may report it several times. */
const hungUp = Effect.callback<never, Failure>((resume) => {
  process.on("SIGHUP", () => resume(Effect.fail(new Failure({ exit: "hungUp", message: "" }))))
})

let signalled: "interrupted" | "terminated" = "interrupted"

const codeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return exits.done
  if (Cause.hasInterruptsOnly(exit.cause)) return exits[signalled]
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (error instanceof Failure) return exits[error.exit]
  return CliError.isCliError(error) ? exits.usage : exits.failed
}

/** Flags of similar programs, and the commands that do the same here. */
const commandsByFlag = {
  "--resume": "resume",
  "--continue": "resume",
  "-r": "resume",
  "-c": "resume",
  "--print": 'run "…"',
  "-p": 'run "…"'
}

/** Suggests a flag or command for a typo. The parser itself knows the flags of one command only. */
const suggestFlag = (error: CliError.CliError): string => {
  if (error._tag === "UnrecognizedOption") {
    const command = valueAt<string>(commandsByFlag, error.option)
    if (command !== undefined) return ` This is a command: deepagents ${command}`
    return didYouMean(error.option, [...error.suggestions, ...sharedNames])
  }
  // A misspelt sub-command can not be a prompt.
  if (error._tag !== "UnknownSubcommand" || error.suggestions.length > 0 || (error.parent?.length ?? 0) > 1) return ""
  const question = didYouMean(`--${error.subcommand}`, ["--help", "--version"])
  if (question !== "") return question
  // A folder, or a prompt, was taken for a command.
  const text = JSON.stringify(error.subcommand)
  return /^(?:[/~.]|[A-Za-z]:)/.test(error.subcommand)
    ? ` To work in a folder: deepagents --cwd ${text}`
    : ` To ask the agent: deepagents run ${text}`
}

/** The message of an error. It leaves out the suggestions for a flag: `suggestFlag` knows the flags of all commands. */
const headOf = (error: CliError.CliError): string =>
  error._tag === "UnrecognizedOption" ? (error.message.split("\n")[0] ?? "") : error.message

/** Reports a wrong command line without the help text, since the standard output is for answers. */
const presenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.sync(() => {
          const problems = event.errors.map((error) => visible(`${headOf(error)}\n\n ${suggestFlag(error)}`).trimEnd())
          process.stderr.write(`${problems.join("\n")}\n\nAll flags: ${event.commandPath.join(" ")} --help\n`)
        })
      : CliOutput.defaultPresenter.present(event)
})

const explained = (cause: Cause.Cause<unknown>) =>
  Effect.sync(() => {
    if (Cause.hasInterruptsOnly(cause)) return
    const error = Option.getOrUndefined(Cause.findErrorOption(cause))
    // The presenter reported errors of the command line already.
    if (CliError.isCliError(error)) return
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
    Effect.raceFirst(hungUp),
    Effect.tapCause(explained),
    // The standard output is for answers.
    Effect.provideService(Logger.LogToStderr, true),
    Effect.provide(presenter),
    Effect.provide(services)
  )
  NodeRuntime.runMain(program, {
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(codeOf(exit))
  })
}
