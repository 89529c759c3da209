/** Moves files between backends: copies all, then deletes the originals, or changes nothing. */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import { toOuter, type Place } from "./routes.ts"

/** The files of a move. Paths are relative, empty for a single file. Directories precede their content. */
interface Survey {
  readonly isDirectory: boolean
  readonly files: ReadonlyArray<string>
  readonly directories: ReadonlyArray<string>
  /** Changes if the source does. */
  readonly state: string
}

const atOnce = 4

/** Fails in the words of the backend of a place, as it would itself: {@link asMove} is for all of them. */
const fail = (place: Place, relative: string, reason: BackendError.Reason, detail?: string) =>
  Effect.fail(BackendError.make("move", Path.join(place.inner, relative), reason, { detail }))

/** Reports any failure as a failure of the move. */
const asMove = (place: Place) => (error: BackendError.BackendError) =>
  BackendError.at(error, "move", error.path === place.inner ? place.inputPath : toOuter(place.part, error.path))

/** Reports a failure to write. The target did not exist, so a file in the way of a folder lies above the target. */
const asWrite = (target: Place) => (error: BackendError.BackendError) =>
  error.reason._tag === "NotDirectory" ? BackendError.at(error, "move", target.inputPath) : asMove(target)(error)

/** A link can't be moved to another backend, and its target is not part of the move. */
const refuseLinks = Effect.fnUntraced(function* (place: Place, relatives: ReadonlyArray<string>) {
  const { backend } = place.part
  if (backend.realPaths === undefined || relatives.length === 0) return
  const [folder] = yield* backend.realPaths([Path.parent(place.inner)])
  const base = folder === undefined ? undefined : Path.join(folder, Path.basename(place.inner))
  const real = yield* backend.realPaths(relatives.map((relative) => Path.join(place.inner, relative)))
  for (const [index, relative] of relatives.entries()) {
    if (base === undefined || real[index] !== Path.join(base, relative)) {
      return yield* fail(place, relative, { _tag: "Unsupported" }, "a link can't be moved to another backend")
    }
  }
})

const stateOf = ({ kind, modifiedAt, path, size }: Backend.Entry): string =>
  JSON.stringify([path, kind, kind === "file" ? [size, modifiedAt] : []])

const surveyFolder = Effect.fnUntraced(function* (place: Place, top: Backend.Listing) {
  const files: Array<string> = []
  const directories = [""]
  const state: Array<string> = []
  const pending: Array<readonly [folder: string, listing: Backend.Listing]> = [["", top]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [folder, listing] = next
    if (listing.truncated !== undefined) {
      return yield* fail(place, folder, { _tag: "Unsupported" }, "too many files for one move; move them in parts")
    }
    const relatives = listing.entries.map(({ path }) => Path.relative(path, place.inner))
    yield* refuseLinks(place, relatives)
    for (const [index, entry] of listing.entries.entries()) {
      const relative = relatives[index] ?? ""
      state.push(stateOf(entry))
      if (entry.kind === "file") files.push(relative)
      else if (entry.kind === "directory") {
        directories.push(relative)
        pending.push([relative, yield* place.part.backend.ls(entry.path)])
      } else return yield* fail(place, relative, { _tag: "Unsupported" }, "a link can't be moved to another backend")
    }
  }
  const survey: Survey = { isDirectory: true, files, directories, state: state.sort().join("\n") }
  return survey
})

const survey = Effect.fnUntraced(function* (place: Place) {
  yield* refuseLinks(place, [""])
  const { backend } = place.part
  const listing = yield* Effect.catchReason(backend.ls(place.inner), "BackendError", "NotDirectory", () =>
    // That may be said of a file on the way, too.
    Effect.as(backend.read(place.inner, { limit: 0 }), undefined)
  )
  if (listing !== undefined) return yield* surveyFolder(place, listing)
  const { version } = yield* backend.read(place.inner, { limit: 0 })
  const single: Survey = { isDirectory: false, files: [""], directories: [], state: version }
  return single
})

/** Fails if the target exists. */
const refuseExisting = (place: Place): Effect.Effect<void, BackendError.BackendError> => {
  const exists = fail(place, "", { _tag: "AlreadyExists" })
  return place.part.backend.read(place.inner, { limit: 0 }).pipe(
    Effect.andThen(exists),
    Effect.catchReason("BackendError", "IsDirectory", () => exists),
    Effect.catchReason("BackendError", "NotFound", () => Effect.void)
  )
}

