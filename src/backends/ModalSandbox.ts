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
import * as Stream from "effect/Stream"
import type { SandboxCreateParams } from "modal"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"

/** The members of the SDK's process that this module uses. */
type Process = {
  readonly stdout: AsyncIterable<string> & { readText(): Promise<string> }
  readonly stderr: AsyncIterable<string> & { readText(): Promise<string> }
  wait(): Promise<number>
}

/** The members of the SDK's sandbox that this module uses. */
type Machine = {
  readonly sandboxId: string
  exec(command: Array<string>, options: { readonly mode: "text"; readonly timeoutMs?: number }): Promise<Process>
  readonly filesystem: {
    writeBytes(content: Uint8Array, path: string): Promise<void>
    readBytes(path: string): Promise<Uint8Array>
  }
}

/** Options of the layer. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime {
  /** The id of the token. Default: the SDK looks for `MODAL_TOKEN_ID`, and for its own profiles. */
  readonly tokenId?: Redacted.Redacted | undefined
  /** The secret of the token. Default: the SDK looks for `MODAL_TOKEN_SECRET`, and for its own profiles. */
  readonly tokenSecret?: Redacted.Redacted | undefined
  /** The environment at Modal. Default: the account's own. */
  readonly environment?: string | undefined
  /** The name of the sandbox's app, created if missing. Default: `effect-deepagents`. */
  readonly app?: string | undefined
  /** The container image, by its name in a registry. Default: `debian:stable-slim`. */
  readonly image?: string | undefined
  /** Further parameters of the SDK (resources, volumes, lifetime). Default: none. */
  readonly create?: SandboxCreateParams | undefined
}

/** The SDK takes whole seconds only. */
const wholeSeconds = (timeout: number): number => Math.ceil(timeout / 1000) * 1000

const start = (machine: Machine, command: string, timeout: number): Promise<Process> =>
  machine.exec(["sh", "-c", command], { mode: "text", timeoutMs: wholeSeconds(timeout) })

const service = (machine: Machine, options: CustomSandbox.Options, provider: Provider.Provider) =>
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

const refuse = makeEffectCheck("ModalSandbox", shapes.modalSandboxLayer)

const make = Effect.fnUntraced(function* (options: Options = {}) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const provider = Provider.make("Modal", options.tokenId, options.tokenSecret)
  const { ModalClient } = yield* Provider.loadPeer("modal", () => import("modal"))
  const { app = "effect-deepagents", create, environment, image = "debian:stable-slim", tokenId, tokenSecret } = options
  const client = yield* Effect.acquireRelease(
    provider.call(
      async () =>
        new ModalClient(
          defined({ tokenId: Provider.keyOf(tokenId), tokenSecret: Provider.keyOf(tokenSecret), environment })
        )
    ),
    (opened) => Effect.ignore(provider.call(async () => opened.close()))
  )
  const machine = yield* Provider.acquireMachine(provider, options, {
    create: provider.call(async () =>
      client.sandboxes.create(
        await client.apps.fromName(app, { createIfMissing: true }),
        client.images.fromRegistry(image),
        create
      )
    ),
    connect: (sandboxId) => provider.call(() => client.sandboxes.fromId(sandboxId)),
    end: (sandbox) => provider.call(() => sandbox.terminate()),
    idOf: ({ sandboxId }) => sandboxId
  })
  return yield* service(machine, Provider.common(options), provider)
})

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
