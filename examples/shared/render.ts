/**
 * Shows what an agent does as lines for a terminal: its text as it streams, calls and results on one line each. A
 * sub-agent is indented, and several at once have numbers.
 */
import { Config, Effect, Match, Option, Result, Schema, Sink, Stdio, Stream, Terminal } from "effect"
import { type AgentEvent, AgentState, ToolCall, type Usage } from "effect-deepagents"
import { Todos } from "effect-deepagents/middleware"

/** How a text is marked; every mark is the identity where there are no colours. */
interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
}

const makeStyle = (colours: boolean): Style => {
  const mark = (code: number) => (text: string) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text)
  return { bold: mark(1), dim: mark(2), red: mark(31), green: mark(32), yellow: mark(33) }
}

const maxWidth = 110

/** What comes from files and models must not steer the terminal. */
export const printable = (text: string): string => text.replaceAll(/(?![\n\t])\p{Cc}/gu, "")

const oneLine = (text: string): string => {
  const line = printable(text).replaceAll(/\s+/g, " ").trim()
  return line.length <= maxWidth ? line : `${line.slice(0, maxWidth - 1)}…`
}

const firstLine = (text: string): string => oneLine(text.split("\n")[0] ?? "")

/** Cuts a line to the width of the terminal; its marks take no room. */
const fit =
  (columns: number) =>
  (line: string): string => {
    const parts = line.match(/\p{Cc}\[\d+m|[^]/gu) ?? []
    const isMark = (part: string) => part.length > 2
    if (columns === 0 || parts.filter((part) => !isMark(part)).length <= columns) return line
    let room = columns - 1
    return parts.map((part) => (isMark(part) ? part : room-- > 0 ? part : room === -1 ? "…" : "")).join("")
  }

/** What the file tools tell people of what they read and found. */
const Details = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("read"),
    path: Schema.String,
    startLine: Schema.Finite,
    endLine: Schema.Finite,
    totalLines: Schema.Finite
  }),
  Schema.Struct({ kind: Schema.Literals(["listing", "matches"]), count: Schema.Finite }),
  Schema.Struct({ kind: Schema.Literal("command"), exitCode: Schema.NullOr(Schema.Finite) })
])

const readDetails = Schema.decodeUnknownOption(Details)

const counted = (found: typeof Details.Type): string => {
  switch (found.kind) {
    case "read":
      return oneLine(`${found.path}: lines ${found.startLine} to ${found.endLine} of ${found.totalLines}`)
    case "command":
      return `ended with ${found.exitCode ?? "no exit code"}`
    case "listing":
    case "matches":
      return `${found.count} ${found.kind === "listing" ? "found" : "files with matches"}`
  }
}

/** What came out of a call, in a few words: else the first line of what the model reads. */
const outcome = ({ details, text }: AgentEvent.Of<"ToolCompleted">): string => {
  // What was too large for the conversation is in a file of the backend.
  const [, length, file] = /^The result of \w+ has (\d+) characters.* in the file (\S+):/.exec(text) ?? []
  const put = file === undefined ? "" : `: ${Number(length).toLocaleString("en")} characters, put in ${file}`
  return Option.match(readDetails(details), {
    onNone: () => (file === undefined ? firstLine(text) : put.slice(2)),
    onSome: (found) => counted(found) + put
  })
}

/** `1,234 tokens in, 56 out` */
const spent = ({ cost, inputTokens, outputTokens }: Usage.Usage): string =>
  `${inputTokens.toLocaleString("en")} tokens in, ${outputTokens.toLocaleString("en")} out` +
  (cost === undefined ? "" : `, $${cost.toFixed(4)}`)

const boxes = { pending: "☐", in_progress: "▸", completed: "☑", cancelled: "☒" }

