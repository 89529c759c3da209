/**
 * Mounts an agent's own folder, `~/.deepagents/<id>`, as `/agent` beside its working files. The folder holds the
 * agent's memories of its user, and the user's skills.
 *
 * ```ts
 * import * as AgentHome from "effect-deepagents/backends/AgentHome"
 * import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
 *
 * const files = AgentHome.layer({ agentId: "coder", files: FilesystemBackend.layer({ root: "." }) })
 * ```
 */
import { mkdir } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Backend } from "../core/Backend.ts"
import * as BackendError from "../core/BackendError.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import * as CompositeBackend from "./CompositeBackend.ts"
import * as FilesystemBackend from "./FilesystemBackend.ts"
import { makeLayerCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/** The mount path of the home. */
export const mountedAt = "/agent"

const idRule = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/

/** The place of an agent's files. */
type Where = {
  /** The name of the folder of the agent: 1 to 64 letters, digits, `_` and `-`, the first no sign. */
  readonly agentId: string
  /** The folder of all homes. Default: `~/.deepagents`. */
  readonly folder?: string | undefined
}

/** Finds or creates an agent's folder, accessible to its owner only. */
const folderOf = Effect.fnUntraced(function* ({ agentId, folder = join(homedir(), ".deepagents") }: Where) {
  if (!idRule.test(agentId)) {
    const problem = "an agent's id is 1 to 64 of A-Z a-z 0-9 _ -, and begins with a letter or a digit"
    return yield* Effect.fail(BackendError.make("open", agentId, { _tag: "InvalidPath", problem }))
  }
  const root = join(folder, agentId)
  yield* Effect.tryPromise({
    try: () => mkdir(root, { recursive: true, mode: 0o700 }),
    catch: (cause) =>
      BackendError.make("open", root, { _tag: "Unavailable" }, { detail: "the agent's folder can't be made", cause })
  })
  return root
})

const home = (where: Where): Layer.Layer<Backend, BackendError.BackendError> =>
  Layer.unwrap(Effect.map(folderOf(where), (root) => FilesystemBackend.layer({ root })))

const refuseLayer = makeLayerCheck("AgentHome.layer", shapes.agentHomeLayer)

/** The files of an agent with its home beside them. */
export const layer = <E, R>(
  options: Where & {
    /** The files besides the home. */
    readonly files: Layer.Layer<Backend, E, R>
  }
): Layer.Layer<Backend, E | BackendError.BackendError | CompositeBackend.InvalidRoute, R> =>
  refuseLayer(options) ?? CompositeBackend.layer({ default: options.files, routes: { [mountedAt]: home(options) } })

const refuseLayerSandbox = makeLayerCheck("AgentHome.layerSandbox", shapes.agentHomeLayerSandbox)

/** Like {@link layer}, beside a sandbox. */
export const layerSandbox = <E, R, More = never>(
  options: Where & {
    /** The sandbox besides the home. */
    readonly files: Layer.Layer<Sandbox | More, E, R>
  }
): Layer.Layer<Sandbox | Backend | More, E | BackendError.BackendError | CompositeBackend.InvalidRoute, R> =>
  refuseLayerSandbox(options) ??
  CompositeBackend.layerSandbox({ default: options.files, routes: { [mountedAt]: home(options) } })

/** As {@link layer}, with an id and a folder that may be a `Config`. */
export const layerConfig = <E, R>({
  files,
  ...where
}: ConfigOptions<Where> & { readonly files: Layer.Layer<Backend, E, R> }): Layer.Layer<
  Backend,
  E | BackendError.BackendError | Config.ConfigError | CompositeBackend.InvalidRoute,
  R
> => Layer.unwrap(Effect.map(fromConfigured<Where>(where), (settings) => layer({ ...settings, files })))

/** As {@link layerSandbox}, with an id and a folder that may be a `Config`. */
export const layerSandboxConfig = <E, R, More = never>({
  files,
  ...where
}: ConfigOptions<Where> & { readonly files: Layer.Layer<Sandbox | More, E, R> }): Layer.Layer<
  Sandbox | Backend | More,
  E | BackendError.BackendError | Config.ConfigError | CompositeBackend.InvalidRoute,
  R
> => Layer.unwrap(Effect.map(fromConfigured<Where>(where), (settings) => layerSandbox({ ...settings, files })))
