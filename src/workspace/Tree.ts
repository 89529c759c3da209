/**
 * Makes the tool `tree`, which lists folders and files as an indented list.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Tree } from "effect-deepagents/workspace"
 *
 * const guide = Agent.make({ name: "guide", prompt: "You explain projects.", tools: [Tree.make()] })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Backend, type Entry, type Service } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import { readOptions, refuseTool } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import { check } from "../support/options/check.ts"
import { escaped } from "../support/text/untrusted.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of the tool. */
export interface Options {
  /** Maximum number of entries. Default: 500. */
  readonly entries?: number | undefined
  /** Folders whose content is not listed. Default: `.git`, `node_modules`. */
  readonly closed?: ReadonlyArray<string> | undefined
}

const maxDepth = 10

const nameOf = (path: string): string => escaped(path.slice(path.lastIndexOf("/", path.length - 2) + 1))

interface Rows {
  readonly rows: Array<string>
  readonly room: number
  readonly closed: ReadonlySet<string>
  more: boolean
}

const listFolder = (
  backend: Service,
  path: string,
  level: number,
  depth: number,
  into: Rows
): Effect.Effect<void, BackendError> =>
  Effect.flatMap(backend.ls(path), ({ entries, truncated }) => {
    if (truncated !== undefined) into.more = true
    return Effect.forEach(
      entries,
      (entry: Entry) =>
        Effect.suspend(() => {
          if (into.rows.length >= into.room) {
            into.more = true
            return Effect.void
          }
          const name = nameOf(entry.path).replace(/\/$/, "")
          const isFolder = entry.kind === "directory"
          into.rows.push(`${"  ".repeat(level)}${name}${isFolder ? "/" : ""}`)
          return isFolder && level + 1 < depth && !into.closed.has(name)
            ? Effect.catch(listFolder(backend, entry.path, level + 1, depth, into), (error) =>
                // A forbidden or missing folder does not hide the others.
                Effect.sync(() => void into.rows.push(`${"  ".repeat(level + 1)}[${escaped(error.message)}]`))
              )
            : Effect.void
        }),
      { discard: true }
    )
  })

const checkMake = check(shapes.treeMake)

/** Makes the tool. */
export const make = (options: Options = {}): Tool.Tool<Backend> => {
  const [{ closed = [".git", "node_modules"], entries = 500 }, problem] = readOptions(checkMake, options)
  return refuseTool(
    problem,
    Tool.make("tree", {
      description: `Lists the folders and files below a folder, as an indented list of at most ${entries}, 3 levels deep.`,
      parameters: {
        path: Schema.optionalKey(
          Schema.String.annotate({ description: "The folder; the working directory if left out" })
        ),
        depth: Schema.optionalKey(
          Schema.Finite.annotate({ description: `How many levels, at most ${maxDepth}; 3 if left out` })
        )
      },
      annotations: { readOnly: true, idempotent: true, addresses: [] },
      execute: Effect.fnUntraced(function* ({ depth = 3, path = "." }) {
        const backend = yield* Backend
        const into: Rows = { rows: [], room: entries, closed: new Set(closed), more: false }
        yield* listFolder(backend, path, 0, Math.max(1, Math.min(maxDepth, Math.trunc(depth))), into)
        if (into.rows.length === 0) return "[the directory is empty]"
        return [...into.rows, ...(into.more ? [`[the first ${into.rows.length}; ask for a folder in it]`] : [])].join(
          "\n"
        )
      })
    })
  )
}
