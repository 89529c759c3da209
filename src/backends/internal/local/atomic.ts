/**
 * Writes of whole files that a reader never sees half of.
 *
 * The content goes to a new file beside the old one, which then takes its name. What replaces a file is flushed to the
 * disk before: after a power cut there is the old one or the new one, whole. A file that was not there before is not
 * flushed: it has nothing to lose, and many small files would take many times as long.
 */
import { randomBytes } from "node:crypto"
import { constants } from "node:fs"
import * as Effect from "effect/Effect"
import { type Fault, fault } from "./failure.ts"
import type { OpenFolder } from "./jail.ts"
import * as System from "./system.ts"

const prefix = ".effect-deepagents-"
const unfinished = /^[0-9a-f]{32}$/

/** Tells whether this is the name of a file that is not written to its end. Nobody is shown these. */
export const isUnfinished = (name: string): boolean =>
  name.startsWith(prefix) && unfinished.test(name.slice(prefix.length))

/**
 * A file to write. `old` is the file that it replaces, whose mode and owner are kept. Without `old` the file must
 * not exist.
 */
export interface Target {
  readonly held: OpenFolder
  readonly name: string
  readonly old: System.Stats | undefined
}

const permissions = 0o7777n
const ownerOnly = 0o600
const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** Only the superuser can change an owner. For all others the writer becomes the owner. */
const keepOwner = (fd: number, old: System.Stats, fresh: System.Stats) =>
  old.uid === fresh.uid && old.gid === fresh.gid
    ? Effect.void
    : Effect.ignore(System.fchown(fd, Number(old.uid), Number(old.gid)))

/**
 * Renames a file or a link to a free name. Uses a hard link, which never overwrites; without hard links, it checks
 * first.
 */
export const take = (from: System.RealPath, to: System.RealPath): Effect.Effect<void, Fault> =>
  Effect.matchEffect(System.link(from, to), {
    onSuccess: () => Effect.ignore(System.unlink(from)),
    onFailure: (failed) =>
      failed.reason._tag === "AlreadyExists" || failed.reason._tag === "NotFound"
        ? Effect.fail(failed)
        : takeCarefully(from, to)
  })

/** Renames a folder to a free name. Only an empty folder created in between can be overwritten. */
export const takeCarefully = (from: System.RealPath, to: System.RealPath): Effect.Effect<void, Fault> =>
  Effect.flatMap(Effect.isSuccess(System.lstat(to)), (isTaken) =>
    isTaken ? Effect.fail(fault({ _tag: "AlreadyExists" })) : System.rename(from, to)
  )

/**
 * Writes a file atomically, and gives its new stats. After a failure, an interruption or on a full disk, the old
 * file is intact and no temporary file is left.
 */
export const write = ({ held, name, old }: Target, content: Uint8Array): Effect.Effect<System.Stats, Fault> =>
  Effect.suspend(() => {
    const temporary = `${prefix}${randomBytes(16).toString("hex")}`
    let isOpen = true
    let isDone = false
    return Effect.acquireUseRelease(
      System.open(held.at(temporary), flags, old === undefined ? 0o666 : ownerOnly),
      Effect.fnUntraced(function* (fd: number) {
        yield* System.write(fd, content)
        yield* Effect.ignore(System.touch(fd))
        const fresh = yield* System.fstat(fd)
        if (old !== undefined) {
          yield* keepOwner(fd, old, fresh)
          yield* System.fchmod(fd, Number(old.mode & permissions))
          yield* System.fdatasync(fd)
        }
        isOpen = false
        // Some file systems only say here that there was no room.
        yield* System.closeWritten(fd)
        yield* held.verify(temporary, fresh)
        return yield* Effect.uninterruptible(
          Effect.gen(function* () {
            const move = old === undefined ? take : System.rename
            yield* move(held.at(temporary), held.at(name))
            isDone = true
            const there = yield* System.lstat(held.at(name))
            // If it is somebody else's already, ours is a version that no file has any more.
            return there.ino === fresh.ino ? there : fresh
          })
        )
      }),
      (fd) =>
        Effect.andThen(
          isOpen ? System.close(fd) : Effect.void,
          isDone ? Effect.void : Effect.ignore(System.unlink(held.at(temporary)))
        )
    )
  })
