/** The paths of a folder, kept warm for the completion of `@`, and a fuzzy search over them. */
import { execFile } from "node:child_process"
import { opendir } from "node:fs/promises"
import { join } from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

/** The most paths of an index. */
const mostPaths = 200_000

/** Time after which the next search reads the folder again, in milliseconds. */
const freshFor = 3_000

/** Folders that hold no files of the person. */
const skipped: ReadonlySet<string> = new Set([".git", "node_modules", ".venv", "target", "__pycache__"])

/** A path with its form for comparison, and where its last name begins. */
interface Entry {
  readonly path: string
  readonly lower: string
  readonly name: number
}

export const entryOf = (path: string): Entry => ({
  path,
  lower: path.toLowerCase(),
  name: path.lastIndexOf("/") + 1
})

const isBoundary = (text: string, at: number): boolean => at === 0 || /[/._\- ]/.test(text[at - 1] ?? "")

/** Rates a path for a text in lower case: the higher the better. `undefined` if its characters are not in it in order. */
const rate = ({ lower, name }: Entry, wanted: string): number | undefined => {
  const inName = lower.indexOf(wanted, name)
  if (inName >= 0) return 3_000 - lower.length + (inName === name ? 1_000 : isBoundary(lower, inName) ? 500 : 0)
  const inPath = lower.indexOf(wanted)
  if (inPath >= 0) return 2_000 - lower.length + (isBoundary(lower, inPath) ? 300 : 0)
  let at = -1
  let gaps = 0
  for (const character of wanted) {
    const next = lower.indexOf(character, at + 1)
    if (next < 0) return undefined
    if (next !== at + 1 && !isBoundary(lower, next)) gaps += 1
    at = next
  }
  return 1_000 - lower.length - 20 * gaps
}

/** The best paths for a text, the best first. It keeps only the best ones, so that many hits cost no more than few. */
export const search = (entries: ReadonlyArray<Entry>, text: string, most: number): ReadonlyArray<string> => {
  const wanted = text.toLowerCase()
  const best: Array<{ readonly rating: number; readonly path: string }> = []
  for (const entry of entries) {
    const rating = rate(entry, wanted)
    const last = best.at(-1)
    if (rating === undefined || (best.length >= most && last !== undefined && rating <= last.rating)) continue
    let at = best.length
    while (at > 0 && (best[at - 1]?.rating ?? 0) < rating) at -= 1
    best.splice(at, 0, { rating, path: entry.path })
    if (best.length > most) best.pop()
  }
  return best.map(({ path }) => path)
}

/** Lists the files that git knows and those that it does not ignore. Settings of the repository run no programs. */
const listByGit = (folder: string) =>
  Effect.callback<ReadonlyArray<string> | undefined>((resume) => {
    const args = ["-c", "core.fsmonitor=false", "ls-files", "-co", "--exclude-standard", "-z"]
    const options = {
      cwd: folder,
      maxBuffer: 64_000_000,
      timeout: 20_000,
      env: { ...process.env, GIT_OPTIONAL_LOCKS: "0" }
    }
    const child = execFile("git", args, options, (error, stdout) =>
      resume(
        Effect.succeed(error === null ? [...new Set(stdout.split("\0"))].filter((path) => path !== "") : undefined)
      )
    )
    return Effect.sync(() => child.kill())
  })

/** Lists the files below a folder. Links are not followed. */
const listByWalk = Effect.fnUntraced(function* (folder: string) {
  const paths: Array<string> = []
  const open = [""]
  for (let at = open.pop(); at !== undefined && paths.length < mostPaths; at = open.pop()) {
    const below = at
    yield* Effect.ignore(
      Effect.tryPromise(async () => {
        for await (const entry of await opendir(join(folder, below))) {
          const path = below === "" ? entry.name : `${below}/${entry.name}`
          if (entry.isDirectory()) {
            if (!skipped.has(entry.name)) open.push(path)
          } else if (entry.isFile()) paths.push(path)
        }
      })
    )
  }
  return paths
})

export interface FileIndex {
  /** The best paths for a text. A folder that was read long ago is read again in the background. */
  readonly find: (text: string, most: number) => Effect.Effect<ReadonlyArray<string>>
  /** Reads the folder again, and waits until that is done. */
  readonly refresh: Effect.Effect<void>
}

/** Makes the index of a folder, and begins to read it. */
export const makeFileIndex = Effect.fnUntraced(function* (
  folder: string
): Effect.fn.Return<FileIndex, never, Scope.Scope> {
  const scope = yield* Effect.scope
  let entries: ReadonlyArray<Entry> = []
  let readAt = 0
  let reading: Fiber.Fiber<void> | undefined
  const readPaths = Effect.gen(function* () {
    const paths = (yield* listByGit(folder)) ?? (yield* listByWalk(folder))
    entries = paths.slice(0, mostPaths).map(entryOf)
    readAt = yield* Clock.currentTimeMillis
  })
  const endReading = Effect.sync(() => {
    reading = undefined
  })
  /** Begins to read the folder, unless that is under way. */
  const begin = Effect.gen(function* () {
    reading ??= yield* Effect.forkIn(Effect.ensuring(readPaths, endReading), scope)
    return reading
  })
  yield* begin
  return {
    find: Effect.fnUntraced(function* (text, most) {
      if ((yield* Clock.currentTimeMillis) - readAt > freshFor) yield* begin
      return search(entries, text, most)
    }),
    refresh: Effect.flatMap(begin, (fiber) => Effect.asVoid(Fiber.await(fiber)))
  }
})
