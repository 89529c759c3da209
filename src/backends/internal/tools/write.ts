/** The tools that change files: `write_file`, `edit_file`, `delete_file` and `move_file`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Backend from "../../../core/Backend.ts"
import * as Tool from "../../../core/Tool.ts"
import type { ToolContext } from "../../../core/ToolContext.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import { type Diff, diffOf, maxDiff, shift } from "./diff.ts"
import type { Kit } from "./kit.ts"
import { type Edit, mustRead, onFiles, rehearseEdit, rehearseWrite, resolve, type Write } from "./rehearse.ts"
import { hold, moving } from "./seen.ts"
import { filePath, maxDetails, showPath } from "./text.ts"

type FileTool = Tool.Tool<Backend.Backend | ToolContext>

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

const plain = (text: string): string => text.replace(/\r\n?/g, "\n")

const countLines = (text: string): number => {
  const lines = plain(text).split("\n").length
  return text === "" || /[\n\r]$/.test(text) ? lines - 1 : lines
}

/** The text of a file that is about to be replaced, for the diff; `undefined` if it is not small. */
const textBefore = (backend: Backend.Service, path: string): Effect.Effect<string | undefined> =>
  backend.read(path).pipe(
    Effect.map((file) =>
      file.kind === "text" && file.endLine === file.totalLines && file.nextColumn === undefined ? file.text : undefined
    ),
    Effect.orElseSucceed(() => undefined)
  )

