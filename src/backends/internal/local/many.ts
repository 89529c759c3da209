/**
 * Many folders and files at once. Each folder is held in the same way as a single one; but by plain callbacks, which
 * are ten times as fast as as many effects: a search goes through thousands of folders.
 */
import * as NodeFs from "node:fs"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type Fault, fromSystem } from "./failure.ts"
import * as Jail from "./jail.ts"
import * as System from "./system.ts"

const atOnce = 16
/** So many are looked at before others have their turn. */
const statsAtOnce = 512

/** Runs a job for each index, some of them at a time. A job says when it is done, once. */
export const each = (
  length: number,
  limit: number,
  job: (index: number, done: () => void) => void,
  end: () => void
): void => {
  let next = 0
  let running = 0
  let isGoing = false
  const go = (): void => {
    // The loop counts synchronous jobs, so that the stack does not grow with their number.
    if (isGoing) return
    isGoing = true
    while (running < limit && next < length) {
      running++
      job(next++, () => {
        running--
        go()
      })
    }
    isGoing = false
    if (next === length && running === 0) end()
  }
  go()
}

/** Holds a real folder of the jail and gives its path; nothing, if it is not there or not in the root any more. */
const hold = (
  jail: Jail.Jail,
  real: string,
  use: (self: string | undefined, done: () => void) => void,
  end: () => void
): void => {
  if (!jail.byDescriptor) {
    NodeFs.realpath.native(real, (error, now) => {
      use(!error && Jail.isInside(jail, now) ? real : undefined, end)
    })
    return
  }
  const opened = System.attempt(() => NodeFs.openSync(real, Jail.folderOnly))
  if (Result.isFailure(opened)) {
    use(undefined, end)
    return
  }
  const self = `/proc/self/fd/${opened.success}`
  const now = System.attempt(() => NodeFs.readlinkSync(self))
  use(Result.isSuccess(now) && now.success === real ? self : undefined, () => {
    System.attempt(() => {
      NodeFs.closeSync(opened.success)
    })
    end()
  })
}

/** Uninterruptible, because a job releases its folder by itself. */
const collect = <A>(start: (end: (all: ReadonlyArray<A>) => void) => void): Effect.Effect<ReadonlyArray<A>> =>
  Effect.uninterruptible(Effect.callback((resume) => start((all) => resume(Effect.succeed(all)))))

/** Lists some real folders; `undefined` if that can't be said. */
export const readdirs = (
  jail: Jail.Jail,
  folders: ReadonlyArray<ReadonlyArray<string>>
): Effect.Effect<ReadonlyArray<ReadonlyArray<System.Entry> | undefined>> =>
  collect((end) => {
    const all = folders.map((): ReadonlyArray<System.Entry> | undefined => undefined)
    each(
      folders.length,
      atOnce,
      (index, done) => {
        const look = (self: string | undefined, release: () => void): void => {
          if (self === undefined) {
            release()
            return
          }
          System.listNow(self, (error, entries) => {
            if (!error) all[index] = entries
            release()
          })
        }
        hold(jail, Jail.realPath(jail, folders[index] ?? []), look, done)
      },
      () => end(all)
    )
  })

type FoundStats = ReadonlyArray<System.Stats | undefined>

const lstats = (paths: ReadonlyArray<System.RealPath>, end: (found: FoundStats) => void): void => {
  const stats: Array<System.Stats | undefined> = []
  const go = (): void => {
    for (const path of paths.slice(stats.length, stats.length + statsAtOnce)) {
      stats.push(
        Result.getOrElse(
          System.attempt(() => System.lstatNow(path)),
          () => undefined
        )
      )
    }
    if (stats.length === paths.length) end(stats)
    else setImmediate(go)
  }
  go()
}

/** Looks up several paths; `undefined` for missing ones. */
export const lstatAll = (paths: ReadonlyArray<System.RealPath>): Effect.Effect<FoundStats> =>
  collect((end) => lstats(paths, end))

/**
 * Unlinks files and links, and reports each. Tries all of them, then fails with the first failure; a missing file is
 * not a failure.
 */
export const unlinkAll = (paths: ReadonlyArray<System.RealPath>, onGone: () => void): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.callback<void, Fault>((resume) => {
      let first: NodeJS.ErrnoException | undefined
      each(
        paths.length,
        atOnce,
        (index, done) => {
          NodeFs.unlink(paths[index] ?? "", (error) => {
            if (!error) onGone()
            else if (error.code !== "ENOENT") first ??= error
            done()
          })
        },
        () => resume(first === undefined ? Effect.void : Effect.fail(fromSystem(first)))
      )
    })
  )