const only = <A>(
  operation: string,
  path: string,
  transfers: ReadonlyArray<Backend.Transfer<A>>
): Effect.Effect<A, BackendError.BackendError> => {
  const first = transfers[0]
  if (first === undefined) return Effect.fail(BackendError.make(operation, path, { _tag: "Unavailable" }))
  return first.ok ? Effect.succeed(first.value) : Effect.fail(first.error)
}

/** Copies a file. Creates the target first, so that no concurrent write is overwritten. */
const copy = Effect.fnUntraced(function* (source: Place, target: Place, relative: string, copies: Set<string>) {
  const from = Path.join(source.inner, relative)
  const to = Path.join(target.inner, relative)
  const bytes = source.part.backend.download([from])
  const content = yield* Effect.mapError(
    Effect.flatMap(bytes, (transfers) => only("download", from, transfers)),
    asMove(source)
  )
  const writeCopy = Effect.gen(function* () {
    const reserve = target.part.backend.write(to, "", { create: true })
    yield* Effect.uninterruptible(Effect.tap(reserve, () => Effect.sync(() => copies.add(to))))
    const transfers = yield* target.part.backend.upload([{ path: to, content }])
    yield* only("upload", to, transfers)
  })
  yield* Effect.mapError(writeCopy, asWrite(target))
})

/** Takes the copies back. Gives the paths that could not be removed. */
const takeBack = Effect.fnUntraced(function* (target: Place, survey: Survey, copies: ReadonlySet<string>) {
  const { backend } = target.part
  const leftPaths: Array<string> = []
  for (const path of copies) {
    yield* Effect.catch(backend.delete(path), () => Effect.sync(() => leftPaths.push(toOuter(target.part, path))))
  }
  // A directory that is not there, or in which there is something by now, is left as it is.
  if (copies.size > 0) {
    for (const relative of survey.directories.toReversed()) {
      yield* Effect.ignore(backend.delete(Path.join(target.inner, relative)))
    }
  }
  return leftPaths
})

const shownPaths = 5

const telling = (error: BackendError.BackendError, words: string) =>
  BackendError.make(error.operation, error.path, error.reason, {
    detail: error.detail === undefined ? words : `${error.detail}; ${words}`,
    cause: error.cause
  })

/** Tells that a failed delete may have deleted something: the answer of a machine can get lost when it is done. */
const isUncertain = (error: BackendError.BackendError): boolean =>
  error.reason._tag === "TimedOut" || error.reason._tag === "Unavailable"

/**
 * Moves a file or a directory to another backend. Empty directories are not carried over. If the source can't be
 * deleted as a whole, and it is not certain that all of it is still there, the copies stay, and the failure says so.
 */
export const across = (source: Place, target: Place): Effect.Effect<void, BackendError.BackendError> =>
  Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      const copies = new Set<string>()
      const sourceSurvey = yield* restore(Effect.mapError(survey(source), asMove(source)))
      const undo = (error: BackendError.BackendError) =>
        Effect.flatMap(takeBack(target, sourceSurvey, copies), (left) => {
          const examples = left.slice(0, shownPaths).join(", ")
          return Effect.fail(left.length === 0 ? error : telling(error, `copies could not be removed: ${examples}`))
        })
      const copying = Effect.gen(function* () {
        yield* Effect.mapError(refuseExisting(target), asMove(target))
        yield* Effect.forEach(sourceSurvey.files, (relative) => copy(source, target, relative, copies), {
          concurrency: atOnce,
          discard: true
        })
        const unchanged = Effect.filterOrElse(
          survey(source),
          ({ state }) => state === sourceSurvey.state,
          () => fail(source, "", { _tag: "Conflict" })
        )
        yield* Effect.mapError(unchanged, asMove(source))
      })
      yield* restore(copying).pipe(
        Effect.onInterrupt(() => takeBack(target, sourceSurvey, copies)),
        Effect.catch(undo)
      )
      const remove = source.part.backend.delete(source.inner, sourceSurvey.isDirectory ? { recursive: true } : {})
      yield* Effect.catch(Effect.mapError(remove, asMove(source)), (error) =>
        isUncertain(error)
          ? Effect.fail(
              telling(error, `everything was copied to ${target.path}, and may still be here, or a part of it`)
            )
          : undo(error)
      )
    })
  )
