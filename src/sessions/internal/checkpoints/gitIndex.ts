/** Reads the index of git: the files that git knows, with the stats that they had when git saw them last. */
import * as fs from "node:fs"
import { dirname, join, resolve } from "node:path"
import { attempt } from "./disk.ts"

/** A file in the index. Times are in milliseconds. */
interface IndexEntry {
  readonly oid: string
  readonly mtime: number
  readonly ctime: number
  readonly ino: number
  readonly size: number
}

/** The index of a repository. `top` is the folder of its files. */
export interface Index {
  readonly top: string
  readonly stamp: string
  readonly files: ReadonlyMap<string, IndexEntry>
}

/** Finds the repository of a folder: its top, and the folder with its index. */
const findRepository = (folder: string): { readonly top: string; readonly at: string } | undefined => {
  for (let top = folder; ; top = dirname(top)) {
    const at = join(top, ".git")
    const stat = attempt(() => fs.lstatSync(at))
    if (stat?.isDirectory() === true) return { top, at }
    if (stat?.isFile() === true && stat.size < 10_000) {
      const link = /^gitdir: (.+)$/mu.exec(attempt(() => fs.readFileSync(at, "utf8")) ?? "")?.[1]
      return link === undefined ? undefined : { top, at: resolve(top, link) }
    }
    if (dirname(top) === top) return undefined
  }
}

/** The length of an object's id: 20 bytes, or 32 in a repository of SHA-256. */
const idLength = (at: string): number => {
  const common = (attempt(() => fs.readFileSync(join(at, "commondir"), "utf8")) ?? ".").trim()
  const config = attempt(() => fs.readFileSync(join(resolve(at, common), "config"), "utf8")) ?? ""
  return /objectformat\s*=\s*sha256/iu.test(config) ? 32 : 20
}

/** The most bytes of an index that is read. */
const most = 100_000_000

/** The bytes of an entry before the object's id. */
const statBytes = 40

const readIndex = (data: Buffer, top: string, length: number, indexedAt: number): ReadonlyMap<string, IndexEntry> => {
  const files = new Map<string, IndexEntry>()
  const version = data.readUInt32BE(4)
  // Version 4 shortens names by the one before. Versions 2 and 3 pad entries to 8 bytes.
  if (data.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) return files
  const count = data.readUInt32BE(8)
  let at = 12
  let before = ""
  for (let index = 0; index < count; index++) {
    const begin = at
    const flags = data.readUInt16BE(at + statBytes + length)
    at += statBytes + length + (version >= 3 && (flags & 0x4000) !== 0 ? 4 : 2)
    let prefix = ""
    if (version === 4) {
      let cut = data.readUInt8(at)
      let strip = cut & 0x7f
      while ((cut & 0x80) !== 0) {
        cut = data.readUInt8(++at)
        strip = ((strip + 1) << 7) | (cut & 0x7f)
      }
      at++
      prefix = before.slice(0, before.length - strip)
    }
    const end = data.indexOf(0, at)
    // Names are bytes here, so that a strip counts as git does.
    before = prefix + data.toString("latin1", at, end)
    at = version === 4 ? end + 1 : begin + ((end - begin + 8) & ~7)
    const type = data.readUInt32BE(begin + 24) >>> 12
    const mtime = data.readUInt32BE(begin + 8) * 1000 + data.readUInt32BE(begin + 12) / 1e6
    // A file that was written with the index or later may have changed since, by the same stat.
    if (type !== 0b1000 || (flags & 0x3000) !== 0 || mtime >= indexedAt) continue
    files.set(join(top, Buffer.from(before, "latin1").toString()), {
      oid: data.toString("hex", begin + statBytes, begin + statBytes + length),
      mtime,
      ctime: data.readUInt32BE(begin) * 1000 + data.readUInt32BE(begin + 4) / 1e6,
      ino: data.readUInt32BE(begin + 20),
      size: data.readUInt32BE(begin + 36)
    })
  }
  return files
}

/** Reads the index of a folder's repository, unless it is as `last` says. `undefined` without one. */
export const indexOf = (folder: string, last: Index | undefined): Index | undefined => {
  const repository = findRepository(folder)
  if (repository === undefined) return undefined
  const file = join(repository.at, "index")
  const stat = attempt(() => fs.statSync(file))
  // To read a pipe waits for ever.
  if (stat?.isFile() !== true || stat.size > most) return undefined
  const stamp = `${file}:${stat.ino}:${stat.size}:${stat.mtimeMs}`
  if (last?.stamp === stamp) return last
  const files = attempt(() =>
    readIndex(fs.readFileSync(file), repository.top, idLength(repository.at), Math.floor(stat.mtimeMs))
  )
  return { top: repository.top, stamp, files: files ?? new Map<string, IndexEntry>() }
}

/** Git may store whole seconds. */
const isTime = (indexed: number, mtime: number): boolean =>
  Math.abs(indexed - mtime) < 0.001 || (indexed % 1000 === 0 && indexed === Math.floor(mtime / 1000) * 1000)

/** The object of a file that is as git saw it last. */
export const cleanObject = (index: Index | undefined, path: string, stat: fs.Stats): string | undefined => {
  const indexed = index?.files.get(path)
  return indexed !== undefined &&
    indexed.size === stat.size &&
    indexed.ino === stat.ino % 2 ** 32 &&
    isTime(indexed.mtime, stat.mtimeMs) &&
    isTime(indexed.ctime, stat.ctimeMs)
    ? indexed.oid
    : undefined
}
