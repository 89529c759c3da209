/**
 * A Vercel sandbox as the files and the shell of an agent.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import * as VercelSandbox from "effect-deepagents/backends/VercelSandbox"
 *
 * const system = Sandbox.Sandbox.use((sandbox) => sandbox.execute("uname -a")).pipe(
 *   Effect.provide(VercelSandbox.layer({ create: { timeout: 3_600_000 } }))
 * )
 * ```
 */
import type { Sandbox as VercelSdkSandbox } from "@vercel/sandbox"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as BackendError from "../core/BackendError.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"

/** A command for the SDK. */
type Run = {
  readonly cmd: string
  readonly args: Array<string>
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

/** The members of the SDK's sandbox that this module uses. */
type Machine = {
  readonly name: string
  runCommand(run: Run & { readonly detached: true }): Promise<{
    logs(): AsyncIterable<{ readonly stream: "stdout" | "stderr"; readonly data: string }>
  }>
  runCommand(run: Run): Promise<{ readonly exitCode: number; stdout(): Promise<string> }>
  writeFiles(
    files: Array<{ path: string; content: Uint8Array }>,
    options: { readonly signal: AbortSignal }
  ): Promise<void>
  readFileToBuffer(
    file: { readonly path: string },
    options: { readonly signal: AbortSignal }
  ): Promise<Uint8Array | null>
}

/** Options of the layer. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime {
  /** The access token, together with `teamId` and `projectId`. Default: the OIDC token of the deployment. */
  readonly token?: Redacted.Redacted | undefined
  /** The team. Default: that of the deployment. */
  readonly teamId?: string | undefined
  /** The project. Default: that of the deployment. */
  readonly projectId?: string | undefined
  /** The SDK's parameters of a new sandbox (image, resources, lifetime). Default: none. */
  readonly create?: NonNullable<Parameters<typeof VercelSdkSandbox.create>[0]> | undefined
}

const service = (machine: Machine, options: CustomSandbox.Options, provider: Provider.Provider) =>
  CustomSandbox.make(
    {
      id: machine.name,
      execute: (command, { timeout }) =>
        provider.call(async (signal) => {
          const run = { cmd: "sh", args: ["-c", command], signal, timeoutMs: timeout }
          const ended = await machine.runCommand(run)
          return { output: await ended.stdout(), exitCode: ended.exitCode }
        }, timeout),
      executeStream: (command, { timeout }) =>
        Stream.unwrap(
          Effect.map(
            provider.call(
              () => machine.runCommand({ cmd: "sh", args: ["-c", command], timeoutMs: timeout, detached: true }),
              timeout
            ),
            (running) =>
              Stream.map(
                Stream.fromAsyncIterable(running.logs(), (cause) => cause),
                ({ data, stream }) => ({ channel: stream, text: data })
              )
          )
        ),
      write: (path, content) => provider.call((signal) => machine.writeFiles([{ path, content }], { signal })),
      read: (path) =>
        Effect.flatMap(
          provider.call((signal) => machine.readFileToBuffer({ path }, { signal })),
          (content) =>
            content === null
              ? Effect.fail(BackendError.make("download", path, { _tag: "NotFound" }))
              : Effect.succeed(content)
        )
    },
    options
  )

/** Wraps an existing sandbox of the SDK, which this module never ends. */
export const fromSandbox = Provider.fromMachine("Vercel", service)

const refuse = makeEffectCheck("VercelSandbox", shapes.vercelSandboxLayer)

const make = Effect.fnUntraced(function* (options: Options = {}) {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const provider = Provider.make("Vercel", options.token)
  const { Sandbox: Machine } = yield* Provider.loadPeer("@vercel/sandbox", () => import("@vercel/sandbox"))
  const { create, projectId, teamId, token } = options
  const credentials =
    token === undefined || teamId === undefined || projectId === undefined
      ? {}
      : { token: Redacted.value(token), teamId, projectId }
  const machine = yield* Provider.acquireMachine(provider, options, {
    create: provider.call(() => Machine.create({ ...create, ...credentials })),
    connect: (name) => provider.call(() => Machine.get({ name, ...credentials })),
    end: (sandbox) => Effect.asVoid(provider.call(() => sandbox.stop())),
    idOf: ({ name }) => name
  })
  return yield* service(machine, Provider.common(options), provider)
})

/** Creates a sandbox, and stops it with the layer. Fails with `Unsupported` if the SDK is not installed. */
export const layer = Provider.layer(make)

/**
 * Like {@link layer}; any option may be a `Config`. The credentials are read from `VERCEL_TOKEN`,
 * `VERCEL_TEAM_ID` and `VERCEL_PROJECT_ID` by default.
 */
export const layerConfig = Provider.layerConfig(make, {
  token: Config.Redacted("VERCEL_TOKEN"),
  teamId: Config.String("VERCEL_TEAM_ID"),
  projectId: Config.String("VERCEL_PROJECT_ID")
})
