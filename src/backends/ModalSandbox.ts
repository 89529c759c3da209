/**
 * A Modal sandbox as the files and the shell of an agent.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import * as ModalSandbox from "effect-deepagents/backends/ModalSandbox"
 *
 * const system = Sandbox.Sandbox.use((sandbox) => sandbox.execute("uname -a")).pipe(
 *   Effect.provide(ModalSandbox.layerConfig({ app: "agents", image: "node:24-slim" }))
 * )
 * ```
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { SandboxCreateParams } from "modal"
import type { BackendError } from "../core/BackendError.ts"
import type * as Sandbox from "../core/Sandbox.ts"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { readImage, refuseField, toImage, wholeUnits } from "./internal/sandboxes/manifest.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"
import type { Content, Entry, Operations, MachineLimits } from "./Manifest.ts"

/** The members of the SDK's process that this module uses. */
type Process = {
  readonly stdout: AsyncIterable<string> & { readText(): Promise<string> }
  readonly stderr: AsyncIterable<string> & { readText(): Promise<string> }
  wait(): Promise<number>
}

/** The members of the SDK's sandbox that this module uses. */
type SdkMachine = {
  readonly sandboxId: string
  exec(command: Array<string>, options: { readonly mode: "text"; readonly timeoutMs?: number }): Promise<Process>
  readonly filesystem: {
    writeBytes(content: Uint8Array, path: string): Promise<void>
    readBytes(path: string): Promise<Uint8Array>
  }
}

/** The account at Modal. */
export interface Account {
  /** The id of the token. Default: the SDK looks for `MODAL_TOKEN_ID`, and for its own profiles. */
  readonly tokenId?: Redacted.Redacted | undefined
  /** The secret of the token. Default: the SDK looks for `MODAL_TOKEN_SECRET`, and for its own profiles. */
  readonly tokenSecret?: Redacted.Redacted | undefined
  /** The environment at Modal. Default: the account's own. */
  readonly environment?: string | undefined
  /** The name of the sandbox's app, created if missing. Default: `effect-deepagents`. */
  readonly app?: string | undefined
}

/** The manifest of a sandbox. */
export interface Manifest extends Content {
  /** The network that commands reach. Default: `none`. */
  readonly network?: "none" | "open" | undefined
  /** Ports of servers, which anyone with the address reaches. Default: none. */
  readonly ports?: ReadonlyArray<number> | undefined
  /** Limits. Default: Modal's own. */
  readonly limits?: MachineLimits | undefined
}

/** Options of a sandbox. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime, Account {
  /** A new machine as data. An existing one (`sandboxId`) stays as it is. Default: none. */
  readonly manifest?: Manifest | undefined
  /** The container image, by its name in a registry. Default: that of the manifest, else `debian:stable-slim`. */
  readonly image?: string | undefined
  /** Further parameters of the SDK (resources, volumes, lifetime). Default: none. */
  readonly create?: SandboxCreateParams | undefined
}

/** The SDK takes whole seconds only. */
const wholeSeconds = (timeout: number): number => Math.ceil(timeout / 1000) * 1000

const start = (machine: SdkMachine, command: string, timeout: number): Promise<Process> =>
  machine.exec(["sh", "-c", command], { mode: "text", timeoutMs: wholeSeconds(timeout) })

const service = (machine: SdkMachine, options: CustomSandbox.Options, provider: Provider.Provider) =>
  CustomSandbox.make(
    {
      id: machine.sandboxId,
      execute: (command, { timeout }) =>
        provider.call(async () => {
          const running = await start(machine, command, timeout)
          // Reads both: an unread channel could fill up and block the command.
          const [output, , exitCode] = await Promise.all([
            running.stdout.readText(),
            running.stderr.readText(),
            running.wait()
          ])
          return { output, exitCode }
        }, timeout),
      executeStream: (command, { timeout }) =>
        Stream.unwrap(
          Effect.map(
            provider.call(() => start(machine, command, timeout), timeout),
            (running) => {
              const pieces = (channel: "stdout" | "stderr") =>
                Stream.map(
                  Stream.fromAsyncIterable(running[channel], (cause) => cause),
                  (text) => ({ channel, text })
                )
              return Stream.merge(pieces("stdout"), pieces("stderr"))
            }
          )
        ),
      write: (path, content) => provider.call(() => machine.filesystem.writeBytes(content, path)),
      read: (path) => provider.call(() => machine.filesystem.readBytes(path))
    },
    options
  )

/** Wraps an existing sandbox of the SDK, which this module never ends. */
export const fromSandbox = Provider.fromMachine("Modal", service)

