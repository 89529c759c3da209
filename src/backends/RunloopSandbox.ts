/**
 * A Runloop devbox as the files and the shell of an agent.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import * as RunloopSandbox from "effect-deepagents/backends/RunloopSandbox"
 *
 * const system = Sandbox.Sandbox.use((sandbox) => sandbox.execute("uname -a")).pipe(
 *   Effect.provide(RunloopSandbox.layerConfig({ create: { blueprint_name: "agents" } }))
 * )
 * ```
 */
import type { DevboxCreateParams } from "@runloop/api-client/resources/devboxes"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { BackendError } from "../core/BackendError.ts"
import type * as Sandbox from "../core/Sandbox.ts"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { readImage, toImage, wholeUnits } from "./internal/sandboxes/manifest.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"
import type { Content, Entry, Operations } from "./Manifest.ts"

/** The members of the SDK's devbox that this module uses. */
type SdkMachine = {
  readonly id: string
  readonly cmd: {
    exec(
      command: string,
      params: undefined,
      options: { readonly signal: AbortSignal; readonly longPoll: { readonly timeoutMs: number } }
    ): Promise<{ readonly exitCode: number | null; stdout(): Promise<string> }>
  }
  readonly file: {
    upload(params: { readonly path: string; readonly file: File }): Promise<unknown>
    download(params: { readonly path: string }): Promise<{ arrayBuffer(): Promise<ArrayBuffer> }>
  }
}

/** The account at Runloop. */
export interface Account {
  /** The API key. Default: the SDK looks for `RUNLOOP_API_KEY`. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The address of the API. Default: the SDK looks for `RUNLOOP_BASE_URL`. */
  readonly baseURL?: string | undefined
}

/** The manifest of a devbox. Its image is a blueprint, by its name. */
export interface Manifest extends Content {
  /** The network that commands reach: all, or that of a network policy, by its id. */
  readonly network:
    | "open"
    | {
        /** The id of a network policy. */
        readonly name: string
      }
  /** Ports of servers, which anyone with the address reaches. Default: none. */
  readonly ports?: ReadonlyArray<number> | undefined
  /** Limits, both or none. Default: Runloop's own. */
  readonly limits?:
    | {
        /** The memory of all processes together, in bytes. */
        readonly memoryBytes: number
        /** Processor cores. */
        readonly cpus: number
      }
    | undefined
}

/** Options of a devbox. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime, Account {
  /** A new machine as data. An existing one (`sandboxId`) stays as it is. Default: none. */
  readonly manifest?: Manifest | undefined
  /** Further parameters of the SDK for a new devbox (blueprint by id, lifetime, metadata). Default: none. */
  readonly create?: Omit<DevboxCreateParams, "gateways" | "mcp" | "mounts" | "secrets"> | undefined
}

const service = (machine: SdkMachine, options: CustomSandbox.Options, provider: Provider.Provider) =>
  CustomSandbox.make(
    {
      id: machine.id,
      execute: (command, { timeout }) =>
        provider.call(async (signal) => {
          const result = await machine.cmd.exec(command, undefined, { signal, longPoll: { timeoutMs: timeout } })
          return { output: await result.stdout(), exitCode: result.exitCode ?? -1 }
        }, timeout),
      write: (path, content) =>
        provider.call(() => machine.file.upload({ path, file: new File([content.slice()], "content") })),
      read: (path) =>
        provider.call(async () => new Uint8Array(await (await machine.file.download({ path })).arrayBuffer()))
    },
    options
  )

/** Wraps an existing devbox of the SDK, which this module never ends. */
export const fromSandbox = Provider.fromMachine("Runloop", service)

const refuse = makeEffectCheck("RunloopSandbox", shapes.runloopSandboxMake)

