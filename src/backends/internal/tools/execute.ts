/** The `execute` tool: runs a command and reports its last lines while it runs. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Sandbox from "../../../core/Sandbox.ts"
import * as Tool from "../../../core/Tool.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as ToolError from "../../../core/ToolError.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import { defined } from "../../../support/json/defined.ts"
import * as CommandRisk from "../../CommandRisk.ts"
import { startProcess } from "../processes/tools.ts"
import type { Kit } from "./kit.ts"
import { headLength, keep, type OutputFile, makeTranscript, tailLength, type Transcript } from "./transcript.ts"

/** The interval at which a running command reports its last lines, and how many of them. */
const progressEvery = "500 millis"
const progressLines = 5
const progressLength = 1_000

/** The part of the output that is reported of a command that took too long. */
const timeoutLines = 50
const timeoutLength = 4_000

/** The time that a command may run: if the model does not say, and at most. */
export interface ExecuteLimits {
  readonly timeout: Duration.Duration
  readonly maxTimeout: Duration.Duration
  /** Commands may be started in the background. */
  readonly background: boolean
}

/** The last lines, as a text that can be sent: a pair that was cut is not left in halves. */
const lastLines = (transcript: Transcript, lines: number, length: number): string =>
  transcript.tail(length).trimEnd().split("\n").slice(-lines).join("\n").toWellFormed()

const inSeconds = (seconds: number): string => `${seconds} second${seconds === 1 ? "" : "s"}`

const cutNote = (left: number, outputFile: OutputFile | undefined): string => {
  const where =
    outputFile === undefined
      ? "to see them, run it again with its output in a file, and read that in parts"
      : outputFile.isWhole
        ? `all of the output is in the file ${outputFile.path}: search it, or read it in parts`
        : `the beginning of the output, up to the largest size of a file, is in the file ${outputFile.path}: search it, or read it in parts`
  return `\n[… ${left} characters left out; ${where} …]\n`
}

/** The end of a command. */
type CommandEnd = Omit<Extract<Sandbox.ExecuteEvent, { readonly _tag: "Exited" }>, "_tag">

const leftNote = (left: ReadonlyArray<string>, hasBackground: boolean): string =>
  [
    `. It left behind: ${left.join(", ")}, which ${left.length === 1 ? "was" : "were"} ended.`,
    ...(hasBackground ? ["Use background: true for what has to go on."] : [])
  ].join(" ")

const render = (
  transcript: Transcript,
  outputFile: OutputFile | undefined,
  event: CommandEnd,
  hasBackground: boolean
): string => {
  const { left, text } = transcript.shown()
  const output =
    left === 0
      ? text
      : text.slice(0, headLength).toWellFormed() + cutNote(left, outputFile) + text.slice(headLength).toWellFormed()
  const end =
    event.exitCode === 0 ? "Command succeeded with exit code 0" : `Command failed with exit code ${event.exitCode}`
  return [
    output === "" ? "[No output]" : output.endsWith("\n") ? output.slice(0, -1) : output,
    ...(event.truncated ? ["[The middle of the output was too much, and was left out]"] : []),
    `[${end}${event.left === undefined ? "" : leftNote(event.left, hasBackground)}]`
  ].join("\n")
}

const tooLong = (
  transcript: Transcript,
  outputFile: OutputFile | undefined,
  seconds: number,
  most: number
): ToolError.ToolError => {
  const output = lastLines(transcript, timeoutLines, timeoutLength)
  const more = seconds < most ? `give it a longer timeout (at most ${inSeconds(most)}), or ` : ""
  return new ToolError.ToolError({
    reason: "TimedOut",
    message: [
      `The command was stopped: it was not done within ${inSeconds(seconds)}. To get further, ${more}have it do less at once.`,
      ...(outputFile === undefined
        ? []
        : [`${outputFile.isWhole ? "All" : "The beginning"} of its output is in the file ${outputFile.path}.`]),
      output === "" ? "It wrote nothing." : `Its output ended with:\n${output}`
    ].join("\n")
  })
}

