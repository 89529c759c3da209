/** Reads instruction files and follows their `@imports`. */
import { homedir } from "node:os"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { oneLine } from "../../../support/text/untrusted.ts"
import { readSmall, realOf } from "./folders.ts"

/** The names of instruction files in a folder of a project. */
export const names = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"] as const

/** Limits of reading: bytes of a file, files, imports of imports, and words that may be a file. */
const limits = { bytes: 1_000_000, files: 50, depth: 5, words: 1_000 } as const

/** A file at its real path. `importer` is the file that named it. */
export interface ReadFile {
  readonly path: string
  readonly text: string
  readonly importer: string | undefined
}

/** The text of a file, a reason not to read it, or `undefined` for a file that counts as missing. */
export type LoadedText = { readonly text: string } | { readonly problem: string } | undefined

/** Tells whether a word means a file, even if it is missing. Others are names of people, packages or decorators. */
const isLikePath = (word: string): boolean => /^(?:~|\.{1,2})\//.test(word) || /\.(?:md|txt)$/i.test(word)

/** Finds the words behind an `@`, outside of code. */
export const importsOf = (text: string): ReadonlyArray<string> => {
  let fence = ""
  const imports: Array<string> = []
  for (const line of text.split("\n")) {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1]?.slice(0, 3) ?? ""
    if (fence === "" ? mark !== "" : mark === fence) {
      fence = fence === "" ? mark : ""
    } else if (fence === "") {
      for (const word of line.replaceAll(/`[^`]*`/g, " ").split(/\s+/)) {
        const path = word.startsWith("@") ? word.slice(1).replace(/[.,;:!?)\]]{1,20}$/, "") : ""
        if (path !== "" && !path.includes("@")) imports.push(path)
      }
    }
  }
  return [...new Set(imports)]
}

export const isInside = (folder: string, path: string): boolean => {
  const way = relative(folder, path)
  return way === "" || (!isAbsolute(way) && way !== ".." && !way.startsWith(`..${sep}`))
}

/** Loads a regular text file at its real path. */
export const loadFile = Effect.fnUntraced(function* (real: string, isReachable: boolean) {
  if (!isReachable) return { problem: "which is outside of the project; it is not read" }
  const loaded = (yield* readSmall(real, limits.bytes)) ?? { problem: "it is not there" }
  if ("problem" in loaded) return { problem: `which is not read: ${loaded.problem}` }
  return loaded.text.includes("\u0000") ? { problem: "which is no text that can be read" } : loaded
})

/** Reads these files, and the ones that they import: each once, in the order in which they are named. */
export const readWithImports = Effect.fnUntraced(function* <R>(
  starts: ReadonlyArray<string>,
  load: (real: string, importer: string | undefined) => Effect.Effect<LoadedText, never, R>
) {
  const files: Array<ReadFile> = []
  const problems: Array<string> = []
  const visited = new Set<string>()
  let words = 0
  const say = (importer: string | undefined, problem: string): void => {
    problems.push(
      oneLine(importer === undefined ? problem.replace(", which is", " is") : `${importer}: imports ${problem}`)
    )
  }

  const visit = (path: string, chain: ReadonlyArray<string>): Effect.Effect<void, never, R | FileSystem.FileSystem> =>
    Effect.gen(function* () {
      const importer = chain.at(-1)
      const real = yield* realOf(path)
      if (real !== undefined && chain.includes(real)) {
        return say(importer, `go in a circle: ${[...chain, real].join(" > ")}`)
      }
      if (real !== undefined && visited.has(real)) return undefined
      if (chain.length > limits.depth)
        return say(importer, `${path}: it is more than ${limits.depth} deep, and not read`)
      if (visited.size >= limits.files) return say(importer, `${path}: it is not read, after ${limits.files} others`)
      const result = real === undefined ? undefined : yield* load(real, importer)
      if (real === undefined || result === undefined) {
        if (importer !== undefined) return say(importer, `${path}, which is not there`)
        const start = yield* readSmall(path, limits.bytes)
        return start !== undefined && "problem" in start
          ? say(undefined, `${path} is not read: ${start.problem}`)
          : undefined
      }
      if ("problem" in result) return say(importer, `${path}, ${result.problem}`)
      visited.add(real)
      files.push({ path: real, text: result.text, importer })
      for (const word of importsOf(result.text)) {
        words += 1
        if (words > limits.words) {
          // Each word is looked up on the disk, before anybody trusts the file.
          return words === limits.words + 1
            ? say(undefined, `${real}: words with @ are not read as imports after ${limits.words} of them`)
            : undefined
        }
        const target = word.startsWith("~/") ? join(homedir(), word.slice(2)) : resolve(dirname(real), word)
        if (isLikePath(word) || (yield* isFile(target))) yield* visit(target, [...chain, real])
      }
      return undefined
    })

  for (const path of starts) yield* visit(path, [])
  return { files, problems }
})

const isFile = (path: string) =>
  FileSystem.FileSystem.use((fs) =>
    Effect.match(fs.stat(path), { onFailure: () => false, onSuccess: ({ type }) => type === "File" })
  )
