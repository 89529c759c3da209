/** Slash commands of a person's own: Markdown files, whose text is said to the agent. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { cleanLine } from "../../../support/text/clean.ts"
import type { Command } from "../chat/options.ts"

/** The longest file that is a command, in characters. */
const longest = 100_000

const field = (front: string, name: string): string | undefined =>
  new RegExp(`^${name}:\\s*(.+)$`, "m").exec(front)?.[1]?.replace(/^["'](.*)["']$/, "$1")

/** `$ARGUMENTS` is all that stands behind the name, `$1` its first word. */
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

/**
 * Reads the commands of these folders: a Markdown file each, with `description` and `argument-hint` in its front matter.
 * Of two with one name, that of the later folder counts. A folder that is not there has none.
 */
export const fileCommands = Effect.fnUntraced(function* (folders: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const found = new Map<string, Command>()
  for (const folder of folders) {
    const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
    for (const file of names.filter((name) => /^[\w-]+\.md$/.test(name)).toSorted()) {
      const text = yield* Effect.orElseSucceed(fs.readFileString(path.join(folder, file)), () => "")
      const name = file.slice(0, -3)
      if (text !== "" && text.length <= longest) found.set(name, commandOf(name, text))
    }
  }
  return [...found.values()]
})
