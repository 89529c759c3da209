/**
 * The tools of the demo's agents: they list, search and read the workspace, keep a list of todos, and write the report.
 */
import { Effect, Glob, Schema } from "effect"
import { AgentState, Tool, ToolContext, ToolError, ToolOutput } from "effect-deepagents"
import { Workspace } from "./workspace.ts"

const maxListed = 500
const maxLines = 400
const maxHits = 40
const maxLineLength = 160
const outputLimit = 50_000

const more = (shown: number, all: number, hint: string): ReadonlyArray<string> =>
  all > shown ? [`… and ${all - shown} more; ${hint}`] : []

const matching = Effect.fnUntraced(function* (pattern: string) {
  const workspace = yield* Workspace
  const glob = Glob.make(pattern)
  return (yield* workspace.files).filter((entry) => Glob.match(glob, entry.path))
})

const pattern = Schema.String.annotate({ description: "A glob over paths from the root, for example src/**/*.ts" })

export const listFiles = Tool.make("list_files", {
  description: "Lists the files whose path matches a glob, with their sizes.",
  parameters: { pattern },
  annotations: { readOnly: true },
  outputLimit,
  execute: Effect.fnUntraced(function* ({ pattern }) {
    const found = yield* matching(pattern)
    return [
      `${found.length} files match ${pattern}`,
      ...found.slice(0, maxListed).map((entry) => `${entry.path}  ${entry.bytes} bytes`),
      ...more(maxListed, found.length, "use a narrower glob")
    ].join("\n")
  })
})

export const readFile = Tool.make("read_file", {
  description: `Reads a text file, at most ${maxLines} lines at a time.`,
  parameters: {
    path: Schema.String.annotate({ description: "A path as list_files gave it" }),
    from: Schema.optionalKey(Schema.Int.annotate({ description: "The first line to read; 1 if left out" }))
  },
  annotations: { readOnly: true },
  outputLimit,
  execute: Effect.fnUntraced(function* ({ path, from = 1 }) {
    const workspace = yield* Workspace
    const lines = (yield* workspace.read(path)).replace(/\n$/, "").split("\n")
    if (from < 1 || from > lines.length) {
      return yield* ToolError.make(`${path} has the lines 1 to ${lines.length}`)
    }
    const part = lines.slice(from - 1, from - 1 + maxLines)
    return [
      `${path}: lines ${from} to ${from - 1 + part.length} of ${lines.length}`,
      ...part,
      ...more(from - 1 + part.length, lines.length, `go on with from: ${from + part.length}`)
    ].join("\n")
  })
})

export const searchFiles = Tool.make("search_files", {
  description: "Finds the lines that contain a text (exactly, no pattern) in the files whose path matches a glob.",
  parameters: { text: Schema.NonEmptyString, pattern },
  annotations: { readOnly: true },
  outputLimit,
  execute: Effect.fnUntraced(function* ({ pattern, text }) {
    const workspace = yield* Workspace
    const { emit } = yield* ToolContext.ToolContext
    const files = yield* matching(pattern)
    let done = 0
    const search = Effect.fnUntraced(function* (path: string) {
      // What is too large, or no text, has no lines to find.
      const content = yield* Effect.orElseSucceed(workspace.read(path), () => "")
      if (++done % 50 === 0) yield* emit(`${done} of ${files.length} files`)
      return content
        .split("\n")
        .flatMap((line, index) =>
          line.includes(text) ? [`${path}:${index + 1}: ${line.trim().slice(0, maxLineLength)}`] : []
        )
    })
    const hits = yield* Effect.forEach(files, (file) => search(file.path), { concurrency: 8 })
    const lines = hits.flat()
    return [
      `${lines.length} lines in ${hits.filter((hit) => hit.length > 0).length} of ${files.length} files contain ${text}`,
      ...lines.slice(0, maxHits),
      ...more(maxHits, lines.length, "use a narrower glob")
    ].join("\n")
  })
})

export const writeReport = Tool.make("write_report", {
  description: "Writes the report. Call it once, when everything in it is known; a second call replaces the report.",
  parameters: { markdown: Schema.NonEmptyString },
  annotations: { idempotent: true },
  execute: Effect.fnUntraced(function* ({ markdown }) {
    const workspace = yield* Workspace
    return `The report is in ${yield* workspace.report(markdown)}`
  })
})

/** What is still to do, as the agent sees it. */
const Todo = Schema.Struct({
  content: Schema.String,
  status: Schema.Literals(["pending", "in_progress", "completed"])
})

export const todos = AgentState.slot("todos", { schema: Schema.Array(Todo), initial: [] })

export const writeTodos = Tool.make("write_todos", {
  description: "Replaces your list of todos. Write it first, and again whenever a status changes.",
  parameters: { todos: Schema.Array(Todo) },
  annotations: { idempotent: true },
  execute: (args) =>
    Effect.succeed(
      ToolOutput.make(
        `${args.todos.filter((todo) => todo.status === "completed").length} of ${args.todos.length} done`,
        { state: [AgentState.assign(todos, args.todos)] }
      )
    )
})
