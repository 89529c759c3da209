/**
 * Brings paths to the states that they aim at. Only the aims count, so a restore that was cut off is done again from its
 * beginning. Nothing follows a link.
 */
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { attempt, hashOf, hasRealParents, modeOf, readEntry, statOf } from "./disk.ts"
import { type Aim, type File, hasSameContent, isSame, referenceOf, type State } from "./entry.ts"

/** A path that could not be restored. */
export interface FailedPath {
  readonly path: string
  readonly problem: string
}

/** The temporary name beside a path: always the same, so that the next restore takes it over. */
const temporaryOf = (path: string): string =>
  join(dirname(path), `.undo-${hashOf(new TextEncoder().encode(basename(path))).slice(0, 16)}.tmp`)

const foldersAbove = function* (path: string) {
  for (let at = dirname(path); dirname(at) !== at; at = dirname(at)) yield at
}

const isClosed = (stat: fs.Stats): boolean => stat.isDirectory() && (stat.mode & 0o300) !== 0o300

/** The modes of folders that must be opened for changes inside of them. */
export const closedFolders = (aims: ReadonlyArray<Aim>): Record<string, number> => {
  const modes = new Map<string, number>()
  for (const { path } of aims) {
    for (const folder of foldersAbove(path)) {
      if (modes.has(folder)) continue
      const stat = statOf(folder)
      if (stat !== undefined && isClosed(stat) && stat.uid === process.getuid?.()) modes.set(folder, modeOf(stat))
    }
  }
  return Object.fromEntries(modes)
}

const problemOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Runs a change of the file system. Returns the problem, if there is one. */
const change = (body: () => void): string | undefined =>
  Result.match(Result.try(body), { onFailure: problemOf, onSuccess: () => undefined })

/** Removes a path. A folder with other people's files stays. */
const remove = (path: string, state: NonNullable<State>): string | undefined => {
  if (state._tag !== "Folder") return change(() => fs.unlinkSync(path))
  const isEmpty = attempt(() => fs.readdirSync(path).length === 0)
  return isEmpty === false ? undefined : change(() => fs.rmdirSync(path))
}

const isFileOf = (path: string, file: File): boolean => {
  const stat = hasRealParents(path) ? statOf(path) : undefined
  return stat?.isFile() === true && referenceOf(file) === `${stat.ino}:${stat.size}:${stat.mtimeMs}`
}

/** Finds the present path of a file without stored content, if the restore can move it back. */
export const movedFrom = (aims: ReadonlyArray<Aim>, file: File): string | undefined =>
  aims.find(({ path, to }) => to === null && isFileOf(path, file))?.path

/** The present paths of files to move back, by their aims. */
const findMoves = (aims: ReadonlyArray<Aim>): ReadonlyMap<string, string> =>
  new Map(
    aims.flatMap(({ path, to }) => {
      const from = to?._tag === "File" && to.hash === undefined ? movedFrom(aims, to) : undefined
      return from === undefined ? [] : [[path, from] as const]
    })
  )

/** Makes a file beside its path, and puts it in its place. A file without stored content is moved back. */
const makeFile = <E>(
  path: string,
  file: File,
  from: string | undefined,
  content: (hash: string) => Effect.Effect<Uint8Array | undefined, E>
): Effect.Effect<string | undefined, E> =>
  Effect.gen(function* () {
    if (file.hash === undefined) {
      if (from === undefined) return "its content was not kept"
      return change(() => {
        fs.chmodSync(from, file.mode)
        fs.renameSync(from, path)
      })
    }
    const data = yield* content(file.hash)
    if (data === undefined) return "its content is no longer in the store"
    const beside = temporaryOf(path)
    return change(() => {
      fs.rmSync(beside, { force: true })
      fs.writeFileSync(beside, data, { flag: "wx", mode: 0o600 })
      fs.chmodSync(beside, file.mode)
      fs.renameSync(beside, path)
    })
  })

/** Removes the temporary files of a killed restore. */
export const removeTemporaries = (paths: ReadonlyArray<string>): void => {
  for (const path of paths) if (hasRealParents(path)) change(() => fs.rmSync(temporaryOf(path), { force: true }))
}

/** Restores paths. Returns the failures. */
export const restorePaths = <E>(
  aims: ReadonlyArray<Aim>,
  modes: Readonly<Record<string, number>>,
  most: number,
  content: (hash: string) => Effect.Effect<Uint8Array | undefined, E>
): Effect.Effect<ReadonlyArray<FailedPath>, E> =>
  // oxlint-disable-next-line eslint/complexity -- one branch for each state of a file
  Effect.gen(function* () {
    const failed = new Map<string, string>()
    const note = (path: string, problem: string | undefined): void => {
      if (problem !== undefined) failed.set(path, problem)
    }
    // By code units: a folder comes before its content.
    const down = aims.toSorted((left, right) => (left.path < right.path ? -1 : 1))
    const up = down.toReversed()
    for (const folder of Object.keys(modes).toSorted()) {
      const stat = hasRealParents(folder) ? statOf(folder) : undefined
      if (stat !== undefined && isClosed(stat)) change(() => fs.chmodSync(folder, 0o700))
    }
    const moves = findMoves(aims)
    const moved = new Set(moves.values())
    const clear = Effect.fnUntraced(function* () {
      for (const { path, to } of up) {
        const now = moved.has(path) ? undefined : yield* readEntry(path, 0)
        if (now !== undefined && now._tag !== to?._tag) note(path, remove(path, now))
      }
    })
    yield* clear()
    for (const { path, to } of down) {
      if (to === null) continue
      const now = yield* readEntry(path, most)
      if (isSame(now, to)) continue
      const parent = hasRealParents(path)
      if (!parent) note(path, "its folder is missing, or is a link")
      else if (now !== undefined && now._tag !== to._tag) note(path, "a folder with other files is in its place")
      else if (to._tag === "Link") {
        note(
          path,
          change(() => {
            fs.rmSync(path, { force: true })
            fs.symlinkSync(to.to, path)
          })
        )
      } else if (to._tag === "Folder") {
        if (now === undefined)
          note(
            path,
            change(() => fs.mkdirSync(path, { mode: 0o700 }))
          )
      } else if (now?._tag === "File" && hasSameContent(now, to))
        note(
          path,
          change(() => fs.chmodSync(path, to.mode))
        )
      else note(path, yield* makeFile(path, to, moves.get(path), content))
    }
    // Folders of files that were moved back.
    if (moved.size > 0) yield* clear()
    for (const { path, to } of up) {
      removeTemporaries([path])
      const stat = to?._tag === "Folder" ? statOf(path) : undefined
      if (to?._tag !== "Folder" || stat === undefined || !stat.isDirectory() || !hasRealParents(path)) continue
      if (modeOf(stat) !== to.mode)
        note(
          path,
          change(() => fs.chmodSync(path, to.mode))
        )
    }
    const aimed = new Set(aims.map(({ path }) => path))
    for (const [folder, mode] of Object.entries(modes).toReversed()) {
      if (aimed.has(folder) || !hasRealParents(folder)) continue
      if (statOf(folder)?.isDirectory() === true) change(() => fs.chmodSync(folder, mode))
    }
    return [...failed].map(([path, problem]) => ({ path, problem }))
  })