/** Runs a command to its end, and reports its last lines meanwhile. */
const runCommand = Effect.fnUntraced(function* (
  { command, timeout }: { readonly command: string; readonly timeout?: number },
  limits: ExecuteLimits
) {
  const most = Duration.toSeconds(limits.maxTimeout)
  if (timeout !== undefined && !(timeout > 0 && timeout <= most)) {
    return yield* ToolError.make(`timeout is in seconds, more than 0 and at most ${most}; you gave ${timeout}`)
  }
  const limit = timeout === undefined ? limits.timeout : Duration.seconds(timeout)
  const sandbox = yield* Sandbox.Sandbox
  const { emit } = yield* ToolContext
  const transcript = makeTranscript()
  let fresh = false
  const run = sandbox.executeStream(command, { timeout: limit }).pipe(
    Stream.runFold(
      (): CommandEnd => ({ exitCode: -1, truncated: false }),
      (end, event) => {
        if (event._tag === "Exited") return event
        transcript.push(event.text)
        fresh = true
        return end
      }
    ),
    Effect.catchReason("BackendError", "TimedOut", () =>
      Effect.flatMap(keep(sandbox, transcript), (outputFile) =>
        Effect.fail(tooLong(transcript, outputFile, Duration.toSeconds(limit), most))
      )
    )
  )
  // By the clock and not by the piece: a command that writes byte by byte makes no more events than another.
  const watch = Effect.sleep(progressEvery).pipe(
    Effect.andThen(
      Effect.suspend(() => {
        if (!fresh) return Effect.void
        fresh = false
        return emit({ output: lastLines(transcript, progressLines, progressLength) })
      })
    ),
    Effect.forever
  )
  const ended = yield* Effect.raceFirst(run, watch)
  const { exitCode, left, truncated } = ended
  const cut = truncated || transcript.shown().left > 0
  const file = yield* keep(sandbox, transcript)
  const outputFile = file === undefined ? undefined : { ...file, isWhole: file.isWhole && !truncated }
  return ToolOutput.make(render(transcript, outputFile, ended, limits.background), {
    isError: exitCode !== 0,
    details: { kind: "command", exitCode, truncated: cut, ...defined({ path: outputFile?.path, left }) }
  })
})

const textOf = (command: unknown): string => (typeof command === "string" ? command : "")

export const execute = (kit: Kit, limits: ExecuteLimits): Tool.Tool<Sandbox.Sandbox | ToolContext> => {
  const description = [
    "Runs a command line in a POSIX shell, in the working directory, and gives its output (stdout and stderr together) and its exit code.",
    "It has no input, so it must not ask for any. Each command has a shell of its own: what one sets, the next does not have.",
    `Of more than ${headLength + tailLength} characters of output the middle is left out, and all of it is in a file.`,
    `It is stopped after ${inSeconds(Duration.toSeconds(limits.timeout))}, or after timeout.`
  ].join(" ")
  const parameters = {
    command: Schema.NonEmptyString.annotate({ description: "The command line" }),
    timeout: Schema.optionalKey(
      Schema.Finite.annotate({
        description: `How long it may take, in seconds, at most ${Duration.toSeconds(limits.maxTimeout)}`
      })
    )
  }
  const annotations = { destructive: true, openWorld: true, volatile: true, runsCommands: true, aliases: ["Bash"] }
  if (!limits.background) {
    return Tool.make("execute", {
      description,
      parameters,
      annotations,
      describe: ({ command }) => CommandRisk.describe(textOf(command)),
      execute: (args) => kit.tell(runCommand(args, limits))
    })
  }
  return Tool.make("execute", {
    description: `${description} What shall go on, such as a server, needs background.`,
    parameters: {
      ...parameters,
      background: Schema.optionalKey(
        Schema.Boolean.annotate({ description: "Lets it go on, and gives its id and its first output" })
      ),
      pty: Schema.optionalKey(
        Schema.Boolean.annotate({ description: "Gives it a terminal in the background, if it asks for one" })
      )
    },
    annotations,
    describe: ({ background, command }) =>
      `${background === true ? "In the background: " : ""}${CommandRisk.describe(textOf(command))}`,
    execute: ({ background = false, pty = false, ...args }) =>
      background ? startProcess(args.command, pty) : kit.tell(runCommand(args, limits))
  })
}
