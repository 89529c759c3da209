/**
 * Put several backends together as one: a folder here, a key-value store there, each mounted at a path.
 *
 * A path belongs to the route with the longest prefix, on the boundaries of names (`/mem` has no part in `/memory`),
 * else to the default. What the default has at or below a route can't be seen. Results and failures come with whole
 * paths.
 *
 * ```ts
 * import type { Layer } from "effect"
 * import type { Backend } from "effect-deepagents"
 * import { CompositeBackend } from "effect-deepagents/backends"
 *
 * declare const project: Layer.Layer<Backend.Backend>
 * declare const memories: Layer.Layer<Backend.Backend>
 *
 * const layer = CompositeBackend.layer({ default: project, routes: { "/memories": memories } })
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Backend from "../core/Backend.ts"
import * as Sandbox from "../core/Sandbox.ts"
import { backendOf } from "./internal/composite/backend.ts"
import { type InvalidRoute, make as routesOf } from "./internal/composite/routes.ts"
import { sandboxOf } from "./internal/composite/sandbox.ts"

export { InvalidRoute } from "./internal/composite/routes.ts"

/** Backends by the paths that they are mounted at. `/memories` and `/memories/` are the same. */
export interface Mounts {
  readonly [route: string]: Backend.Service
}

/**
 * Puts backends together. If the default is a sandbox, so is what comes out: see {@link makeSandbox}.
 *
 * - `ls` shows routes as directories; searches at or above routes go to all backends that they span, with one limit for
 *   all, and fail if one of them fails
 * - a route itself, and a directory that one is mounted below, can't be deleted or moved
 * - a `move` from one backend to another copies and then deletes, all or nothing. Links fail with `Unsupported`; empty
 *   directories are not carried over; a file can't be larger than what both backends transfer
 * - ignore files hold in their own backend
 */
export const make = (fallback: Backend.Service, routes: Mounts): Effect.Effect<Backend.Service, InvalidRoute> =>
  Sandbox.isSandbox(fallback)
    ? makeSandbox(fallback, routes)
    : Effect.map(Effect.fromResult(routesOf(fallback, routes)), backendOf)

/**
 * Puts a sandbox and other backends together. Commands run in the sandbox and have its files only: the files of a route
 * are not there for them, and `cwd` can't be in one.
 *
 * `reaches` is true of the files of a route if they lie on this machine and the commands run there unconfined (a folder
 * beside a local shell), or if the route is a sandbox whose own commands reach them.
 */
export const makeSandbox = (fallback: Sandbox.Service, routes: Mounts): Effect.Effect<Sandbox.Service, InvalidRoute> =>
  Effect.map(Effect.fromResult(routesOf(fallback, routes)), (made) => sandboxOf(fallback, made))

/** Layers of backends by the paths that they are mounted at. */
export interface Layers {
  readonly [route: string]: Layer.Layer<Backend.Backend, unknown, unknown>
}

type ErrorOf<Routes extends Layers> = Layer.Error<Routes[keyof Routes]>
type ServicesOf<Routes extends Layers> = Layer.Services<Routes[keyof Routes]>

/** Builds the layers of routes: beside others, with which they share what they have in common. */
const build = <const Routes extends Layers>(routes: Routes, memo: Layer.MemoMap, scope: Scope.Scope) => {
  // Each route's own error and needs are among those of all of them.
  const layers = Object.entries(routes) as ReadonlyArray<
    readonly [string, Layer.Layer<Backend.Backend, ErrorOf<Routes>, ServicesOf<Routes>>]
  >
  const one = ([route, layer]: (typeof layers)[number]) =>
    Effect.map(
      Layer.buildWithMemoMap(layer, memo, scope),
      (context) => [route, Context.get(context, Backend.Backend)] as const
    )
  return Effect.map(Effect.forEach(layers, one, { concurrency: "unbounded" }), (built): Mounts =>
    Object.fromEntries(built)
  )
}

/**
 * Makes the layer of a composite from layers of backends. Two routes need two backends: a layer that is given twice is
 * built once, and refused; `Layer.fresh` makes another of the same kind.
 */
export const layer = <E, R, const Routes extends Layers>(options: {
  readonly default: Layer.Layer<Backend.Backend, E, R>
  readonly routes: Routes
}): Layer.Layer<Backend.Backend, E | ErrorOf<Routes> | InvalidRoute, R | ServicesOf<Routes>> =>
  Layer.fromBuildMemo((memo, scope) =>
    Effect.gen(function* () {
      const context = yield* Layer.buildWithMemoMap(options.default, memo, scope)
      const mounts = yield* build(options.routes, memo, scope)
      return Context.make(Backend.Backend, Backend.traced(yield* make(Context.get(context, Backend.Backend), mounts)))
    })
  )

/** Like {@link layer}, with a sandbox as default: provides both services, and commands run in the default. */
export const layerSandbox = <E, R, const Routes extends Layers>(options: {
  readonly default: Layer.Layer<Sandbox.Sandbox, E, R>
  readonly routes: Routes
}): Layer.Layer<Sandbox.Sandbox | Backend.Backend, E | ErrorOf<Routes> | InvalidRoute, R | ServicesOf<Routes>> =>
  Layer.fromBuildMemo((memo, scope) =>
    Effect.gen(function* () {
      const context = yield* Layer.buildWithMemoMap(options.default, memo, scope)
      const mounts = yield* build(options.routes, memo, scope)
      return Sandbox.context(Sandbox.traced(yield* makeSandbox(Context.get(context, Sandbox.Sandbox), mounts)))
    })
  )
