/**
 * The beginning of all derived operations: the path in its normal form, links followed, and failures that name the
 * operation and the path as it was given.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as BackendError from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import { utf8Length } from "../text/utf8.ts"
import type { Content, Primitives, Stat } from "./primitives.ts"
import { versionOf } from "./version.ts"

/** The source of searches. `concurrency` bounds concurrent reads. */
export interface SearchTarget {
  readonly primitives: Primitives
  readonly maxFileSize: number
  readonly concurrency: number
  /** The content of a file that is known without reading. */
  readonly atHand?: ((path: string) => Content | undefined) | undefined
}

/** Changes of one path, one at a time. */
export interface Exclusive {
  /** Serialises changes of overlapping paths. */
  readonly hold: (paths: ReadonlyArray<string>) => <A>(change: Failing<A>) => Failing<A>
}

/** An operation on a path: `normal` is the path in results, `real` the path with links resolved. */
export interface Source extends SearchTarget {
  readonly locks: Exclusive
}

/** An operation on a path: `normal` is how results name it, `real` where it is when links are followed. */
export interface Target {
  readonly operation: string
  readonly normal: string
  readonly real: string
}

export type Failing<A> = Effect.Effect<A, BackendError.BackendError>

export const fail = (target: Target, reason: BackendError.Reason, detail?: string): Failing<never> =>
  Effect.fail(BackendError.make(target.operation, target.normal, reason, { detail }))

/** Puts the operation and the original path into a failure. */
const named =
  (operation: string, inputPath: string, target: Target) =>
  (error: BackendError.BackendError): BackendError.BackendError => {
    const path = error.path === target.real || error.path === target.normal ? inputPath : error.path
    return BackendError.at(error, operation, path)
  }

/** Runs an operation on a path. With `link`, a final link is not followed. */
export const on = <A>(
  source: SearchTarget,
  operation: string,
  inputPath: string,
  run: (target: Target) => Failing<A>,
  link = false
): Failing<A> =>
  Effect.suspend(() => {
    const path = Path.normalize(operation, inputPath)
    if (Result.isFailure(path)) return Effect.fail(path.failure)
    const normal = path.success
    const { resolve } = source.primitives
    const naming = named(operation, inputPath, { operation, normal, real: normal })
    if (resolve === undefined || normal === "/")
      return Effect.mapError(run({ operation, normal, real: normal }), naming)
    const where = link
      ? Effect.map(resolve(Path.parent(normal)), (parent) => Path.join(parent, Path.basename(normal)))
      : resolve(normal)
    return where.pipe(
      Effect.mapError(naming),
      Effect.flatMap((real) => {
        const target = { operation, normal, real }
        return Effect.mapError(run(target), named(operation, inputPath, target))
      })
    )
  })

/** Looks up a target; fails with `NotFound`. */
export const find = (source: SearchTarget, target: Target): Failing<Stat> =>
  Effect.flatMap(source.primitives.stat(target.real), (stat) =>
    stat === undefined ? fail(target, { _tag: "NotFound" }) : Effect.succeed(stat)
  )

/** Looks up a file. Fails for a directory and for a dangling link. */
export const findFile = (source: Source, target: Target): Failing<Stat> =>
  Effect.flatMap(find(source, target), (stat) => {
    if (stat.kind === "directory") return fail(target, { _tag: "IsDirectory" })
    return stat.kind === "link" ? fail(target, { _tag: "OutsideRoot" }) : Effect.succeed(stat)
  })

/** Fails if a parent of a missing path is not a directory. */
export const checkWay = (source: Source, target: Target): Failing<void> =>
  Effect.gen(function* () {
    for (let above = Path.parent(target.real); above !== "/"; above = Path.parent(above)) {
      const stat = yield* source.primitives.stat(above)
      if (stat === undefined) continue
      return stat.kind === "directory" ? undefined : yield* fail(target, { _tag: "NotDirectory" })
    }
    return undefined
  })

const encoder = new TextEncoder()

export const toBytes = (content: Content): Uint8Array =>
  typeof content === "string" ? encoder.encode(content) : content

/** Counts the bytes of a content. A long text is encoded for it, which is faster than to look at each character. */
export const sizeOf = (content: Content): number =>
  typeof content === "string" && content.length < 1_024 ? utf8Length(content) : toBytes(content).length

/** Fails if there would be more bytes than a file may have. */
export const checkSize = (source: Source, target: Target, size: number): Failing<void> =>
  size > source.maxFileSize ? fail(target, { _tag: "TooLarge", size, limit: source.maxFileSize }) : Effect.void

/** No text has more than three bytes a unit, so most need not be counted. */
export const checkContent = (source: Source, target: Target, content: Content): Failing<void> =>
  typeof content === "string" && content.length * 3 <= source.maxFileSize
    ? Effect.void
    : checkSize(source, target, sizeOf(content))

/** The version of a file from its backend, or a hash of its content. */
export const versionFor = (stat: Stat, content: Content): string => stat.version ?? versionOf(toBytes(content))
