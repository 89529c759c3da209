/**
 * A LangSmith sandbox as the files and the shell of an agent. It needs no package: it speaks the HTTP API.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Sandbox } from "effect-deepagents"
 * import * as LangSmithSandbox from "effect-deepagents/backends/LangSmithSandbox"
 *
 * const system = Sandbox.Sandbox.use((sandbox) => sandbox.execute("uname -a")).pipe(
 *   Effect.provide([LangSmithSandbox.layerConfig({ snapshot: "python" }), FetchHttpClient.layer])
 * )
 * ```
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { HttpClient } from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Backend } from "../core/Backend.ts"
import { type BackendError, make as makeError } from "../core/BackendError.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import * as Sandbox from "../core/Sandbox.ts"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as LangSmith from "./internal/sandboxes/langSmith.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"
import type { Content, Entry, Operations, MachineLimits } from "./Manifest.ts"

/** The account at LangSmith. */
export interface Account {
  /** The API key. Default: none, for a server that asks for none. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The address of LangSmith. Default: `https://api.smith.langchain.com`. */
  readonly url?: string | undefined
}

/** The manifest of a sandbox. Its image is a snapshot, by its name or id. LangSmith's sandboxes have a network. */
export interface Manifest extends Content {
  /** The network that commands reach. */
  readonly network: "open"
  /** Limits. Default: LangSmith's own. */
  readonly limits?: MachineLimits | undefined
}

/** Options of a sandbox. `sandboxId` is its name at LangSmith. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime, Account {
  /** A new machine as data. An existing one (`sandboxId`) stays as it is. Default: none. */
  readonly manifest?: Manifest | undefined
  /**
   * The snapshot from which it is made: the name of one, or the id that `snapshot` gave. Default: the image of the
   * manifest, else LangSmith's own.
   */
  readonly snapshot?: string | undefined
  /**
   * Further fields of the request that makes it, as the API names them: `vcpus`, `mem_bytes`, `idle_ttl_seconds`,
   * `proxy_config`. Default: none.
   */
  readonly create?: { readonly [field: string]: Schema.Json } | undefined
}

/** A sandbox at LangSmith. `pause` ends its processes. */
export interface Box extends Sandbox.Service, Pick<Operations, "snapshot" | "pause" | "resume"> {}

const defaultUrl = "https://api.smith.langchain.com"

const uuid = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i

const snapshotField = (snapshot: string | undefined) =>
  snapshot === undefined ? {} : uuid.test(snapshot) ? { snapshot_id: snapshot } : { snapshot_name: snapshot }

const fieldsOf = ({ environment, limits = {} }: Manifest, create: Exclude<Options["create"], undefined>) => {
  const { run_config: given } = create
  const variables = typeof given === "object" && given !== null && "env_vars" in given ? given["env_vars"] : {}
  return {
    ...(environment === undefined
      ? {}
      : { run_config: Object.assign({}, given, { env_vars: Object.assign({}, variables, environment) }) }),
    ...defined({ vcpus: limits.cpus, mem_bytes: limits.memoryBytes })
  }
}

const openApi = ({ apiKey = Redacted.make(""), url = defaultUrl }: Account) => {
  const settings = { apiKey, url }
  return Effect.map(HttpClient, (client) => ({ api: LangSmith.make(client, settings), settings }))
}

const refuse = makeEffectCheck("LangSmithSandbox", shapes.langSmithSandboxMake)

const serve = Effect.fnUntraced(function* (
  api: LangSmith.Api,
  settings: LangSmith.Settings,
  described: LangSmith.Described,
  options: Options
) {
  const { name } = described
  const server = yield* LangSmith.serverOf(described, settings)
  const service = yield* CustomSandbox.make(
    {
      id: name,
      execute: (command, { timeout }) =>
        Effect.flatMap(api.execute(server, command, timeout), ({ exit_code, stdout }) =>
          typeof exit_code === "number"
            ? Effect.succeed({ output: stdout ?? "", exitCode: exit_code })
            : Effect.fail(makeError("execute", "/", { _tag: "Unavailable" }, { detail: "LangSmith: no exit code" }))
        ),
      write: (path, content) => api.write(server, path, content),
      read: (path) => api.read(server, path)
    },
    Provider.common(options)
  )
  return {
    ...service,
    snapshot: Effect.flatMap(
      Effect.sync(() => `deepagents-${crypto.randomUUID()}`),
      (snapshotName) => api.capture(name, snapshotName)
    ),
    pause: api.stop(name),
    resume: api.start(name)
  }
})

/** Creates a sandbox, and deletes it with the scope. */
export const make = (options: Options = {}): Effect.Effect<Box, BackendError, HttpClient | Scope.Scope> =>
  refuse(options) ??
  Effect.gen(function* () {
    const { create = {}, manifest, snapshot = manifest?.image } = options
    const { api, settings } = yield* openApi(options)
    const fields = manifest === undefined ? {} : fieldsOf(manifest, create)
    return yield* Provider.open(Provider.make("LangSmith", options.apiKey), options, {
      create: api.create({ ...create, ...fields, ...snapshotField(snapshot) }),
      connect: (name) =>
        Effect.flatMap(api.get(name), (box) =>
          box.status === "ready" ? Effect.succeed(box) : Effect.andThen(api.start(name), api.get(name))
        ),
      end: ({ name }) => api.remove(name),
      idOf: ({ name }) => name,
      serve: (described) => serve(api, settings, described, options)
    })
  })

/** Lists the sandboxes of the account. */
export const list = (account: Account): Effect.Effect<ReadonlyArray<Entry>, BackendError, HttpClient> =>
  Effect.flatMap(openApi(account), ({ api }) =>
    Effect.map(api.list, (boxes) => boxes.map(({ name, status }) => ({ id: name, state: status ?? "unknown" })))
  )

const isolation = { by: "remote", network: "open" } as const

/** The files and commands of a sandbox: {@link make} as a layer. */
export const layer = (
  options?: Options
): Layer.Layer<Sandbox.Sandbox | Backend | Sandbox.Isolated, BackendError, HttpClient> =>
  Sandbox.layerIsolated(make(options), isolation)

/** Like {@link layer}; any option may be a `Config`. The key is read from `LANGSMITH_API_KEY` by default. */
export const layerConfig = (
  options?: ConfigOptions<Options>
): Layer.Layer<Sandbox.Sandbox | Backend | Sandbox.Isolated, BackendError | Config.ConfigError, HttpClient> =>
  Sandbox.layerIsolated(
    Effect.flatMap(fromConfigured<Options>(options, { apiKey: Config.Redacted("LANGSMITH_API_KEY") }), make),
    isolation
  )