/** Opens the client of an account. */
const openClient = (provider: Provider.Provider, { apiKey, baseURL }: Account) =>
  Effect.flatMap(
    Provider.loadPeer("@runloop/api-client", () => import("@runloop/api-client")),
    ({ RunloopSDK }) =>
      provider.call(async () => new RunloopSDK(defined({ bearerToken: Provider.keyOf(apiKey), baseURL })))
  )

const gibibyte = { size: 2 ** 30, name: "1 GiB" }

const sizeOf = Effect.fnUntraced(function* ({ limits }: Manifest) {
  const memory = yield* wholeUnits("Runloop", "memoryBytes", limits?.memoryBytes, gibibyte)
  return limits === undefined
    ? {}
    : {
        resource_size_request: "CUSTOM_SIZE" as const,
        ...defined({ custom_cpu_cores: limits.cpus, custom_gb_memory: memory })
      }
})

const fieldsOf = Effect.fnUntraced(function* (manifest: Manifest, create: Options["create"]) {
  const { environment, image, network, ports = [] } = manifest
  const { name, snapshot } = readImage(image)
  const policy = network === "open" ? {} : { network_policy_id: network.name }
  return {
    ...create,
    ...defined({ blueprint_name: name, snapshot_id: snapshot, environment_variables: environment }),
    ...(ports.length === 0 ? {} : { tunnel: { auth_mode: "open" as const } }),
    launch_parameters: { ...create?.launch_parameters, ...policy, ...(yield* sizeOf(manifest)) }
  }
})

/** A devbox at Runloop. `pause` ends its processes. */
export interface Machine extends Sandbox.Service, Operations {}

/** Creates a devbox, and shuts it down with the scope. */
export const make = (options: Options = {}): Effect.Effect<Machine, BackendError, Scope.Scope> =>
  refuse(options) ??
  Effect.gen(function* () {
    const provider = Provider.make("Runloop", options.apiKey)
    const { create, manifest } = options
    const fields = manifest === undefined ? create : yield* fieldsOf(manifest, create)
    const client = yield* openClient(provider, options)
    return yield* Provider.open(provider, options, {
      create: provider.call(() => client.devbox.create(fields)),
      connect: (sandboxId) =>
        provider.call(async () => {
          const devbox = client.devbox.fromId(sandboxId)
          const { status } = await devbox.getInfo()
          if (status === "suspended") await devbox.resume()
          else await devbox.awaitRunning()
          return devbox
        }),
      end: (devbox) => Effect.asVoid(provider.call(() => devbox.shutdown())),
      idOf: ({ id }) => id,
      serve: (devbox) =>
        Effect.map(service(devbox, Provider.common(options), provider), (served) => ({
          ...served,
          snapshot: Effect.map(
            provider.call(() => devbox.snapshotDisk()),
            ({ id }) => toImage(id)
          ),
          pause: Effect.asVoid(
            provider.call(async () => {
              await devbox.suspend()
              await devbox.awaitSuspended()
            })
          ),
          resume: Effect.asVoid(provider.call(() => devbox.resume())),
          address: (port: number) => provider.call(() => devbox.getTunnelUrl(port))
        }))
    })
  })

/** Lists the devboxes of the account that run, or are paused. */
export const list = (account: Account = {}): Effect.Effect<ReadonlyArray<Entry>, BackendError> => {
  const provider = Provider.make("Runloop", account.apiKey)
  return Effect.flatMap(openClient(provider, account), ({ api }) =>
    provider.call(async () => {
      const entries: Array<Entry> = []
      // All devboxes there ever were would be many.
      for (const state of ["running", "suspended"] as const)
        for await (const { id } of api.devboxes.list({ status: state })) entries.push({ id, state })
      return entries
    })
  )
}

/** Creates a devbox, and shuts it down with the layer. Fails with `Unsupported` if the SDK is not installed. */
export const layer = Provider.layer(make)

/** Like {@link layer}; any option may be a `Config`. The key is read from `RUNLOOP_API_KEY` by default. */
export const layerConfig = Provider.layerConfig(make, { apiKey: Config.Redacted("RUNLOOP_API_KEY") })
