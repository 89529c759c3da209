/**
 * An E2B sandbox as the files and the shell of an agent.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import * as E2bSandbox from "effect-deepagents/backends/E2bSandbox"
 *
 * const system = Sandbox.Sandbox.use((sandbox) => sandbox.execute("uname -a")).pipe(
 *   Effect.provide(E2bSandbox.layerConfig({ template: "base", create: { timeoutMs: 3_600_000 } }))
 * )
 * ```
 */
import type { SandboxOpts } from "e2b"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { BackendError } from "../core/BackendError.ts"
import type * as Sandbox from "../core/Sandbox.ts"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"
import type { Content, Entry, Operations } from "./Manifest.ts"

/** The members of the SDK's sandbox that this module uses. */
type SdkMachine = {
  readonly sandboxId: string
  readonly commands: {
    run(
      command: string,
      options: {
        readonly timeoutMs?: number
        readonly signal?: AbortSignal
        readonly onStdout?: (text: string) => void
        readonly onStderr?: (text: string) => void
      }
    ): Promise<{ readonly stdout: string; readonly exitCode: number }>
  }
  readonly files: {
    write(path: string, data: ArrayBuffer): Promise<unknown>
    read(path: string, options: { readonly format: "bytes" }): Promise<Uint8Array>
  }
}

/** The account at E2B. */
export interface Account {
  /** The API key. Default: the SDK looks for `E2B_API_KEY`. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The domain of the API. Default: the SDK looks for `E2B_DOMAIN`. */
  readonly domain?: string | undefined
}

/** The manifest of a sandbox. Its image is a template, which has the limits. */
export interface Manifest extends Content {
  /** The network that commands reach. Default: `none`. */
  readonly network?: "none" | "open" | undefined
  /** Ports of servers, which anyone with the address reaches. Default: none. */
  readonly ports?: ReadonlyArray<number> | undefined
}

/** Options of a sandbox. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime, Account {
  /** A new machine as data. An existing one (`sandboxId`) stays as it is. Default: none. */
  readonly manifest?: Manifest | undefined
  /** The name or id of the sandbox's template. Default: the image of the manifest, else E2B's own. */
  readonly template?: string | undefined
  /** Further parameters of the SDK. E2B ends a sandbox after five minutes by default (`timeoutMs`). Default: none. */
  readonly create?: Omit<SandboxOpts, "apiKey" | "domain" | "template"> | undefined
}

const service = (machine: SdkMachine, options: CustomSandbox.Options, provider: Provider.Provider) =>
  CustomSandbox.make(
    {
      id: machine.sandboxId,
      execute: (command, { timeout }) =>
        Effect.map(
          provider.call((signal) => machine.commands.run(command, { timeoutMs: timeout, signal }), timeout),
          ({ exitCode, stdout }) => ({ output: stdout, exitCode })
        ),
      executeStream: (command, { timeout }) =>
        Stream.callback((queue) => {
          const onStdout = (text: string) => void Queue.offerUnsafe(queue, { channel: "stdout", text })
          const onStderr = (text: string) => void Queue.offerUnsafe(queue, { channel: "stderr", text })
          return provider
            .call(
              (signal) => machine.commands.run(command, { timeoutMs: timeout, signal, onStdout, onStderr }),
              timeout
            )
            .pipe(
              Effect.matchEffect({
                onFailure: (error) => Queue.fail(queue, error),
                onSuccess: () => Queue.end(queue)
              })
            )
        }),
      write: (path, content) => provider.call(() => machine.files.write(path, content.slice().buffer)),
      read: (path) => provider.call(() => machine.files.read(path, { format: "bytes" }))
    },
    options
  )

/** Wraps an existing sandbox of the SDK, which this module never ends. */
export const fromSandbox = Provider.fromMachine("E2B", service)

const refuse = makeEffectCheck("E2bSandbox", shapes.e2bSandboxMake)

const loadSdk = Provider.loadPeer("e2b", () => import("e2b"))

const connectionOf = ({ apiKey, domain }: Account) => defined({ apiKey: Provider.keyOf(apiKey), domain })

const fieldsOf = ({ environment, network = "none" }: Manifest): SandboxOpts => ({
  ...defined({ envs: environment }),
  allowInternetAccess: network === "open"
})

/** A sandbox at E2B. `pause` keeps its processes as they are. */
export interface Machine extends Sandbox.Service, Operations {}

/** Creates a sandbox, and ends it with the scope. */
export const make = (options: Options = {}): Effect.Effect<Machine, BackendError, Scope.Scope> =>
  refuse(options) ??
  Effect.gen(function* () {
    const provider = Provider.make("E2B", options.apiKey)
    const sdk = yield* loadSdk
    const { create, manifest, template = manifest?.image } = options
    const connection = connectionOf(options)
    const fields = { ...create, ...(manifest === undefined ? {} : fieldsOf(manifest)), ...connection }
    return yield* Provider.open(provider, options, {
      create: provider.call(() =>
        template === undefined ? sdk.Sandbox.create(fields) : sdk.Sandbox.create(template, fields)
      ),
      connect: (sandboxId) => provider.call(() => sdk.Sandbox.connect(sandboxId, connection)),
      end: (sandbox) => Effect.asVoid(provider.call(() => sandbox.kill())),
      idOf: ({ sandboxId }) => sandboxId,
      serve: (sandbox) =>
        Effect.map(service(sandbox, Provider.common(options), provider), (served) => ({
          ...served,
          snapshot: Effect.map(
            provider.call(() => sandbox.createSnapshot()),
            ({ snapshotId }) => snapshotId
          ),
          pause: Effect.asVoid(provider.call(() => sandbox.pause())),
          resume: Effect.asVoid(provider.call(() => sandbox.connect())),
          address: (port: number) => provider.call(async () => `https://${sandbox.getHost(port)}`)
        }))
    })
  })

/** Lists the sandboxes of the account. */
export const list = (account: Account = {}): Effect.Effect<ReadonlyArray<Entry>, BackendError> =>
  Effect.flatMap(loadSdk, ({ Sandbox: Boxes }) =>
    Provider.make("E2B", account.apiKey).call(async () => {
      const pages = Boxes.list(connectionOf(account))
      const entries: Array<Entry> = []
      while (pages.hasNext)
        for (const { sandboxId, state } of await pages.nextItems()) entries.push({ id: sandboxId, state })
      return entries
    })
  )

/** Creates a sandbox, and ends it with the layer. Fails with `Unsupported` if the SDK is not installed. */
export const layer = Provider.layer(make)

/** Like {@link layer}; any option may be a `Config`. The key is read from `E2B_API_KEY` by default. */
export const layerConfig = Provider.layerConfig(make, { apiKey: Config.Redacted("E2B_API_KEY") })
