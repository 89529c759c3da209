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
import type * as Scope from "effect/Scope"
import type { BackendError } from "../core/BackendError.ts"
import type * as Sandbox from "../core/Sandbox.ts"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { readImage, refuseField, toImage, wholeUnits } from "./internal/sandboxes/manifest.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"
import type { Content, Entry, Operations, MachineLimits } from "./Manifest.ts"

/** The members of the SDK's sandbox that this module uses. */
type SdkMachine = {
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

/** The account at Daytona. */
export interface Account {
  /** The API key. Default: the SDK looks for `DAYTONA_API_KEY`. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The address of the API. Default: the SDK looks for `DAYTONA_API_URL`. */
  readonly apiUrl?: string | undefined
  /** The region. Default: the SDK looks for `DAYTONA_TARGET`. */
  readonly target?: string | undefined
}

/** The manifest of a sandbox. */
export interface Manifest extends Content {
  /** Secrets of the organization by their name, with hosts that Daytona puts them in for. Default: none. */
  readonly secrets?: ReadonlyArray<string> | undefined
  /** The network that commands reach. Default: `none`. */
  readonly network?: "none" | "open" | undefined
  /** Ports of servers. An address is signed, and valid for an hour. Default: none. */
  readonly ports?: ReadonlyArray<number> | undefined
  /** The limits of the sandbox. A snapshot has its own limits. Default: Daytona's. */
  readonly limits?: MachineLimits | undefined
}

/** Options of a sandbox. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime, Account {
  /** A new machine as data. An existing one (`sandboxId`) stays as it is. Default: none. */
  readonly manifest?: Manifest | undefined
  /** Further parameters of the SDK for a new sandbox (resources, labels, intervals). Default: none. */
  readonly create?: CreateSandboxFromSnapshotParams | CreateSandboxFromImageParams | undefined
}

const service = (machine: SdkMachine, options: CustomSandbox.Options, provider: Provider.Provider) =>
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

const refuse = makeEffectCheck("DaytonaSandbox", shapes.daytonaSandboxMake)

/** Opens the client of an account. */
const openClient = (provider: Provider.Provider, { apiKey, apiUrl, target }: Account) =>
  Effect.flatMap(
    Provider.loadPeer("@daytonaio/sdk", () => import("@daytonaio/sdk")),
    ({ Daytona }) => provider.call(async () => new Daytona(defined({ apiKey: Provider.keyOf(apiKey), apiUrl, target })))
  )

const gibibyte = { size: 2 ** 30, name: "1 GiB" }
const core = { size: 1, name: "1 core" }

const fieldsOf = Effect.fnUntraced(function* (manifest: Manifest) {
  const { environment, image, limits = {}, network = "none", secrets } = manifest
  const { name, snapshot } = readImage(image)
  const fields = {
    networkBlockAll: network === "none",
    ...defined({
      envVars: environment,
      secrets: secrets === undefined ? undefined : Object.fromEntries(secrets.map((secret) => [secret, secret]))
    })
  }
  const memory = yield* wholeUnits("Daytona", "memoryBytes", limits.memoryBytes, gibibyte)
  const cpu = yield* wholeUnits("Daytona", "cpus", limits.cpus, core)
  if (name !== undefined) return { ...fields, image: name, resources: defined({ cpu, memory }) }
  return (memory ?? cpu) === undefined
    ? { ...fields, snapshot }
    : yield* refuseField("Daytona", "limits", "is for an image of a registry: a snapshot has its own limits")
})

/** Making an image takes minutes, in seconds. */
const createTime = 600
/** The time that an address is valid, in seconds. */
const addressTime = 3_600

/** A sandbox at Daytona. `pause` ends its processes. */
export interface Machine extends Sandbox.Service, Operations {}

/** Creates a sandbox, and deletes it with the scope. */
export const make = (options: Options = {}): Effect.Effect<Machine, BackendError, Scope.Scope> =>
  refuse(options) ??
  Effect.gen(function* () {
    const provider = Provider.make("Daytona", options.apiKey)
    const { create, manifest } = options
    const fields = manifest === undefined ? create : { ...create, ...(yield* fieldsOf(manifest)) }
    const client = yield* openClient(provider, options)
    return yield* Provider.open(provider, options, {
      create: provider.call(() => client.create(fields, { timeout: createTime })),
      connect: (sandboxId) =>
        provider.call(async () => {
          const sandbox = await client.get(sandboxId)
          if (sandbox.state !== "started") await client.start(sandbox)
          return sandbox
        }),
      end: (sandbox) => provider.call(() => client.delete(sandbox)),
      idOf: ({ id }) => id,
      serve: (sandbox) =>
        Effect.map(service(sandbox, Provider.common(options), provider), (served) => ({
          ...served,
          snapshot: provider.call(async () => {
            const name = `deepagents-${crypto.randomUUID()}`
            await sandbox.createSnapshot(name, createTime)
            return toImage(name)
          }),
          pause: provider.call(() => client.stop(sandbox)),
          resume: provider.call(() => client.start(sandbox)),
          address: (port: number) =>
            Effect.map(
              provider.call(() => sandbox.getSignedPreviewUrl(port, addressTime)),
              ({ url }) => url
            )
        }))
    })
  })

/** Lists the sandboxes of the account. */
export const list = (account: Account = {}): Effect.Effect<ReadonlyArray<Entry>, BackendError> => {
  const provider = Provider.make("Daytona", account.apiKey)
  return Effect.flatMap(openClient(provider, account), (client) =>
    provider.call(async () => {
      const entries: Array<Entry> = []
      for await (const { id, state } of client.list()) entries.push({ id, state: state ?? "unknown" })
      return entries
    })
  )
}

/** Creates a sandbox, and deletes it with the layer. Fails with `Unsupported` if the SDK is not installed. */
export const layer = Provider.layer(make)

/** Like {@link layer}; any option may be a `Config`. The key is read from `DAYTONA_API_KEY` by default. */
export const layerConfig = Provider.layerConfig(make, { apiKey: Config.Redacted("DAYTONA_API_KEY") })
