/**
 * Small files that a search is going to look into, read while it is still asked which ones these are.
 *
 * They are read as all files of the jail are: in a folder that is held, under a name that is no link. But a folder is
 * held once for all that is read in it, and by plain calls: a search that finds something in a thousand files would
 * otherwise take longer than ripgrep takes for all files together.
 */
import * as NodeFs from "node:fs"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Child } from "../derive/primitives.ts"
import * as Path from "../files/path.ts"
import * as Ignore from "../glob/ignore.ts"
import * as Jail from "./jail.ts"
import * as System from "./system.ts"

const maxFileBytes = 64 * 1024
const maxBytes = 16 * 1024 * 1024
const maxFiles = 4_096
/** So many are read before others have their turn. */
const readAtOnce = 128

/** The results of a survey. Other paths have to be looked up. */
export interface Ahead {
  /** Reads small files ahead, as long as there is room. */
  readonly read: (paths: ReadonlyArray<string>) => Effect.Effect<void>
  /** The entry at a path: a file, a folder, or nothing (`null`). `undefined`: it was not looked. */
  readonly child: (path: string) => Child | null | undefined
  readonly content: (path: string) => Uint8Array | undefined
}

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = NodeFs.constants

/** Opens something to use it, and closes it. Nothing, if it can't be opened or used. */
const using = <A>(path: string, flags: number, use: (fd: number) => A): A | undefined => {
  const opened = System.attempt(() => NodeFs.openSync(path, flags))
  if (Result.isFailure(opened)) return undefined
  const used = System.attempt(() => use(opened.success))
  System.attempt(() => NodeFs.closeSync(opened.success))
  return Result.getOrUndefined(used)
}

/** Reads the size of a regular file, and its content if that has at most `room` bytes. */
const readSmall = (
  fd: number,
  room: number
): { readonly size: number; readonly content?: Uint8Array | undefined } | undefined => {
  const stats = NodeFs.fstatSync(fd)
  if (!stats.isFile()) return undefined
  if (stats.size > room) return { size: stats.size }
  const content = new Uint8Array(stats.size)
  let length = 0
  while (length < content.length) {
    const count = NodeFs.readSync(fd, content, length, content.length - length, length)
    if (count === 0) break
    length += count
  }
  return { size: stats.size, content: content.subarray(0, length) }
}

const byFolder = (paths: ReadonlyArray<string>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const folders = new Map<string, Array<string>>()
  for (const path of paths) {
    const folder = Path.parent(path)
    const files = folders.get(folder)
    if (files === undefined) folders.set(folder, [path])
    else files.push(path)
  }
  return folders
}

/** Nothing seen yet. Without `/proc` nothing ever is: to hold a folder is dear there. */
export const make = (jail: Jail.Jail): Ahead => {
  const children = new Map<string, Child | null>()
  const contents = new Map<string, Uint8Array>()
  let bytes = 0

  /** Records a folder without links, and therefore all folders above it. */
  const sawFolder = (path: string): void => {
    for (let at = path; at !== "/" && !children.has(at); at = Path.parent(at)) {
      children.set(at, { name: Path.basename(at), kind: "directory" })
    }
  }

  const lookForRules = (folder: string, self: string): void => {
    const path = Path.join(folder, Ignore.ignoreFile)
    if (children.has(path)) return
    const stats = System.attempt(() => System.lstatNow(`${self}/${Ignore.ignoreFile}`))
    if (Result.isFailure(stats)) return
    if (stats.success === undefined) children.set(path, null)
    else if (stats.success.isFile()) children.set(path, { name: Ignore.ignoreFile, kind: "file" })
  }

  const readFile = (path: string, self: string): void => {
    const name = Path.basename(path)
    if (System.isOpenDatabase(`${self}/${name}`)) return
    const room = Math.min(maxFileBytes, maxBytes - bytes)
    const file = using(`${self}/${name}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, (fd) => readSmall(fd, room))
    if (file === undefined) return
    children.set(path, { name, kind: "file", size: file.size })
    if (file.content === undefined) return
    contents.set(path, file.content)
    bytes += file.content.length
  }

  const readIn = (folder: string, paths: ReadonlyArray<string>): void => {
    const real = Jail.realPath(jail, Path.segments(folder))
    Jail.holdNow(real, (self) => {
      sawFolder(folder)
      lookForRules(folder, self)
      for (const path of paths) readFile(path, self)
    })
  }

  return {
    read: Effect.fnUntraced(function* (paths) {
      if (!jail.byDescriptor) return
      for (let at = 0; at < paths.length && contents.size < maxFiles && bytes < maxBytes; at += readAtOnce) {
        if (at > 0) yield* Effect.yieldNow
        for (const [folder, some] of byFolder(paths.slice(at, at + readAtOnce))) readIn(folder, some)
      }
    }),
    child: (path) => children.get(path),
    content: (path) => contents.get(path)
  }
}
