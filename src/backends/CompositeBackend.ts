/**
 * Put several backends together as one: a folder here, a key-value store there, each mounted at a path.
 *
 * A path belongs to the route with the longest matching prefix of whole names (`/mem` does not match `/memory`), or to
 * the default. A route hides files of the default at the same path. Results and failures contain full paths.
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
import { makeLayerCheck } from "../support/options/check.ts"
import { backendOf } from "./internal/composite/backend.ts"
import { type InvalidRoute, make as routesOf } from "./internal/composite/routes.ts"
import { sandboxOf } from "./internal/composite/sandbox.ts"
import * as shapes from "./internal/shapes.ts"

export { InvalidRoute } from "./internal/composite/routes.ts"

/** Backends by mount path. `/memories` and `/memories/` are the same. */
type Mounts = {
  readonly [route: string]: Backend.Service
}

/**
 * Combines backends. The result is a sandbox if the default is one: see {@link makeSandbox}.
 *
 * - `ls` shows routes as directories; searches at or above routes query every backend in the path, with one limit
 *   for all, and fail if one query fails
 * - a route, and a directory above a route, can't be deleted or moved
 * - a `move` between backends copies and then deletes, all or nothing. Links fail with `Unsupported`; empty
 *   directories are lost; both backends limit the file size
 * - ignore files apply to their own backend only
 */
export const make = (fallback: Backend.Service, routes: Mounts): Effect.Effect<Backend.Service, InvalidRoute> =>
  Sandbox.isSandbox(fallback)
    ? makeSandbox(fallback, routes)
    : Effect.map(Effect.fromResult(routesOf(fallback, routes)), backendOf)

/**
 * Combines a sandbox with other backends. Commands run in the sandbox and see its files only: they can't see the
 * files of routes, and `cwd` can't be in a route.
 *
 * `reaches` is true for the files of a route if they lie on this machine and the commands run there unconfined (a
 * folder beside a local shell), or if the route is a sandbox whose own commands reach them.
 */
export const makeSandbox = (fallback: Sandbox.Service, routes: Mounts): Effect.Effect<Sandbox.Service, InvalidRoute> =>
  Effect.map(Effect.fromResult(routesOf(fallback, routes)), (checkedRoutes) => sandboxOf(fallback, checkedRoutes))

/** Layers of backends by mount path. */
type Layers = {
  readonly [route: string]: Layer.Layer<Backend.Backend, unknown, unknown>
}

type ErrorOf<Routes extends Layers> = Layer.Error<Routes[keyof Routes]>
type ServicesOf<Routes extends Layers> = Layer.Services<Routes[keyof Routes]>

/** Builds the layers of routes in the memo map of their composite, so that they share common services. */
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
  return Effect.map(Effect.forEach(layers, one, { concurrency: "unbounded" }), (mounts): Mounts =>
    Object.fromEntries(mounts)
  )
}

const refuseLayer = makeLayerCheck("CompositeBackend.layer", shapes.compositeBackendLayer)

/**
 * Makes the layer of a composite from layers of backends. Each route needs its own backend: a layer used twice is
 * built once, and rejected. Use `Layer.fresh` for a second backend of the same kind.
 */
export const layer = <E, R, const Routes extends Layers>(options: {
  /** The backend of all other paths. */
  readonly default: Layer.Layer<Backend.Backend, E, R>
  /** The backends by the path that they are mounted at. */
  readonly routes: Routes
}): Layer.Layer<Backend.Backend, E | ErrorOf<Routes> | InvalidRoute, R | ServicesOf<Routes>> =>
  refuseLayer(options) ??
  Layer.fromBuildMemo((memo, scope) =>
    Effect.gen(function* () {
      const context = yield* Layer.buildWithMemoMap(options.default, memo, scope)
      const mounts = yield* build(options.routes, memo, scope)
      return Context.make(Backend.Backend, Backend.traced(yield* make(Context.get(context, Backend.Backend), mounts)))
    })
  )

const refuseLayerSandbox = makeLayerCheck("CompositeBackend.layerSandbox", shapes.compositeBackendLayerSandbox)

/**
 * Like {@link layer}, with a sandbox as default: provides both services, and commands run in the default. Further
 * services of the default stay, such as `Sandbox.Isolated`.
 */
export const layerSandbox = <E, R, const Routes extends Layers, More = never>(options: {
  /** The sandbox of all other paths; commands run in it. */
  readonly default: Layer.Layer<Sandbox.Sandbox | More, E, R>
  /** The backends by the path that they are mounted at. */
  readonly routes: Routes
}): Layer.Layer<Sandbox.Sandbox | Backend.Backend | More, E | ErrorOf<Routes> | InvalidRoute, R | ServicesOf<Routes>> =>
  refuseLayerSandbox(options) ??
  Layer.fromBuildMemo((memo, scope) =>
    Effect.gen(function* () {
      const context = yield* Layer.buildWithMemoMap(options.default, memo, scope)
      const mounts = yield* build(options.routes, memo, scope)
      const sandbox = yield* makeSandbox(Context.get(context, Sandbox.Sandbox), mounts)
      return Context.merge(context, Sandbox.context(Sandbox.traced(sandbox)))
    })
  )