const endWithNewline = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`)

const create = (kit: Kit, backend: Backend.Service, path: string, content: string) =>
  Effect.catchReason(backend.write(path, content, { create: true }), "BackendError", "AlreadyExists", () =>
    Effect.fail(mustRead(kit, path, "then write it"))
  )

/** Replaces a file that the agent has seen, and recreates a deleted one. */
const replace = (kit: Kit, backend: Backend.Service, path: string, content: string, version: string) => {
  const checkGone = Effect.as(backend.read(path, { limit: 0 }), false).pipe(
    Effect.catchReason("BackendError", "NotFound", () => Effect.succeed(true))
  )
  return Effect.catchReasons(backend.write(path, content, { version }), "BackendError", {
    NotFound: () => create(kit, backend, path, content),
    Conflict: (_, error) =>
      Effect.flatMap(checkGone, (isGone) => (isGone ? create(kit, backend, path, content) : Effect.fail(error)))
  })
}

export const writeFile = (kit: Kit): FileTool =>
  Tool.make("write_file", {
    description: [
      "Writes the whole of a file, and the directories that it needs.",
      "A file that exists is replaced: you must have read it before, or written it yourself, and nobody else may have changed it since.",
      ...(kit.offers("edit_file") ? ["To change parts of a file, use edit_file."] : [])
    ].join(" "),
    parameters: {
      file_path: filePath,
      content: Schema.String.annotate({ description: "All that the file shall have" })
    },
    annotations: { destructive: true, idempotent: true, editsFiles: true, aliases: ["Write"] },
    ...onFiles(
      Effect.fnUntraced(function* ({ content, file_path }: Write) {
        const backend = yield* Backend.Backend
        const path = yield* resolve("write", file_path, backend)
        return yield* hold(
          [path],
          Effect.fnUntraced(function* (seen) {
            const version = yield* seen.get(path)
            const before = version === undefined ? undefined : yield* textBefore(backend, path)
            const result = yield* version === undefined
              ? create(kit, backend, path, content)
              : replace(kit, backend, path, content, version)
            yield* seen.set(path, result.version)
            const diff = result.created
              ? diffOf("", endWithNewline(plain(content)))
              : before === undefined
                ? undefined
                : diffOf(endWithNewline(before), endWithNewline(plain(content)))
            const lines = plural(countLines(content), "line")
            return ToolOutput.make(
              result.created
                ? `Wrote ${showPath(path)}, a new file of ${lines}.`
                : `Replaced ${showPath(path)}: ${lines}.`,
              { details: { kind: "write", path, created: result.created, ...diff } }
            )
          })
        )
      }, kit.tell),
      rehearseWrite(kit)
    )
  })

/** The most line numbers in a result. */
const shownPlaces = 20

/** Says that the text was not there to the letter. */
const inexact =
  " old_string was there but for typographic quotes, dashes, special spaces, composed characters or spaces at the ends of lines; look at the result if they matter."

/** The diffs of all replacements, with their line numbers in the file. */
const diffsOf = (old: string, replacement: string, lines: ReadonlyArray<number>): Diff | undefined => {
  const whole = old.endsWith("\n") && (replacement === "" || replacement.endsWith("\n"))
  const [before, after] = [plain(old), plain(replacement)]
  const diff = whole ? diffOf(before, after) : diffOf(`${before}\n`, `${after}\n`)
  if (diff === undefined) return undefined
  const grown = after.split("\n").length - before.split("\n").length
  const places = Math.max(1, Math.min(lines.length, Math.floor(maxDiff / (diff.diff.length + 1))))
  return {
    diff: lines
      .slice(0, places)
      .map((line, index) => shift(diff.diff, line - 1 - index * grown, line - 1))
      .join(""),
    added: diff.added * lines.length,
    removed: diff.removed * lines.length,
    truncated: diff.truncated || lines.length > places
  }
}

export const editFile = (kit: Kit): FileTool =>
  Tool.make("edit_file", {
    description: [
      "Replaces a text in a file by another.",
      "You must have read the file before, or written it yourself, and nobody else may have changed it since.",
      "old_string is literal text, as it is in the file with all spaces and line breaks and without line numbers; it must be there exactly once, unless replace_all is set.",
      "Line endings and the encoding of the file are kept."
    ].join(" "),
    parameters: {
      file_path: filePath,
      old_string: Schema.String.annotate({
        description: "The text to replace, with enough around it to be there once"
      }),
      new_string: Schema.String.annotate({ description: "The text to put in its place" }),
      replace_all: Schema.optionalKey(
        Schema.Boolean.annotate({ description: "Replace it wherever it is; false if left out" })
      )
    },
    annotations: { destructive: true, editsFiles: true, aliases: ["Edit", "MultiEdit", "NotebookEdit"] },
    ...onFiles(
      Effect.fnUntraced(function* ({ file_path, new_string, old_string, replace_all }: Edit) {
        const backend = yield* Backend.Backend
        const path = yield* resolve("edit", file_path, backend)
        return yield* hold(
          [path],
          Effect.fnUntraced(function* (seen) {
            const version = yield* seen.get(path)
            if (version === undefined) {
              // A file that can't be edited at all is reported first.
              yield* backend.read(path, { limit: 0 })
              return yield* mustRead(kit, path, "then edit it")
            }
            const edited = yield* backend.edit(
              path,
              [{ old: old_string, new: new_string, replaceAll: replace_all === true }],
              { version }
            )
            yield* seen.set(path, edited.version)
            const { isInexact = false, lines, replaced } = edited
            const at = `${lines.slice(0, shownPlaces).join(", ")}${lines.length > shownPlaces ? ", …" : ""}`
            return ToolOutput.make(
              `Edited ${showPath(path)}: ${plural(replaced, "place")} replaced, at line${lines.length === 1 ? "" : "s"} ${at}.${isInexact ? inexact : ""}`,
              {
                details: {
                  kind: "edit",
                  path,
                  replaced,
                  lines: lines.slice(0, maxDetails),
                  ...diffsOf(old_string, new_string, lines)
                }
              }
            )
          })
        )
      }, kit.tell),
      rehearseEdit(kit)
    )
  })

interface Delete {
  readonly file_path: string
  readonly recursive?: boolean | undefined
}

export const deleteFile = (kit: Kit): FileTool =>
  Tool.make("delete_file", {
    description:
      "Deletes a file, a link (never what it leads to) or an empty directory; with recursive a directory with all that is in it. It can't be taken back.",
    parameters: {
      file_path: filePath,
      recursive: Schema.optionalKey(
        Schema.Boolean.annotate({ description: "Delete a directory with all that is in it; false if left out" })
      )
    },
    annotations: { destructive: true, idempotent: true },
    ...onFiles(
      Effect.fnUntraced(function* ({ file_path, recursive }: Delete) {
        const backend = yield* Backend.Backend
        const path = yield* resolve("delete", file_path, backend)
        return yield* hold(
          [path],
          Effect.fnUntraced(function* () {
            yield* backend.delete(path, { recursive: recursive === true })
            return ToolOutput.make(`Deleted ${showPath(path)}.`, { details: { kind: "delete", path } })
          })
        )
      }, kit.tell)
    )
  })

interface Move {
  readonly source: string
  readonly destination: string
}

export const moveFile = (kit: Kit): FileTool =>
  Tool.make("move_file", {
    description:
      "Moves or renames a file, or a directory with all that is in it. Directories that are missing are made; nothing is overwritten.",
    parameters: {
      source: Schema.String.annotate({ description: "The path that it has" }),
      destination: Schema.String.annotate({ description: "The path that it shall have, its name included" })
    },
    annotations: { editsFiles: true },
    ...onFiles(
      Effect.fnUntraced(function* ({ destination, source }: Move) {
        const backend = yield* Backend.Backend
        const from = yield* resolve("move", source, backend)
        const to = yield* resolve("move", destination, backend)
        return yield* hold(
          [from, to],
          Effect.fnUntraced(function* (seen) {
            yield* moving(seen, backend, from, to, backend.move(from, to))
            return ToolOutput.make(`Moved ${showPath(from)} to ${showPath(to)}.`, {
              details: { kind: "move", from, to }
            })
          })
        )
      }, kit.tell)
    )
  })
