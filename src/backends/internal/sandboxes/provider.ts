/** The shared part of all providers: SDK calls whose failures hide keys, and machines that end with their scope. */
import type * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { Backend } from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { type ConfigOptions, fromConfigured } from "../../../core/configured.ts"
import * as Sandbox from "../../../core/Sandbox.ts"
import * as Peer from "../../../support/effect/peer.ts"
import { cut } from "../../../support/text/text.ts"
import type * as CustomSandbox from "../../CustomSandbox.ts"
import type { Manifest } from "../../Manifest.ts"
import { checkPorts, furnish } from "./manifest.ts"

/** The lifetime of a machine. */
export interface Lifetime {
  /** An existing machine to use; it is started if it is stopped. Default: a new one. */
  readonly sandboxId?: string | undefined
  /**
   * Leaves the machine running at the end, to be resumed by its id (`Sandbox.id`). Default: `true` for an existing
   * machine, else `false`.
   */
  readonly keep?: boolean | undefined
}

/** A provider. `call` calls its SDK; `limit` is the timeout of that call in milliseconds. */
export interface Provider {
  readonly name: string
  readonly call: <A>(
    run: (signal: AbortSignal) => Promise<A>,
    limit?: number
  ) => Effect.Effect<A, BackendError.BackendError>
}

/** Imports the module of a package. Fails with its installation command if it is missing. */
export const loadPeer = <Module>(
  packageName: string,
  load: () => Promise<Module>
): Effect.Effect<Module, BackendError.BackendError> =>
  Peer.loadPeer(packageName, load, (detail, cause) =>
    BackendError.make("open", "/", { _tag: "Unsupported" }, { detail, cause })
  )

/** The text of a key for an SDK, which otherwise looks for its own. */
export const keyOf = (key: Redacted.Redacted | undefined): string | undefined =>
  key === undefined ? undefined : Redacted.value(key)

const longestMessage = 500

const messageOf = (cause: unknown): string =>
  cause instanceof Error ? `${cause.name}: ${cause.message}` : "it failed with something that is no error"

/** Describes an error of an SDK without keys. The error itself may contain requests with their headers. */
const describeCause = (name: string, secrets: ReadonlyArray<Redacted.Redacted>, cause: unknown): string => {
  const hidden = secrets
    .map(Redacted.value)
    .filter((secret) => secret !== "")
    .reduce((text, secret) => text.replaceAll(secret, "[hidden]"), messageOf(cause))
  return `${name}: ${cut(hidden.replaceAll(/bearer\s+\S+/gi, "Bearer [hidden]"), longestMessage)}`
}

const isTimeout = (cause: unknown): boolean =>
  cause instanceof Error && /time-?out|timed out|deadline/i.test(`${cause.name} ${cause.message}`)

/** Makes a provider. Its failures hide the keys. */
export const make = (name: string, ...keys: ReadonlyArray<Redacted.Redacted | undefined>): Provider => {
  const secrets = keys.filter((key) => key !== undefined)
  return {
    name,
    call: (run, limit) =>
      Effect.tryPromise({
        try: run,
        catch: (cause) => {
          const reason: BackendError.Reason =
            limit !== undefined && isTimeout(cause) ? { _tag: "TimedOut", limit } : { _tag: "Unavailable" }
          return BackendError.make("open", "/", reason, { detail: describeCause(name, secrets, cause) })
        }
      })
  }
}

/** The options that all sandboxes have. */
export const common = ({ maxFileSize, outputLimit, root }: CustomSandbox.Options): CustomSandbox.Options => ({
  maxFileSize,
  outputLimit,
  root
})

/** The timeout for ending a machine. */
const endTime = Duration.seconds(60)

type Failing<A, R = never> = Effect.Effect<A, BackendError.BackendError, R>

/** The options of all providers that {@link open} reads. */
export interface OpenOptions extends Lifetime {
  readonly manifest?: Pick<Manifest, "files" | "repositories" | "network" | "ports"> | undefined
}

/** Ends a machine. A failure is logged, as the machine may go on to cost money. */
const endMachine = <A>(provider: Provider, id: string, end: Failing<A>): Effect.Effect<unknown> =>
  end.pipe(
    Effect.timeoutOrElse({
      duration: endTime,
      orElse: () =>
        Effect.fail(BackendError.make("close", "/", { _tag: "TimedOut", limit: Duration.toMillis(endTime) }))
    }),
    Effect.catch((error) =>
      Effect.logWarning(
        `The sandbox ${id} of ${provider.name} could not be ended, and may still cost money: ${error.message}`
      )
    )
  )

/**
 * Makes or finds a machine, and puts the files of its manifest into a new one. It ends with the scope unless it should be
 * kept. A new machine that could not be set up is never kept.
 */
export const open = <A, Service extends Sandbox.Service>(
  provider: Provider,
  options: OpenOptions,
  machine: {
    readonly create: Failing<A>
    readonly connect: (sandboxId: string) => Failing<A>
    readonly end: (machine: A) => Failing<void>
    readonly idOf: (machine: A) => string
    readonly serve: (machine: A) => Failing<Service>
  }
): Failing<Service, Scope.Scope> =>
  Effect.gen(function* () {
    const { keep, manifest = {}, sandboxId } = options
    const isNew = sandboxId === undefined
    yield* checkPorts(provider.name, manifest)
    let isReady = !isNew
    const opened = yield* Effect.acquireRelease(isNew ? machine.create : machine.connect(sandboxId), (made) =>
      (keep ?? !isNew) && isReady ? Effect.void : endMachine(provider, machine.idOf(made), machine.end(made))
    )
    const service = yield* machine.serve(opened)
    if (isNew) yield* furnish(service, manifest)
    isReady = true
    return service
  })

/** The sandbox of an existing machine. */
export const fromMachine =
  <Machine>(
    name: string,
    service: (machine: Machine, options: CustomSandbox.Options, provider: Provider) => Failing<Sandbox.Service>
  ) =>
  (machine: Machine, options: CustomSandbox.Options = {}): Failing<Sandbox.Service> =>
    service(machine, options, make(name))

type MakeSandbox<Options> = (options?: Options) => Failing<Sandbox.Service, Scope.Scope>

/** A machine of somebody else's. The network of an existing one is unknown. */
const isolationOf = ({ manifest, sandboxId }: OpenOptions = {}): Sandbox.Isolated["Service"] => ({
  by: "remote",
  network:
    manifest === undefined || sandboxId !== undefined || (manifest.network ?? "none") !== "none" ? "open" : "none"
})

type Provided = Sandbox.Sandbox | Backend | Sandbox.Isolated

/** The layer of a provider's sandbox. */
export const layer =
  <Options extends OpenOptions>(make: MakeSandbox<Options>) =>
  (options?: Options): Layer.Layer<Provided, BackendError.BackendError> =>
    Sandbox.layerIsolated(make(options), isolationOf(options))

/** The layer of a provider's sandbox; any option may be a `Config`. `keys` are read by default. */
export const layerConfig =
  <Options extends OpenOptions>(make: MakeSandbox<Options>, keys: Partial<ConfigOptions<Options>>) =>
  (options?: ConfigOptions<Options>): Layer.Layer<Provided, BackendError.BackendError | Config.ConfigError> =>
    Layer.unwrap(Effect.map(fromConfigured<Options>(options, keys), layer(make)))
