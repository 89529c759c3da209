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
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as BackendError from "../core/BackendError.ts"
import type * as Sandbox from "../core/Sandbox.ts"
import { defined } from "../support/json/defined.ts"
import * as CustomSandbox from "./CustomSandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { readImage, toImage, wholeUnits } from "./internal/sandboxes/manifest.ts"
import * as Provider from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"
import type { Content, Entry, Operations } from "./Manifest.ts"

/** A command for the SDK. */
type Run = {
  readonly cmd: string
  readonly args: Array<string>
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

/** The members of the SDK's sandbox that this module uses. */
type SdkMachine = {
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

/** The account at Vercel. */
export interface Account {
  /** The access token, together with `teamId` and `projectId`. Default: the OIDC token of the deployment. */
  readonly token?: Redacted.Redacted | undefined
  /** The team. Default: that of the deployment. */
  readonly teamId?: string | undefined
  /** The project. Default: that of the deployment. */
  readonly projectId?: string | undefined
}

/** The manifest of a sandbox. Vercel gives 2 GiB of memory a core. */
export interface Manifest extends Content {
  /** The network that commands reach. Default: `none`. */
  readonly network?: "none" | "open" | undefined
  /** Ports of servers, which anyone with the address reaches. Default: none. */
  readonly ports?: ReadonlyArray<number> | undefined
  /** Limits. Default: Vercel's own. */
  readonly limits?:
    | {
        /** Processor cores. Default: Vercel's own. */
        readonly cpus?: number | undefined
      }
    | undefined
}

/** Options of a sandbox. */
export interface Options extends CustomSandbox.Options, Provider.Lifetime, Account {
  /** A new machine as data. An existing one (`sandboxId`) stays as it is. Default: none. */
  readonly manifest?: Manifest | undefined
  /** Further parameters of the SDK for a new sandbox (lifetime, tags; without a manifest also its source). Default: none. */
  readonly create?: NonNullable<Parameters<typeof VercelSdkSandbox.create>[0]> | undefined
}

const service = (machine: SdkMachine, options: CustomSandbox.Options, provider: Provider.Provider) =>
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

const refuse = makeEffectCheck("VercelSandbox", shapes.vercelSandboxMake)

const loadSdk = Provider.loadPeer("@vercel/sandbox", () => import("@vercel/sandbox"))

const credentialsOf = ({ projectId, teamId, token }: Account) =>
  token === undefined || teamId === undefined || projectId === undefined
    ? {}
    : { token: Redacted.value(token), teamId, projectId }

const core = { size: 1, name: "1 core" }

const fieldsOf = Effect.fnUntraced(function* (manifest: Manifest, create: NonNullable<Options["create"]> = {}) {
  const { environment, image, limits, network = "none", ports } = manifest
  const { image: _image, runtime: _runtime, source: _source, ...others } = create
  const vcpus = yield* wholeUnits("Vercel", "cpus", limits?.cpus, core)
  const { name, snapshot } = readImage(image)
  const fields = {
    ...others,
    networkPolicy: network === "open" ? ("allow-all" as const) : ("deny-all" as const),
    ...defined({
      env: environment,
      ports: ports === undefined ? undefined : [...ports],
      resources: vcpus === undefined ? undefined : { vcpus }
    })
  }
  return snapshot === undefined
    ? { ...fields, image: name }
    : { ...fields, source: { type: "snapshot" as const, snapshotId: snapshot } }
})

/** A sandbox at Vercel. `pause` and `snapshot` end its processes; the next command wakes it. */
export interface Machine extends Sandbox.Service, Operations {}

/** Creates a sandbox, and deletes it with the scope. */
export const make = (options: Options = {}): Effect.Effect<Machine, BackendError.BackendError, Scope.Scope> =>
  refuse(options) ??
  Effect.gen(function* () {
    const provider = Provider.make("Vercel", options.token)
    const { create, manifest } = options
    const fields = manifest === undefined ? create : yield* fieldsOf(manifest, create)
    const sdk = yield* loadSdk
    const credentials = credentialsOf(options)
    const wake = (name: string) => provider.call(() => sdk.Sandbox.get({ name, resume: true, ...credentials }))
    return yield* Provider.open(provider, options, {
      create: provider.call(() => sdk.Sandbox.create({ ...fields, ...credentials })),
      connect: wake,
      end: (sandbox) => provider.call(() => sandbox.delete()),
      idOf: ({ name }) => name,
      serve: (sandbox) =>
        Effect.map(service(sandbox, Provider.common(options), provider), (served) => ({
          ...served,
          snapshot: Effect.map(
            provider.call(() => sandbox.snapshot()),
            ({ snapshotId }) => toImage(snapshotId)
          ),
          pause: Effect.asVoid(provider.call(() => sandbox.stop())),
          resume: Effect.asVoid(wake(sandbox.name)),
          address: (port: number) => provider.call(async () => sandbox.domain(port))
        }))
    })
  })

/** Lists the sandboxes of the project. */
export const list = (account: Account = {}): Effect.Effect<ReadonlyArray<Entry>, BackendError.BackendError> =>
  Effect.flatMap(loadSdk, ({ Sandbox: Boxes }) =>
    Provider.make("Vercel", account.token).call(async () => {
      const boxes = await (await Boxes.list(credentialsOf(account))).toArray()
      return boxes.map(({ name, status }) => ({ id: name, state: status }))
    })
  )

/** Creates a sandbox, and deletes it with the layer. Fails with `Unsupported` if the SDK is not installed. */
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
