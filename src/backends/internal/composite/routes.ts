/** The backend of a composite that a path belongs to, and the spelling of its paths on either side. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { TaggedError } from "../../../support/effect/taggedError.ts"
import * as Path from "../files/path.ts"

/** A composite can't have this route. */
export class InvalidRoute extends TaggedError<InvalidRoute>()("InvalidRoute", {
  route: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The route ${JSON.stringify(this.route)} can't be taken: ${this.problem}`
  }
}

/** A backend and its mount, a normal path; `/` for the default. */
export interface Part {
  readonly mount: string
  readonly backend: Backend.Service
}

/** A path as its own backend spells it. */
export const toInner = (part: Part, path: string): string =>
  part.mount === "/" ? path : `/${Path.relative(path, part.mount)}`

/** A path of a backend as the composite spells it. */
export const toOuter = (part: Part, path: string): string => Path.join(part.mount, path.replace(/^\/+/, ""))

/** The parts of a composite. */
export interface Routes {
  readonly fallback: Part
  /** The default and all routes. */
  readonly parts: ReadonlyArray<Part>
  /** The part with the longest mount above a normal path. */
  readonly ownerOf: (path: string) => Part
  /** The routes that are mounted somewhere below a normal path, itself not counted. */
  readonly below: (path: string) => ReadonlyArray<Part>
}

/** Makes routes. Fails for an invalid or duplicate route. */
export const make = (
  fallback: Backend.Service,
  routes: { readonly [path: string]: Backend.Service }
): Result.Result<Routes, InvalidRoute> => {
  const byMount = new Map<string, { readonly part: Part; readonly route: string }>()
  for (const [route, backend] of Object.entries(routes)) {
    const refuse = (problem: string) => Result.fail(new InvalidRoute({ route, problem }))
    const mount = Path.normalize("route", route)
    if (Result.isFailure(mount)) return refuse(mount.failure.message)
    if (mount.success === "/") return refuse("it is the root, which is the default's")
    const same = byMount.get(mount.success)
    if (same !== undefined) return refuse(`it is the same as ${JSON.stringify(same.route)}`)
    const others = Array.from(byMount.values(), ({ part }) => part.backend)
    if (backend === fallback || others.includes(backend)) {
      return refuse("its backend is mounted elsewhere too, as a route or as the default; give it one of its own")
    }
    byMount.set(mount.success, { part: { mount: mount.success, backend }, route })
  }
  const mounted = Array.from(byMount.values(), ({ part }) => part)
  const deepestFirst = mounted.toSorted((left, right) => right.mount.length - left.mount.length)
  const first: Part = { mount: "/", backend: fallback }
  return Result.succeed({
    fallback: first,
    parts: [first, ...mounted],
    ownerOf: (path) => deepestFirst.find(({ mount }) => Path.isWithin(path, mount)) ?? first,
    below: (path) => mounted.filter(({ mount }) => mount !== path && Path.isWithin(mount, path))
  })
}

/** The place of a path: its normal form, the part that it belongs to, and its path there. */
export interface Place {
  readonly inputPath: string
  readonly path: string
  readonly part: Part
  readonly inner: string
}

/** Finds the place of a path. */
export const locate = (
  routes: Routes,
  operation: string,
  inputPath: string
): Result.Result<Place, BackendError.BackendError> =>
  Result.map(Path.resolve(operation, inputPath, routes.fallback.backend.paths), (path) => {
    const part = routes.ownerOf(path)
    return { inputPath, path, part, inner: toInner(part, path) }
  })

/** Tells a backend's failure at a place with the paths of the composite. */
export const restoreError =
  (place: Place) =>
  (error: BackendError.BackendError): BackendError.BackendError =>
    BackendError.at(
      error,
      error.operation,
      error.path === place.inner ? place.inputPath : toOuter(place.part, error.path)
    )

/** Tells a backend's failures at a place with the paths of the composite. */
export const restoreErrors =
  (place: Place) =>
  <A>(effect: Effect.Effect<A, BackendError.BackendError>): Effect.Effect<A, BackendError.BackendError> =>
    Effect.mapError(effect, restoreError(place))

/** Adds the mount to the path of a result. */
export const restored = <A extends { readonly path: string }>(part: Part, result: A): A => ({
  ...result,
  path: toOuter(part, result.path)
})

/** Reports whether a backend is mounted at a path or below it. */
export const isFolder = (routes: Routes, { inner, path }: Place): boolean =>
  inner === "/" || routes.below(path).length > 0

/** Reports whether a part's file at a path of the composite is visible: no other route hides it. */
export const isSeen = (routes: Routes, part: Part, path: string): boolean =>
  routes.ownerOf(path) === part && routes.below(path).length === 0

/** There need be nothing in a backend itself at a path that a route is mounted below. */
export const orNothing =
  <A>(place: Place, nothing: A) =>
  (effect: Effect.Effect<A, BackendError.BackendError>): Effect.Effect<A, BackendError.BackendError> =>
    place.inner === "/"
      ? effect
      : effect.pipe(
          Effect.catchReason("BackendError", "NotFound", () => Effect.succeed(nothing)),
          Effect.catchReason("BackendError", "NotDirectory", () => Effect.succeed(nothing))
        )

/**
 * Runs something for each group of places that share a backend, all groups at once. The results come in the order of
 * the places; `missing` speaks for a backend that answers less than it was asked.
 */
export const grouped = <I extends { readonly place: Place }, A, E>(
  items: ReadonlyArray<I>,
  run: (part: Part, items: ReadonlyArray<I>) => Effect.Effect<ReadonlyArray<A>, E>,
  missing: (item: I) => A
): Effect.Effect<ReadonlyArray<A>, E> => {
  const groups = new Map<Part, Array<number>>()
  for (const [index, { place }] of items.entries()) {
    const group = groups.get(place.part)
    if (group === undefined) groups.set(place.part, [index])
    else group.push(index)
  }
  const results = items.map(missing)
  const runGroup = ([part, group]: readonly [Part, ReadonlyArray<number>]) =>
    Effect.map(
      run(
        part,
        group.flatMap((index) => items[index] ?? [])
      ),
      (transfers) => {
        for (const [nth, result] of transfers.entries()) {
          const index = group[nth]
          if (index !== undefined) results[index] = result
        }
      }
    )
  return Effect.as(Effect.forEach(groups, runGroup, { concurrency: "unbounded", discard: true }), results)
}
