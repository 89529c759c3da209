/** Slash commands from Markdown files. Their text becomes a message to the agent. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { cleanLine } from "../../../support/text/clean.ts"
import { compareText } from "../../../support/text/text.ts"
import type { Command, RunCommand } from "../chat/options.ts"
import { readSmall } from "../project/folders.ts"

/** Limits: bytes of a file, files of a folder, folders in folders, commands that one text runs. */
const limits = { bytes: 100_000, files: 500, depth: 4, commands: 20 } as const

/** A folder of commands. `prefix` stands before their names, with a colon. */
export interface CommandFolder {
  readonly folder: string
  readonly prefix?: string | undefined
}

const field = (front: string, name: string): string | undefined =>
  new RegExp(`^${name}:\\s*(.+)$`, "m").exec(front)?.[1]?.replace(/^["'](.*)["']$/, "$1")

const argumentMarks = /\$(ARGUMENTS|\d)/g

/** Fills in `$ARGUMENTS` (all words) and `$1`, `$2` … (single words). */
const filled = (text: string, argument: string): string => {
  const words = argument.split(/\s+/).filter((word) => word !== "")
  return text.replaceAll(argumentMarks, (_, name: string) =>
    name === "ARGUMENTS" ? argument : (words[Number(name) - 1] ?? "")
  )
}

const takesArgument = (body: string): boolean => /\$(?:ARGUMENTS|\d)/.test(body)

/**
 * Makes the message: the text with its arguments, and the output of each command in `` !`…` `` in place of the command.
 * Only the file names commands: words of an argument are never run by themselves.
 */
const messageOf = Effect.fnUntraced(function* (body: string, argument: string, runCommand: RunCommand) {
  const pieces: Array<string> = []
  let ran = 0
  for (const [index, piece] of body.split(/!`([^`\n]+)`/).entries()) {
    const text = filled(piece, argument)
    if (index % 2 === 0) pieces.push(text)
    else if (ran >= limits.commands) pieces.push(`[not run: a command file may run ${limits.commands} commands]`)
    else {
      ran += 1
      pieces.push(yield* runCommand(text))
    }
  }
  const text = pieces.join("")
  return takesArgument(body) || argument === "" ? text : `${text}\n\n${argument}`
})

const commandOf = (name: string, source: string): Command => {
  const [, front = "", whole = source] = /^---\n([^]*?)\n---\n?([^]*)$/.exec(source.replaceAll("\r\n", "\n")) ?? []
  const body = whole.trim()
  return {
    name,
    description: cleanLine(field(front, "description") ?? body.split("\n")[0] ?? ""),
    argument: field(front, "argument-hint") ?? (takesArgument(body) ? "[…]" : undefined),
    run: (argument, _note, runCommand) =>
      Effect.map(messageOf(body, argument.trim(), runCommand), (input) => ({ _tag: "Send", input }))
  }
}

/** Lists the command files below a folder, with the names of their commands: `ns/x.md` is `ns:x`. */
const filesIn = Effect.fnUntraced(function* ({ folder, prefix }: CommandFolder) {
  const fs = yield* FileSystem.FileSystem
  const files: Array<readonly [name: string, file: string]> = []
  const walk = (at: string, parts: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.gen(function* () {
      const names = yield* Effect.orElseSucceed(fs.readDirectory(at), (): ReadonlyArray<string> => [])
      for (const name of names.toSorted(compareText)) {
        if (files.length >= limits.files) return
        const path = join(at, name)
        if (/^[\w-]+\.md$/.test(name)) files.push([[...parts, name.slice(0, -3)].join(":"), path])
        else if (/^[\w-]+$/.test(name) && parts.length < limits.depth) yield* walk(path, [...parts, name])
      }
    })
  yield* walk(folder, prefix === undefined ? [] : [prefix])
  return files
})

/** A command file that was read, or a reason not to read it. */
type CommandFile = { readonly name: string; readonly file: string } & (
  | { readonly text: string }
  | { readonly problem: string }
)

/** A command whose file can't be read: it says why. */
const brokenCommand = (name: string, message: string): Command => ({
  name,
  description: cleanLine(message),
  run: () => Effect.fail({ message })
})

/**
 * Makes the commands of files, with `description` and `argument-hint` in their front matter: those in the folders, then
 * the given ones. Of two commands with one name, the later one counts. A missing folder has no commands. The command of
 * an unreadable file says why it can't be read.
 */
export const fileCommands = Effect.fnUntraced(function* (
  folders: ReadonlyArray<CommandFolder>,
  given: ReadonlyArray<CommandFile>
) {
  const files: Array<CommandFile> = []
  for (const folder of folders) {
    for (const [name, file] of yield* filesIn(folder)) {
      const outcome = yield* readSmall(file, limits.bytes)
      if (outcome !== undefined) files.push({ name, file, ...outcome })
    }
  }
  const commands = [...files, ...given].flatMap(({ file, name, ...outcome }) => {
    if (!/^[\w-]+(?::[\w-]+){0,9}$/.test(name)) return []
    if ("problem" in outcome) return [brokenCommand(name, `${file}: ${outcome.problem}`)]
    return outcome.text === "" ? [] : [commandOf(name, outcome.text)]
  })
  return [...new Map(commands.map((command) => [command.name, command])).values()]
})
