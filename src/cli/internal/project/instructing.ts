/** Gives an agent the instruction files: in its prompt, and from sub-folders when it works there. */
import { dirname, join, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import * as AgentState from "../../../core/AgentState.ts"
import * as Content from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Middleware from "../../../core/Middleware.ts"
import type { Run } from "../../../core/Run.ts"
import type { ToolOutput } from "../../../core/ToolOutput.ts"
import * as Attached from "../../../support/effect/attached.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { itemsOf, type Project } from "../config/items.ts"
import type { Places } from "../config/places.ts"
import { realOf } from "./folders.ts"
import { type Instructions, readFolder, tellFiles } from "./instructions.ts"

const prompt = ({ files }: Instructions): string => {
  const text = tellFiles(files)
  return text === ""
    ? ""
    : `## Instructions\n\nThese files say how the user and this project want work to be done. Follow them, unless this prompt or the user says otherwise; of two that differ, the later one counts.\n\n${text}`
}

/** Folders whose files the agent was told in this thread. */
const toldFolders = AgentState.slot("instructions.folders", {
  schema: Schema.Array(Schema.String),
  initial: []
})

/** The arguments by which tools name a file or a folder. */
const pathArguments = ["file_path", "path", "from", "to"]

const pathsOf = (given: JsonObject): ReadonlyArray<string> =>
  pathArguments.flatMap((name) => {
    const value = given[name]
    return typeof value === "string" ? [value] : []
  })

/** Lists the folders from below the root down to a path. */
const foldersTo = (root: string, path: string): ReadonlyArray<string> => {
  const way = relative(root, path)
  if (way === "" || way === ".." || way.startsWith(`..${sep}`)) return []
  return way.split(sep).map((_, index, parts) => join(root, ...parts.slice(0, index + 1)))
}

/**
 * Adds the instruction files to the prompt, which stays as it is for the session. Files of a sub-folder follow the result
 * of the first call that names a file below it.
 */
export const instructing = (
  found: Instructions,
  context: { readonly places: Places; readonly project: Project },
  fs: FileSystem.FileSystem
): Middleware.Middleware => {
  const { project } = context.places
  // Files of sub-folders are not asked about. They are read where the person trusts the project's instructions.
  const isTrusted = itemsOf(context.project, "instructions").length > 0
  const knownPaths = new Set(found.files.map(({ path }) => path))
  // Calls of one round run at once: each folder is told by one of them.
  const claims = Attached.make<Run, Set<string>>()

  const claim = Effect.fnUntraced(function* (run: Run, paths: ReadonlyArray<string>) {
    const root = (yield* realOf(project)) ?? project
    const before = yield* run.state.get(toldFolders)
    const claimed = claims.get(run) ?? new Set(before)
    claims.set(run, claimed)
    const fresh: Array<string> = []
    for (const path of paths) {
      const real = yield* realOf(resolve(root, path))
      for (const folder of real === undefined ? [] : foldersTo(root, real)) {
        if (claimed.has(folder)) continue
        claimed.add(folder)
        fresh.push(folder)
      }
    }
    return { root, fresh }
  })

  const withNotice = Effect.fnUntraced(function* (run: Run, given: JsonObject, output: ToolOutput) {
    const { fresh, root } = yield* claim(run, pathsOf(given))
    const results = yield* Effect.forEach(fresh, (folder) => readFolder(folder, root))
    const files = results.flatMap((one) => one.files).filter(({ path }) => !knownPaths.has(path))
    for (const problem of results.flatMap((one) => one.problems)) yield* run.warn("instructions-unread", problem)
    if (files.length === 0) return output
    const own = files.filter(({ importer }) => importer === undefined)
    const folders = [...new Set(own.map(({ path }) => dirname(path)))]
    const notice = `<notice>\nInstructions for ${folders.map(oneLine).join(", ")}. Follow them for files below, as those of your prompt.\n\n${tellFiles(files)}\n</notice>`
    return {
      ...output,
      content: [...output.content, Content.text(notice)],
      state: [...output.state, AgentState.change(toldFolders, (before) => [...new Set([...before, ...fresh])])]
    }
  })

  return Middleware.make({
    name: "Instructions",
    inherit: true,
    state: [toldFolders],
    prompt: prompt(found),
    wrapToolCall: (call, next, run) =>
      isTrusted && pathsOf(call.arguments).length > 0
        ? Effect.flatMap(next(call), (output) =>
            output.isError
              ? Effect.succeed(output)
              : Effect.provideService(withNotice(run, call.given(), output), FileSystem.FileSystem, fs)
          )
        : next(call)
  })
}
