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
import * as Stream from "effect/Stream"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"

/** The members of the SDK's sandbox that this module uses. */
type Machine = {
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

/** Options of the layer. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime {
  /** The API key. Default: the SDK looks for `E2B_API_KEY`. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The domain of the API. Default: the SDK looks for `E2B_DOMAIN`. */
  readonly domain?: string | undefined
  /** The name or id of the sandbox's template. Default: E2B's own. */
  readonly template?: string | undefined
  /** Further parameters of the SDK. E2B ends a sandbox after five minutes by default (`timeoutMs`). Default: none. */
  readonly create?: Omit<SandboxOpts, "apiKey" | "domain" | "template"> | undefined
}

const service = (machine: Machine, options: CustomSandbox.Options, provider: Provider.Provider) =>
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

const refuse = makeEffectCheck("E2bSandbox", shapes.e2bSandboxLayer)

const make = Effect.fnUntraced(function* (options: Options = {}) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const provider = Provider.make("E2B", options.apiKey)
  const { Sandbox: Machine } = yield* Provider.loadPeer("e2b", () => import("e2b"))
  const { apiKey, create, domain, template } = options
  const connection = defined({ apiKey: Provider.keyOf(apiKey), domain })
  const machine = yield* Provider.acquireMachine(provider, options, {
    create: provider.call(() =>
      template === undefined
        ? Machine.create({ ...create, ...connection })
        : Machine.create(template, { ...create, ...connection })
    ),
    connect: (sandboxId) => provider.call(() => Machine.connect(sandboxId, connection)),
    end: (sandbox) => Effect.asVoid(provider.call(() => sandbox.kill())),
    idOf: ({ sandboxId }) => sandboxId
  })
  return yield* service(machine, Provider.common(options), provider)
})

/** Creates a sandbox, and ends it with the layer. Fails with `Unsupported` if the SDK is not installed. */
export const layer = Provider.layer(make)

/** Like {@link layer}; any option may be a `Config`. The key is read from `E2B_API_KEY` by default. */
export const layerConfig = Provider.layerConfig(make, { apiKey: Config.Redacted("E2B_API_KEY") })
