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
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"

/** The members of the SDK's devbox that this module uses. */
type Machine = {
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

/** Options of the layer. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime {
  /** The API key. Default: the SDK looks for `RUNLOOP_API_KEY`. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The address of the API. Default: the SDK looks for `RUNLOOP_BASE_URL`. */
  readonly baseURL?: string | undefined
  /** The SDK's parameters of a new devbox (blueprint or snapshot, resources, environment). Default: none. */
  readonly create?: Omit<DevboxCreateParams, "gateways" | "mcp" | "mounts" | "secrets"> | undefined
}

const service = (machine: Machine, options: CustomSandbox.Options, provider: Provider.Provider) =>
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

const refuse = makeEffectCheck("RunloopSandbox", shapes.runloopSandboxLayer)

const make = Effect.fnUntraced(function* (options: Options = {}) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const provider = Provider.make("Runloop", options.apiKey)
  const { RunloopSDK } = yield* Provider.loadPeer("@runloop/api-client", () => import("@runloop/api-client"))
  const { apiKey, baseURL, create } = options
  const client = yield* provider.call(
    async () => new RunloopSDK(defined({ bearerToken: Provider.keyOf(apiKey), baseURL }))
  )
  const machine = yield* Provider.acquireMachine(provider, options, {
    create: provider.call(() => client.devbox.create(create)),
    connect: (sandboxId) =>
      provider.call(async () => {
        const devbox = client.devbox.fromId(sandboxId)
        const { status } = await devbox.getInfo()
        if (status === "suspended") await devbox.resume()
        else await devbox.awaitRunning()
        return devbox
      }),
    end: (devbox) => Effect.asVoid(provider.call(() => devbox.shutdown())),
    idOf: ({ id }) => id
  })
  return yield* service(machine, Provider.common(options), provider)
})

/** Creates a devbox, and shuts it down with the layer. Fails with `Unsupported` if the SDK is not installed. */
export const layer = Provider.layer(make)

/** Like {@link layer}; any option may be a `Config`. The key is read from `RUNLOOP_API_KEY` by default. */
export const layerConfig = Provider.layerConfig(make, { apiKey: Config.Redacted("RUNLOOP_API_KEY") })
