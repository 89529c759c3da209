/**
 * Prints runs to the terminal, for scripts and first programs.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { TestChatModel } from "effect-deepagents/testing"
 * import { Printer } from "effect-deepagents/view"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const program = Printer.run(agent, "Hi").pipe(
 *   Effect.provide(TestChatModel.script(["Hello."])),
 *   Printer.orExit
 * )
 * ```
 */
import { ConfigError } from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { format } from "effect/Formatter"
import * as Stream from "effect/Stream"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import type { AgentEvent } from "../core/AgentEvent.ts"
import * as ToolCall from "../core/ToolCall.ts"
import { cleanLine } from "../support/text/clean.ts"
import { cut } from "../support/text/text.ts"
import { visible } from "../support/text/untrusted.ts"
import { configProblem } from "./internal/configProblem.ts"

/** Node, Bun and Deno have it. Elsewhere whole lines go to the console. */
declare const process:
  | { exitCode?: number | undefined; readonly stdout?: { readonly write: (text: string) => unknown } }
  | undefined

const inProcess = typeof process === "undefined" ? undefined : process

/** The longest arguments and failures of a line, in characters. */
const longest = 200

/** A call, a failed call, a warning or a repeated turn as a line; `undefined` for other events. Sub-agents are indented. */
export const line = (event: AgentEvent): string | undefined => {
  const indent = "  ".repeat(Math.max(0, event.path.length - 1))
  const short = (text: string) => cut(cleanLine(text), longest)
  if (event._tag === "ToolCalled") {
    return `${indent}→ ${cleanLine(event.toolName)} ${short(ToolCall.describeArguments(event.arguments))}`
  }
  if (event._tag === "ToolFailed") return `${indent}✗ ${cleanLine(event.toolName)}: ${short(event.text)}`
  if (event._tag === "Warning") return `${indent}! ${cleanLine(event.message)}`
  return event._tag === "TurnRestarted" ? `${indent}↻ ${cleanLine(event.reason)}` : undefined
}

/** Writes text as it comes, or whole lines where only a console is there. */
const makeWriter = (console: Console.Console) => {
  const stdout = inProcess?.stdout
  /** The pieces of the line that is not ended. */
  let open: Array<string> = []
  const write = (text: string): void => {
    const end = text.lastIndexOf("\n")
    if (stdout !== undefined) stdout.write(text)
    else if (end >= 0) console.log(open.join("") + text.slice(0, end))
    if (end >= 0) open = []
    if (end + 1 < text.length) open.push(text.slice(end + 1))
  }
  const endLine = (): void => {
    if (open.length > 0) write("\n")
  }
  return { write, endLine }
}

/**
 * Runs an agent, and prints the text of its answer as it comes, and a {@link line} for each call and failed call, of its
 * sub-agents too. Warnings go to the standard error.
 */
export const run = <O, E, R>(agent: Agent.Agent<O, E, R>, input: Agent.Input): Effect.Effect<void, E | AgentError, R> =>
  Effect.gen(function* () {
    const console = yield* Console.Console
    const { endLine, write } = makeWriter(console)
    /** Half of a character, or of an end of a line. */
    let half = ""
    const events = Stream.runForEach(Agent.stream(agent, input), (event) =>
      Effect.sync(() => {
        if (event._tag === "TextDelta" && event.path.length === 1) {
          const text = half + event.text
          half = /[\ud800-\udbff\r]$/.exec(text)?.[0] ?? ""
          return write(visible(text.slice(0, text.length - half.length)))
        }
        const text = line(event)
        if (text === undefined) return
        endLine()
        // What is printed may be read by a program.
        if (event._tag === "Warning") console.error(text)
        else write(`${text}\n`)
      })
    )
    yield* Effect.ensuring(events, Effect.sync(endLine))
  })

/** A failure in words. An error without a message is known by its cause, or by its name. */
const describeFailure = (error: unknown): string => {
  if (error instanceof ConfigError) return configProblem(error)
  if (!(error instanceof Error)) return typeof error === "string" ? error : format(error)
  if (error.message !== "") return error.message
  return error.cause instanceof Error ? error.cause.message : format(error)
}

/**
 * Prints the sentence of a failure in place of a stack trace, and has the process end with code 1. For the last step of a
 * program, behind its layers.
 */
export const orExit = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<void, never, R> =>
  Effect.catch(Effect.asVoid(program), (error) =>
    Effect.gen(function* () {
      yield* Console.error(visible(describeFailure(error)))
      if (inProcess !== undefined) inProcess.exitCode = 1
    })
  )
