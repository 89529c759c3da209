/**
 * Events as lines for a terminal: texts as they stream, calls and results on one line each, a sub-agent indented.
 */
import { Match, Option, Result, Schema } from "effect"
import { type AgentEvent, AgentState, ToolCall, type Usage } from "effect-deepagents"
import { todos, writeTodos } from "./tools.ts"

/** How a text is marked; every mark is the identity where there are no colours. */
export interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
}

export const style = (colours: boolean): Style => {
  const mark = (code: number) => (text: string) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text)
  return { bold: mark(1), dim: mark(2), red: mark(31), green: mark(32), yellow: mark(33) }
}

const maxWidth = 110

/** What comes from files and models must not steer the terminal. */
const printable = (text: string): string => text.replaceAll(/(?![\n\t])\p{Cc}/gu, "")

const oneLine = (text: string): string => {
  const line = printable(text).replaceAll(/\s+/g, " ").trim()
  return line.length <= maxWidth ? line : `${line.slice(0, maxWidth - 1)}…`
}

const firstLine = (text: string): string => oneLine(text.split("\n")[0] ?? "")

/** What the file tools tell people of what they read and found. */
const Details = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("read"),
    path: Schema.String,
    startLine: Schema.Finite,
    endLine: Schema.Finite,
    totalLines: Schema.Finite
  }),
  Schema.Struct({ kind: Schema.Literals(["listing", "matches"]), count: Schema.Finite })
])

const readDetails = Schema.decodeUnknownOption(Details)

/** What came out of a call, in a few words: else the first line of what the model reads. */
const outcome = ({ details, text }: AgentEvent.Of<"ToolCompleted">): string =>
  Option.match(readDetails(details), {
    onNone: () => firstLine(text),
    onSome: (found) =>
      found.kind === "read"
        ? oneLine(`${found.path}: lines ${found.startLine} to ${found.endLine} of ${found.totalLines}`)
        : `${found.count} ${found.kind === "listing" ? "found" : "files with matches"}`
  })

/** `1,234 tokens in, 56 out` */
const spent = ({ cost, inputTokens, outputTokens }: Usage.Usage): string =>
  `${inputTokens.toLocaleString("en")} tokens in, ${outputTokens.toLocaleString("en")} out` +
  (cost === undefined ? "" : `, $${cost.toFixed(4)}`)

const boxes = { pending: "☐", in_progress: "▸", completed: "☑" }

/** The lines that an event is worth, none for most; pieces of a text are not lines and are not here. */
const lines = ({ bold, dim, green, red, yellow }: Style) =>
  Match.type<AgentEvent.AgentEvent>().pipe(
    Match.withReturnType<ReadonlyArray<string>>(),
    Match.tags({
      RoundStarted: ({ path, round }) => [dim(`── ${path.at(-1)}, round ${round}`)],
      ToolCalled: (event) => [
        `${bold("→")} ${bold(event.toolName)} ${dim(oneLine(ToolCall.describeArguments(event.arguments)))}`
      ],
      ToolProgress: ({ progress, toolName }) => [
        dim(`… ${toolName} ${oneLine(typeof progress === "string" ? progress : JSON.stringify(progress))}`)
      ],
      ToolCompleted: (event) => [
        `${green("✓")} ${event.toolName} ${outcome(event)} ${dim(`${Math.round(event.durationMillis)} ms`)}`
      ],
      ToolFailed: (event) => [`${red("✗")} ${event.toolName} ${event.reason}: ${oneLine(event.text)}`],
      StateChanged: ({ slot, value }) =>
        slot === todos.name
          ? Result.getOrElse(AgentState.read({ [slot]: value }, todos), () => []).map(
              (todo) => `${boxes[todo.status]} ${oneLine(todo.content)}`
            )
          : [],
      SubagentStarted: (event) => [bold(`┌ ${event.agent}`)],
      SubagentCompleted: (event) => [bold(`└ ${event.agent}: ${event.outcome}`) + dim(`, ${spent(event.usage)}`)],
      TurnRestarted: (event) => [yellow(`! asked again: ${oneLine(event.reason)}`)],
      Warning: (event) => [yellow(`! ${oneLine(event.message)}`)],
      RunCompleted: ({ path, rounds, stopReason, usage }) =>
        path.length > 1 ? [] : [dim(`── ${stopReason} after ${rounds} rounds, ${spent(usage)}`)]
    }),
    Match.orElse(() => [])
  )

/** The list of todos is shown when it changes, so its calls are not. */
const isShownElsewhere = (event: AgentEvent.AgentEvent): boolean =>
  (event._tag === "ToolCalled" || event._tag === "ToolCompleted") && event.toolName === writeTodos.name

/** The text that the last line is a part of, if it is not complete. */
export type Open = string | undefined

/** What to write for an event, and what is open after it. */
export const render = (style: Style) => {
  const toLines = lines(style)
  return (open: Open, event: AgentEvent.AgentEvent): readonly [Open, ReadonlyArray<string>] => {
    const indent = "  ".repeat(event.path.length - 1)
    const end = open === undefined ? "" : "\n"
    if (event._tag === "TextDelta" || event._tag === "ReasoningDelta") {
      const key = `${event._tag} ${event.path.join("/")}`
      const text = printable(event.text).replaceAll("\n", `\n${indent}`)
      const shown = event._tag === "TextDelta" ? text : style.dim(text)
      return [key, [open === key ? shown : end + indent + shown]]
    }
    const written = isShownElsewhere(event) ? [] : toLines(event)
    return written.length === 0 ? [open, []] : [undefined, [end + written.map((line) => `${indent}${line}\n`).join("")]]
  }
}
