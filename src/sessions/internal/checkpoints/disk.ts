/** Reads paths of the machine. Nothing follows a link. */
import * as Crypto from "node:crypto"
import * as fs from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as SqliteFiles from "../../../support/store/sqliteFiles.ts"
import type { Entry, File, State } from "./entry.ts"

/** Runs a call of the file system; `undefined` if it fails. */
export const attempt = <A>(body: () => A): A | undefined => Result.getOrUndefined(Result.try(body))

/** Content to keep in the store. */
export interface Blob {
  readonly hash: string
  readonly data: Uint8Array
}

export const stampOf = (stat: fs.Stats): string => `${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`

export const modeOf = (stat: fs.Stats): number => stat.mode & 0o7777

export const statOf = (path: string): fs.Stats | undefined =>
  attempt(() => fs.lstatSync(path, { throwIfNoEntry: false }))

export const hashOf = (data: Uint8Array): string => Crypto.hash("sha256", data)

/** The file of a stat, without its content. */
export const fileOf = (stat: fs.Stats): File => ({
  _tag: "File",
  mode: modeOf(stat),
  size: stat.size,
  stamp: stampOf(stat)
})

/** The entry of a stat, without the content of a file. `undefined` for devices, sockets and pipes. */
export const entryOf = (path: string, stat: fs.Stats): State => {
  if (stat.isFile()) return fileOf(stat)
  if (stat.isDirectory()) return { _tag: "Folder", mode: modeOf(stat) }
  const to = stat.isSymbolicLink() ? attempt(() => fs.readlinkSync(path)) : undefined
  return to === undefined ? undefined : { _tag: "Link", to }
}

/** Files up to this size are read at once, larger ones in the background. */
const small = 256 * 1024

const readAll = (path: string, size: number): Effect.Effect<Uint8Array | undefined> =>
  size <= small
    ? Effect.sync(() => attempt((): Uint8Array => fs.readFileSync(path)))
    : Effect.orElseSucceed(
        Effect.tryPromise((signal): Promise<Uint8Array> => fs.promises.readFile(path, { signal })),
        () => undefined
      )

/** Reads the content of a file that was not changed meanwhile. */
export const readFile = Effect.fnUntraced(function* (
  path: string,
  file: File
): Effect.fn.Return<{ readonly file: File; readonly blob: Blob } | undefined> {
  const data = yield* readAll(path, file.size)
  if (data === undefined || data.length !== file.size) return undefined
  const stat = statOf(path)
  if (stat === undefined || stampOf(stat) !== file.stamp) return undefined
  const hash = hashOf(data)
  return { file: { ...file, hash }, blob: { hash, data } }
})

/** True if no folder between the root of the machine and the path is a link, or missing. */
export const hasRealParents = (path: string): boolean => {
  const parent = dirname(path)
  return attempt(() => fs.realpathSync.native(parent)) === parent
}

/** Reads the current state of a path. The content of a larger file than `most` is not read. */
export const readState = Effect.fnUntraced(function* (
  path: string,
  most: number
): Effect.fn.Return<{ readonly state: State; readonly blob?: Blob }> {
  const stat = hasRealParents(path) ? statOf(path) : undefined
  const state = stat === undefined ? undefined : entryOf(path, stat)
  if (stat === undefined || state?._tag !== "File" || state.size > most || SqliteFiles.isOpen(stat)) return { state }
  const content = yield* readFile(path, state)
  return content === undefined ? { state } : { state: content.file, blob: content.blob }
})

/** Reads only the hash of the content, for comparisons. */
export const readEntry = (path: string, most: number): Effect.Effect<Entry | undefined> =>
  Effect.map(readState(path, most), ({ state }) => state)

/** A chain of links that is longer leads nowhere, as on Linux. */
const mostLinks = 40

/**
 * Follows the links of a path, name by name, also to missing files: a tool that writes through such a link makes the file.
 * `undefined` for a circle.
 */
const followLinks = (path: string): string | undefined => {
  const names = path.split("/").toReversed()
  let at = "/"
  let links = 0
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    const next = resolve(at, name)
    const to = statOf(next)?.isSymbolicLink() === true ? attempt(() => fs.readlinkSync(next)) : undefined
    if (to === undefined) at = next
    else if (++links > mostLinks) return undefined
    else {
      if (to.startsWith("/")) at = "/"
      names.push(...to.split("/").toReversed())
    }
  }
  return at
}

/** The path with all links of its folders resolved. Missing folders stay as they are. */
export const canonicalOf = (path: string): string => {
  const parent = dirname(path)
  const real = attempt(() => fs.realpathSync.native(parent)) ?? followLinks(parent) ?? parent
  return join(real, basename(path))
}

/** The path that a link leads to, also if nothing is there yet; `undefined` for a circle. */
export const targetOf = followLinks