const refuse = makeEffectCheck("ModalSandbox", shapes.modalSandboxMake)

/** Opens the client of an account, and closes it with the scope. */
const openClient = (provider: Provider.Provider, { environment, tokenId, tokenSecret }: Account) =>
  Effect.flatMap(
    Provider.loadPeer("modal", () => import("modal")),
    ({ ModalClient }) =>
      Effect.acquireRelease(
        provider.call(
          async () =>
            new ModalClient(
              defined({ tokenId: Provider.keyOf(tokenId), tokenSecret: Provider.keyOf(tokenSecret), environment })
            )
        ),
        (opened) => Effect.ignore(provider.call(async () => opened.close()))
      )
  )

const defaultApp = "effect-deepagents"
const mebibyte = { size: 2 ** 20, name: "1 MiB" }

const fieldsOf = Effect.fnUntraced(function* ({ environment, limits = {}, network = "none", ports }: Manifest) {
  const memory = yield* wholeUnits("Modal", "memoryBytes", limits.memoryBytes, mebibyte)
  return {
    blockNetwork: network === "none",
    ...defined({
      env: environment,
      encryptedPorts: ports === undefined ? undefined : [...ports],
      memoryMiB: memory,
      memoryLimitMiB: memory,
      cpu: limits.cpus,
      cpuLimit: limits.cpus
    })
  }
})

/** A sandbox at Modal. It can't be paused. Modal keeps a snapshot for 30 days. */
export interface Machine extends Sandbox.Service, Pick<Operations, "snapshot" | "address"> {}

/** Creates a sandbox, and ends it with the scope. */
export const make = (options: Options = {}): Effect.Effect<Machine, BackendError, Scope.Scope> =>
  refuse(options) ??
  Effect.gen(function* () {
    const provider = Provider.make("Modal", options.tokenId, options.tokenSecret)
    const { app = defaultApp, create, manifest } = options
    const { name, snapshot } = readImage(options.image ?? manifest?.image ?? "debian:stable-slim")
    const fields = manifest === undefined ? create : { ...create, ...(yield* fieldsOf(manifest)) }
    const client = yield* openClient(provider, options)
    return yield* Provider.open(provider, options, {
      create: provider.call(async () =>
        client.sandboxes.create(
          await client.apps.fromName(app, { createIfMissing: true }),
          snapshot === undefined ? client.images.fromRegistry(name) : await client.images.fromId(snapshot),
          fields
        )
      ),
      connect: (sandboxId) => provider.call(() => client.sandboxes.fromId(sandboxId)),
      end: (sandbox) => provider.call(() => sandbox.terminate()),
      idOf: ({ sandboxId }) => sandboxId,
      serve: (sandbox) =>
        Effect.map(service(sandbox, Provider.common(options), provider), (served) => ({
          ...served,
          snapshot: Effect.map(
            provider.call(() => sandbox.snapshotFilesystem()),
            ({ imageId }) => toImage(imageId)
          ),
          address: (port: number) =>
            Effect.flatMap(
              provider.call(() => sandbox.tunnels()),
              ({ [port]: tunnel }) =>
                tunnel === undefined ? refuseField("Modal", "ports", `has no ${port}`) : Effect.succeed(tunnel.url)
            )
        }))
    })
  })

/** Lists the sandboxes of the app that run. */
export const list = (account: Account = {}): Effect.Effect<ReadonlyArray<Entry>, BackendError> => {
  const provider = Provider.make("Modal", account.tokenId, account.tokenSecret)
  const { app = defaultApp } = account
  return openClient(provider, account).pipe(
    Effect.flatMap((client) =>
      provider.call(async () => {
        const { appId } = await client.apps.fromName(app, { createIfMissing: true })
        const entries: Array<Entry> = []
        for await (const { sandboxId } of client.sandboxes.list({ appId }))
          entries.push({ id: sandboxId, state: "running" })
        return entries
      })
    ),
    Effect.scoped
  )
}

/** Creates a sandbox, and ends it with the layer. Fails with `Unsupported` if the SDK is not installed. */
export const layer = Provider.layer(make)

/**
 * Like {@link layer}; any option may be a `Config`. The keys are read from `MODAL_TOKEN_ID` and
 * `MODAL_TOKEN_SECRET` by default.
 */
export const layerConfig = Provider.layerConfig(make, {
  tokenId: Config.Redacted("MODAL_TOKEN_ID"),
  tokenSecret: Config.Redacted("MODAL_TOKEN_SECRET")
})
