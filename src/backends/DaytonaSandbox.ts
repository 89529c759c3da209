/**
 * A Daytona sandbox as the files and the shell of an agent.
 *
 * ```ts
 * import { Config, Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import * as DaytonaSandbox from "effect-deepagents/backends/DaytonaSandbox"
 *
 * const system = Sandbox.Sandbox.use((sandbox) => sandbox.execute("uname -a")).pipe(
 *   Effect.provide(DaytonaSandbox.layerConfig({ create: { language: "typescript" }, target: Config.String("DAYTONA_REGION") }))
 * )
 * ```
 */
import { Buffer } from "node:buffer"
import type { CreateSandboxFromImageParams, CreateSandboxFromSnapshotParams } from "@daytonaio/sdk"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"

/** The members of the SDK's sandbox that this module uses. */
type Machine = {
  readonly id: string
  readonly process: {
    executeCommand(
      command: string,
      cwd?: string,
      env?: Record<string, string>,
      timeout?: number
    ): Promise<{ readonly exitCode: number; readonly result: string }>
  }
  readonly fs: {
    uploadFile(file: Buffer, path: string): Promise<void>
    downloadFile(path: string): Promise<Uint8Array>
  }
}

/** Options of the layer. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime {
  /** The API key. Default: the SDK looks for `DAYTONA_API_KEY`. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The address of the API. Default: the SDK looks for `DAYTONA_API_URL`. */
  readonly apiUrl?: string | undefined
  /** The region. Default: the SDK looks for `DAYTONA_TARGET`. */
  readonly target?: string | undefined
  /** The SDK's parameters of a new sandbox (image or snapshot, resources, environment). Default: none. */
  readonly create?: CreateSandboxFromSnapshotParams | CreateSandboxFromImageParams | undefined
}

const service = (machine: Machine, options: CustomSandbox.Options, provider: Provider.Provider) =>
  CustomSandbox.make(
    {
      id: machine.id,
      execute: (command, { timeout }) =>
        Effect.map(
          provider.call(
            () => machine.process.executeCommand(command, undefined, undefined, Math.ceil(timeout / 1000)),
            timeout
          ),
          ({ exitCode, result }) => ({ output: result, exitCode })
        ),
      write: (path, content) => provider.call(() => machine.fs.uploadFile(Buffer.from(content), path)),
      read: (path) => provider.call(() => machine.fs.downloadFile(path))
    },
    options
  )

/** Wraps an existing sandbox of the SDK, which this module never ends. */
export const fromSandbox = Provider.fromMachine("Daytona", service)

const refuse = makeEffectCheck("DaytonaSandbox", shapes.daytonaSandboxLayer)

const make = Effect.fnUntraced(function* (options: Options = {}) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const provider = Provider.make("Daytona", options.apiKey)
  const { Daytona } = yield* Provider.loadPeer("@daytonaio/sdk", () => import("@daytonaio/sdk"))
  const { apiKey, apiUrl, create, target } = options
  const client = yield* provider.call(
    async () => new Daytona(defined({ apiKey: Provider.keyOf(apiKey), apiUrl, target }))
  )
  const machine = yield* Provider.acquireMachine(provider, options, {
    create: provider.call(() => client.create(create)),
    connect: (sandboxId) =>
      provider.call(async () => {
        const sandbox = await client.get(sandboxId)
        if (sandbox.state !== "started") await client.start(sandbox)
        return sandbox
      }),
    end: (sandbox) => provider.call(() => client.delete(sandbox)),
    idOf: ({ id }) => id
  })
  return yield* service(machine, Provider.common(options), provider)
})

/** Creates a sandbox, and deletes it with the layer. Fails with `Unsupported` if the SDK is not installed. */
export const layer = Provider.layer(make)

/** Like {@link layer}; any option may be a `Config`. The key is read from `DAYTONA_API_KEY` by default. */
export const layerConfig = Provider.layerConfig(make, { apiKey: Config.Redacted("DAYTONA_API_KEY") })
