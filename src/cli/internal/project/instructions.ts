/** Instruction files: `AGENTS.md` and `CLAUDE.md` of the user and of the project, with their `@imports`. */
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import { head, oneLine, quote, visible, withoutComments } from "../../../support/text/untrusted.ts"
import { itemsOf, type Project } from "../config/items.ts"
import type { Places } from "../config/places.ts"
import { foldersOf, realOf } from "./folders.ts"
import { isInside, type LoadedText, loadFile, names, type ReadFile, readWithImports } from "./imports.ts"

/** The most bytes of one file in the prompt, and of all. */
export const limits = { file: 32_768, all: 98_304 } as const

/** A file in the prompt. `bytes` counts the whole file, `text` is what the model reads. */
export interface InstructionFile {
  readonly path: string
  readonly from: "user" | "project"
  readonly importer: string | undefined
  readonly text: string
  readonly bytes: number
  readonly isWhole: boolean
}

export interface Instructions {
  readonly files: ReadonlyArray<InstructionFile>
  readonly problems: ReadonlyArray<string>
}

/** Cuts files to the room that they have. */
const cutFiles = (files: ReadonlyArray<ReadFile & Pick<InstructionFile, "from">>): ReadonlyArray<InstructionFile> => {
  let room: number = limits.all
  return files.map(({ from, importer, path, text: source }) => {
    const whole = visible(withoutComments(source)).trim()
    const text = head(whole, Math.min(limits.file, room))
    room -= Buffer.byteLength(text)
    return { path, from, importer, text, bytes: Buffer.byteLength(source), isWhole: text.length === whole.length }
  })
}

/** Reads the instruction files of one folder, for a notice. */
export const readFolder = Effect.fnUntraced(function* (folder: string, root: string) {
  const instructions = yield* readWithImports(
    names.map((name) => join(folder, name)),
    (real) => loadFile(real, isInside(root, real))
  )
  return {
    ...instructions,
    files: cutFiles(instructions.files.map((file) => ({ ...file, from: "project" })))
  } satisfies Instructions
})

/** Reads the instruction files of the user, and the trusted ones of the project: the general ones first. */
export const readInstructions = Effect.fnUntraced(function* (places: Places, project: Project) {
  const homes = yield* Effect.forEach([join(homedir(), ".claude"), places.config], realOf)
  const isHome = (real: string): boolean => homes.some((home) => home !== undefined && isInside(home, real))
  const own = yield* readWithImports(
    [join(homedir(), ".claude", "CLAUDE.md"), join(places.config, "AGENTS.md")],
    // The user's own file may be a link to anywhere.
    (real, importer) => loadFile(real, importer === undefined || isHome(real))
  )
  const folders = yield* foldersOf(places.project)
  const working = folders.at(-1) ?? places.project
  const trusted = new Map(
    itemsOf(project, "instructions").map(({ file, text }) => [resolve(working, file), text] as const)
  )
  const brought = yield* readWithImports(
    folders.flatMap((folder) => names.map((name) => join(folder, name))),
    Effect.fnUntraced(function* (real, importer): Effect.fn.Return<LoadedText, never, FileSystem.FileSystem> {
      const text = trusted.get(real)
      if (text !== undefined) return { text }
      // Texts at the top that are not trusted were said before, and other files were not.
      if (importer === undefined) {
        const loaded = yield* loadFile(real, isInside(folders[0] ?? working, real))
        return "text" in loaded ? undefined : loaded
      }
      if (isHome(real) && /\.md$/i.test(real)) return yield* loadFile(real, true)
      const isOutside = !isInside(folders[0] ?? working, real)
      return { problem: `which is ${isOutside ? "outside of the project" : "not trusted"}; it is not read` }
    })
  )
  const files = cutFiles([
    ...own.files.map((file) => ({ ...file, from: "user" }) as const),
    ...brought.files.map((file) => ({ ...file, from: "project" }) as const)
  ])
  return {
    files,
    problems: [
      ...own.problems,
      ...brought.problems,
      ...files.flatMap(({ bytes, isWhole, path }) =>
        isWhole ? [] : [`${oneLine(path)} is cut: only its beginning is read (${bytes} bytes; shorten it)`]
      )
    ]
  } satisfies Instructions
})

const whose = { user: "the user's", project: "the project's" } as const

/** Formats files for the model. */
export const tellFiles = (files: ReadonlyArray<InstructionFile>): string =>
  files
    .filter(({ text }) => text !== "")
    .map(({ bytes, from, importer, isWhole, path, text }) => {
      const origin = importer === undefined ? whose[from] : `${whose[from]}, imported by ${oneLine(importer)}`
      const cut = isWhole ? "" : `\n[Cut: the file has ${bytes} bytes. Read the rest with read_file if you need it.]`
      return `${oneLine(path)} (${origin}):\n${quote(text)}${cut}`
    })
    .join("\n\n")
