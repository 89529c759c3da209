/** Slash commands from Markdown files. Their text becomes a message to the agent. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { cleanLine } from "../../../support/text/clean.ts"
import type { Command } from "../chat/options.ts"

/** The longest command file, in characters. */
const longest = 100_000

const field = (front: string, name: string): string | undefined =>
  new RegExp(`^${name}:\\s*(.+)$`, "m").exec(front)?.[1]?.replace(/^["'](.*)["']$/, "$1")

/** Fills in `$ARGUMENTS` (all words) and `$1`, `$2` … (single words). */
const filled = (body: string, argument: string): string => {
  const words = argument.split(/\s+/).filter((word) => word !== "")
  const isTaken = /\$(?:ARGUMENTS|\d)/.test(body)
  const text = body.replaceAll(/\$(ARGUMENTS|\d)/g, (_, name: string) =>
    name === "ARGUMENTS" ? argument : (words[Number(name) - 1] ?? "")
  )
  return isTaken || argument === "" ? text : `${text}\n\n${argument}`
}

const commandOf = (name: string, source: string): Command => {
  const [, front = "", body = source] = /^---\n([^]*?)\n---\n?([^]*)$/.exec(source.replaceAll("\r\n", "\n")) ?? []
  return {
    name,
    description: cleanLine(field(front, "description") ?? body.trim().split("\n")[0] ?? ""),
    argument: field(front, "argument-hint") ?? (/\$(?:ARGUMENTS|\d)/.test(body) ? "[…]" : undefined),
    run: (argument) => Effect.succeed({ _tag: "Send", input: filled(body.trim(), argument.trim()) })
  }
}

/** A command file that was read before. */
interface CommandFile {
  readonly name: string
  readonly text: string
}

/**
 * Makes the commands of files, with `description` and `argument-hint` in their front matter: those of the folders, then
 * the given ones. The later one of two with one name wins. A missing folder has no commands.
 */
export const fileCommands = Effect.fnUntraced(function* (
  folders: ReadonlyArray<string>,
  given: ReadonlyArray<CommandFile>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const files: Array<CommandFile> = []
  for (const folder of folders) {
    const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
    for (const file of names.filter((name) => name.endsWith(".md")).toSorted()) {
      const text = yield* Effect.orElseSucceed(fs.readFileString(path.join(folder, file)), () => "")
      files.push({ name: file.slice(0, -3), text })
    }
  }
  const fitting = [...files, ...given].filter(
    ({ name, text }) => /^[\w-]+$/.test(name) && text !== "" && text.length <= longest
  )
  return [...new Map(fitting.map(({ name, text }) => [name, commandOf(name, text)])).values()]
})
