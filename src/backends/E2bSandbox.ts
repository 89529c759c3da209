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
import type * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import { type Configured, fromConfigured } from "../core/Configured.ts"
import * as Sandbox from "../core/Sandbox.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { loadPeer } from "./internal/sandboxes/peer.ts"
import * as Provider from "./internal/sandboxes/provider.ts"

/** What is used of the SDK's sandbox. */
export interface E2bMachine {
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

/**
 * What a layer is made of.
 *
 * - `apiKey`, `domain`: without them the SDK looks for `E2B_API_KEY` and `E2B_DOMAIN`
 * - `template`: what the sandbox is made from, by name or id
 * - `create`: what else the SDK is told. E2B ends a sandbox after five minutes unless `timeoutMs` says otherwise
 */
export interface Options extends CustomSandbox.Options, Provider.Lifetime {
  readonly apiKey?: Redacted.Redacted | undefined
  readonly domain?: string | undefined
  readonly template?: string | undefined
  readonly create?: Omit<SandboxOpts, "apiKey" | "domain" | "template"> | undefined
}

const service = (machine: E2bMachine, options: CustomSandbox.Options, provider: Provider.Provider) =>
  CustomSandbox.make(
    {
      id: machine.sandboxId,
      execute: (command, { timeout }) =>
        Effect.map(
          Provider.call(provider, (signal) => machine.commands.run(command, { timeoutMs: timeout, signal }), timeout),
          ({ exitCode, stdout }) => ({ output: stdout, exitCode })
        ),
      executeStream: (command, { timeout }) =>
        Stream.callback((queue) => {
          const onStdout = (text: string) => void Queue.offerUnsafe(queue, { channel: "stdout", text })
          const onStderr = (text: string) => void Queue.offerUnsafe(queue, { channel: "stderr", text })
          return Provider.call(
            provider,
            (signal) => machine.commands.run(command, { timeoutMs: timeout, signal, onStdout, onStderr }),
            timeout
          ).pipe(
            Effect.matchEffect({
              onFailure: (error) => Queue.fail(queue, error),
              onSuccess: () => Queue.end(queue)
            })
          )
        }),
      write: (path, content) => Provider.call(provider, () => machine.files.write(path, content.slice().buffer)),
      read: (path) => Provider.call(provider, () => machine.files.read(path, { format: "bytes" }))
    },
    options
  )

/** A sandbox of the SDK that is there already. It is not ended from here. */
export const fromSandbox = (
  machine: E2bMachine,
  options: CustomSandbox.Options = {}
): Effect.Effect<Sandbox.Service, BackendError> => service(machine, options, Provider.make("E2B"))

const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Sandbox.Service, BackendError, Scope.Scope> {
  const provider = Provider.make("E2B", options.apiKey)
  const { Sandbox: Machine } = yield* loadPeer("e2b", () => import("e2b"))
  const { apiKey, create, domain, template } = options
  const connection = {
    ...(apiKey === undefined ? {} : { apiKey: Redacted.value(apiKey) }),
    ...(domain === undefined ? {} : { domain })
  }
  const machine = yield* Provider.living(provider, options, {
    create: Provider.call(provider, () =>
      template === undefined
        ? Machine.create({ ...create, ...connection })
        : Machine.create(template, { ...create, ...connection })
    ),
    connect: (sandboxId) => Provider.call(provider, () => Machine.connect(sandboxId, connection)),
    end: (made) => Effect.asVoid(Provider.call(provider, () => made.kill())),
    idOf: ({ sandboxId }) => sandboxId
  })
  return yield* service(machine, options, provider)
})

/** A sandbox that is made with the layer and ended with it. Fails with `Unsupported` if the SDK is not installed. */
export const layer = (options: Options = {}): Layer.Layer<Sandbox.Sandbox | Backend, BackendError> =>
  Sandbox.layer(make(options))

/** As {@link layer}, with options of which any may be a `Config`. The key is read from `E2B_API_KEY` by default. */
export const layerConfig = (
  options: Configured<Options> = {}
): Layer.Layer<Sandbox.Sandbox | Backend, BackendError | Config.ConfigError> =>
  Sandbox.layer(Effect.flatMap(fromConfigured<Options>({ apiKey: Config.Redacted("E2B_API_KEY"), ...options }), make))
