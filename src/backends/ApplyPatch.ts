/**
 * The `apply_patch` tool: several files added, changed, moved and deleted by one patch, all of it or nothing.
 *
 * It takes the patch format that GPT models are trained on (V4A), works on whatever backend is in context, and is an
 * alternative to `edit_file` and `write_file` of `FileTools`, or stands beside them.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { ApplyPatch, FileTools } from "effect-deepagents/backends"
 *
 * const coder = Agent.make({
 *   name: "coder",
 *   prompt: "You change code.",
 *   tools: [...FileTools.make({ only: ["ls", "read_file", "glob", "grep"] }), ApplyPatch.make()]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Backend, type Permit, type PlannedChange, type Service } from "../core/Backend.ts"
import type { Json } from "../core/Json.ts"
import * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import { ToolError } from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { once } from "../support/effect/once.ts"
import { type BrokenPatch, commit, type FinishedStep } from "./internal/patch/commit.ts"
import * as format from "./internal/patch/format.ts"
import type { InvalidPatch, Patch } from "./internal/patch/model.ts"
import { type Failure, pathsOf, plan, type Step, textOf } from "./internal/patch/plan.ts"
import { diffOf } from "./internal/tools/diff.ts"
import { onFiles } from "./internal/tools/rehearse.ts"
import { hold, type SeenFiles } from "./internal/tools/seen.ts"
import { showPath } from "./internal/tools/text.ts"

export type { Patch } from "./internal/patch/model.ts"

export { InvalidPatch } from "./internal/patch/model.ts"

/**
 * Parses a patch. Removes a surrounding code fence or here-document. Takes linear time and fails only with
 * `InvalidPatch`.
 */
export const parse: (text: string) => Result.Result<Patch, InvalidPatch> = format.parse

const { marks } = format

const description = [
  "Changes files by a patch: adds, updates, moves and deletes any number of them. All of it is done or nothing.",
  "The patch is text of this form:",
  "",
  marks.begin,
  `${marks.add} /path/of/new.txt`,
  "+each line of the new file",
  `${marks.update} /path/of/old.txt`,
  `${marks.move} /new/path/of/old.txt`,
  "@@ the line that names the class or function of the change",
  " a line that stays",
  "-a line that goes",
  "+a line that comes",
  `${marks.remove} /path/of/unwanted.txt`,
  marks.end,
  "",
  `"${marks.move}" is only for a file that gets a new path. Give about three lines that stay before and after each`,
  "change, exactly as they are in the file, and keep the changes of a file in their order, each after an @@ of its own.",
  'Lines after "@@" help to find the place, where the surroundings are not unique; there may be several, and "@@"',
  `alone is enough where they are. "${marks.endOfFile}" after a change says that the file ends there. A change with "+"`,
  "lines only is put right after the line of its @@, or at the end of the file. Line endings of the file are kept."
].join("\n")

/** The change of a file, for people. */
const detailsOf = (step: Step): { readonly [key: string]: Json } => {
  switch (step._tag) {
    case "Create":
      return { change: "added", path: step.path, ...diffOf("", step.after) }
    case "Rewrite":
      return { change: "updated", path: step.path, ...diffOf(textOf(step.path, step.before) ?? "", step.after) }
    case "Move":
      return { change: "moved", path: step.from, to: step.to }
    case "Remove":
      return { change: "deleted", path: step.path }
  }
}

const sayStep = (step: Step): string => {
  switch (step._tag) {
    case "Create":
      return `added ${showPath(step.path)}`
    case "Rewrite":
      return `updated ${showPath(step.path)}`
    case "Move":
      return `moved ${showPath(step.from)} to ${showPath(step.to)}`
    case "Remove":
      return `deleted ${showPath(step.path)}`
  }
}

/** Records the versions of written files, and of moved files that the agent had already seen. */
const note = Effect.fnUntraced(function* (seen: SeenFiles, outcomes: ReadonlyArray<FinishedStep>) {
  const writtenPaths = new Set<string>()
  for (const { step, version } of outcomes) {
    if (version === undefined || step._tag === "Remove") continue
    if (step._tag === "Move") {
      const isSeen = writtenPaths.has(step.from) || (yield* seen.get(step.from)) === step.before.version
      if (isSeen) yield* seen.set(step.to, version)
    } else {
      writtenPaths.add(step.path)
      yield* seen.set(step.path, version)
    }
  }
})

const failed = (error: Failure): ToolError =>
  new ToolError({ reason: "Failed", message: `Nothing was changed. ${error.message}`, cause: error })

const broken = ({ cause, left }: BrokenPatch): ToolError =>
  left.length === 0
    ? failed(cause)
    : new ToolError({
        reason: "Failed",
        message: [
          cause.message,
          "What had been done before was taken back, except for these files; look at them before you go on:",
          ...left.map((one) => `- ${one}`)
        ].join("\n"),
        cause
      })

const anything: Permit = (work) => work

/** Asks for permission for the whole patch. */
const permitted = (backend: Service, text: string, patch: Patch, paths: ReadonlyArray<string>) => {
  if (backend.permit === undefined) return Effect.succeed(anything)
  const changes = patch.changes.flatMap((change): ReadonlyArray<PlannedChange> => {
    if (change._tag === "Delete") return [{ operation: "delete", path: change.path }]
    const write: PlannedChange = { operation: "write", path: change.path }
    return change._tag === "Update" && change.moveTo !== undefined
      ? [write, { operation: "move", from: change.path, to: change.moveTo }]
      : [write]
  })
  return backend.permit({ text, changes: [...changes, ...paths.map((path) => ({ operation: "read" as const, path }))] })
}

const tool = once(() =>
  Tool.make("apply_patch", {
    description,
    parameters: {
      input: Schema.String.annotate({ description: `The whole patch, from "${marks.begin}" to "${marks.end}"` })
    },
    annotations: { destructive: true, editsFiles: true },
    ...onFiles(
      Effect.fnUntraced(function* ({ input }: { readonly input: string }) {
        const backend = yield* Backend
        const patch = yield* Effect.mapError(Effect.fromResult(parse(input)), failed)
        const paths = yield* Effect.mapError(Effect.fromResult(pathsOf(patch, backend.paths)), failed)
        // Asked about as a whole, before anything is read or written.
        const permit = yield* Effect.mapError(permitted(backend, input, patch, paths), failed)
        const work = hold(
          paths,
          Effect.fnUntraced(function* (seen) {
            const steps = yield* Effect.mapError(plan(backend, patch), failed)
            const outcomes = yield* Effect.mapError(commit(backend, steps), broken)
            yield* note(seen, outcomes)
            const lines = outcomes.map(({ step }) => `- ${sayStep(step)}`)
            return ToolOutput.make(
              lines.length === 0
                ? "Nothing to do: the files are as the patch wants them."
                : ["Done:", ...lines].join("\n"),
              { details: { kind: "patch", files: outcomes.map(({ step }) => detailsOf(step)) } }
            )
          })
        )
        return yield* permit(work)
      })
    )
  })
)

/**
 * Makes the tool. It reads and checks every file before it writes the first. Each write requires that its file is
 * unchanged since. If a write fails, or the call is interrupted, all earlier writes are undone.
 *
 * The model learns of changes that could not be undone. A patch that does not fit is rejected with its line number,
 * the text found and the text expected. `details` of the result lists the changed files with a diff each.
 */
export const make: () => Tool.Tool<Backend | ToolContext> = tool