/** The lines that an event is worth, none for most; `who` tells agents apart that are at work at once. */
const lines = ({ bold, dim, green, red, yellow }: Style, who: string) =>
  Match.type<AgentEvent.AgentEvent>().pipe(
    Match.withReturnType<ReadonlyArray<string>>(),
    Match.tags({
      RoundStarted: ({ path, round }) => (path.length > 1 ? [] : [dim(`── ${path[0]}, round ${round}`)]),
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
        slot === Todos.todos.name
          ? Result.getOrElse(AgentState.read({ [slot]: value }, Todos.todos), () => []).map(
              (todo) => `${boxes[todo.status]} ${oneLine(todo.content)}`
            )
          : [],
      SubagentStarted: (event) => [bold(`┌ ${event.agent}${who}`)],
      SubagentCompleted: (event) => [bold(`└ ${event.agent}${who}: ${event.outcome}`) + dim(`, ${spent(event.usage)}`)],
      ApprovalResolved: ({ decision, toolName }) => [`? ${toolName}: ${decision}`],
      Compacted: ({ tokensAfter, tokensBefore }) => [
        yellow(`≡ compacted: ${tokensBefore.toLocaleString("en")} tokens are ${tokensAfter.toLocaleString("en")}`)
      ],
      Custom: ({ name, payload }) => [dim(`· ${name} ${oneLine(JSON.stringify(payload))}`)],
      TurnRestarted: (event) => [yellow(`! asked again: ${oneLine(event.reason)}`)],
      Warning: (event) => [yellow(`! ${oneLine(event.message)}`)],
      RunCompleted: ({ path, rounds, stopReason, usage }) =>
        path.length > 1 ? [] : [dim(`── ${stopReason} after ${rounds} rounds, ${spent(usage)}`)]
    }),
    Match.orElse(() => [])
  )

/** The list of todos is shown when it changes, so its calls are not. */
const isShownElsewhere = (event: AgentEvent.AgentEvent): boolean =>
  (event._tag === "ToolCalled" || event._tag === "ToolCompleted") && event.toolName === "write_todos"

interface Screen {
  /** Which text the last line is a part of, if it is not complete. */
  readonly open: string | undefined
  /** The runs of sub-agents so far, in order: each has a number. */
  readonly children: ReadonlyArray<string>
}

/** What to write for an event, and what the screen is after it. The text of a sub-agent is shown as its answer only. */
const render = (style: Style, columns: number) => (screen: Screen, event: AgentEvent.AgentEvent) => {
  const { open } = screen
  const children = event._tag === "SubagentStarted" ? [...screen.children, event.childRunId] : screen.children
  const child = "childRunId" in event ? event.childRunId : event.runId
  const number = children.indexOf(child) + 1
  const end = open === undefined ? "" : "\n"
  if (event._tag === "TextDelta" || event._tag === "ReasoningDelta") {
    if (number > 0) return [{ open, children }, []] as const
    const text = printable(event.text)
    const shown = event._tag === "TextDelta" ? text : style.dim(text)
    return [{ open: event._tag, children }, [open === event._tag ? shown : end + shown]] as const
  }
  const isEdge = "childRunId" in event
  const before =
    number > 0 && !isEdge ? `${"  ".repeat(event.path.length - 1)}${number} ` : "  ".repeat(event.path.length - 1)
  const written = isShownElsewhere(event) ? [] : lines(style, ` ${number}`)(event)
  return written.length === 0
    ? ([{ open, children }, []] as const)
    : ([
        { open: undefined, children },
        [end + written.map((line) => `${fit(columns)(before + line)}\n`).join("")]
      ] as const)
}

class OutputClosed extends Schema.TaggedError<OutputClosed>()("OutputClosed", {}) {
  override readonly message = "nobody reads the output any more"
}

/** Shows an agent's events on the standard output, and gives them back at their end. */
export const show = <E, R>(events: Stream.Stream<AgentEvent.AgentEvent, E, R>) =>
  Effect.gen(function* () {
    const seen: Array<AgentEvent.AgentEvent> = []
    const stdio = yield* Stdio.Stdio
    const noColour = yield* Config.String("NO_COLOR").pipe(Config.withDefault(""))
    const style = makeStyle(noColour === "" && (yield* stdio.stdoutIsTerminal))
    const columns = yield* (yield* Terminal.Terminal).columns
    yield* events.pipe(
      Stream.tap((event) => Effect.sync(() => seen.push(event))),
      Stream.mapAccum((): Screen => ({ open: undefined, children: [] }), render(style, columns)),
      Stream.run(Sink.mapError(stdio.stdout(), () => new OutputClosed()))
    )
    return seen
  })
