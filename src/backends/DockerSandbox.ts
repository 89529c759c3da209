/**
 * A container as the files and the shell of an agent, by the HTTP API of Docker or Podman.
 *
 * A command reaches the container and the mounted folder, and no network unless the manifest allows it. It has no
 * capabilities, can't gain any, and is held to the limits of the manifest. A container ends with its layer and with this
 * process, also by `kill -9`. With `keep` it stays, and the next layer of the same folder and manifest adopts it.
 *
 * ```ts
 * import { Effect } from "effect"
 * import * as DockerSandbox from "effect-deepagents/backends/DockerSandbox"
 *
 * const program = Effect.gen(function* () {
 *   const box = yield* DockerSandbox.make({ manifest: { image: "node:24" }, folder: "./project", keep: true })
 *   const image = yield* box.snapshot
 *   const { exitCode } = yield* box.execute("npm test", { timeout: "5 minutes" })
 *   return exitCode === 0 ? "green" : `red; the container before it: ${image}`
 * }).pipe(Effect.scoped)
 * ```
 */
import * as NodePath from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Backend } from "../core/Backend.ts"
import * as BackendError from "../core/BackendError.ts"
import * as Sandbox from "../core/Sandbox.ts"
import * as Api from "./internal/docker/api.ts"
import * as Containers from "./internal/docker/container.ts"
import * as Exec from "./internal/docker/exec.ts"
import { listenIn } from "./internal/docker/listener.ts"
import { findSocket, makeClient } from "./internal/docker/socket.ts"
import type { Egress } from "./internal/isolate/options.ts"
import { on } from "./internal/local/failure.ts"
import * as System from "./internal/local/system.ts"
import { makeSandbox } from "./internal/posix/sandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { checkPorts, furnish } from "./internal/sandboxes/manifest.ts"
import * as shapes from "./internal/shapes.ts"
import type { Manifest, Operations } from "./Manifest.ts"

export type { Entry } from "./internal/docker/container.ts"

/** The place of the container engine. */
export interface Engine {
  /** The socket of the engine. Default: that of `DOCKER_HOST`, else Docker's, else Podman's. */
  readonly socket?: string | undefined
}

/** Options of a container. */
export interface Options<R = never> extends Engine {
  /** The image of the container, its content and its limits. */
  readonly manifest: Manifest
  /** The folder of this machine that is the agent's `/`, mounted at `/workspace`. Default: one in the container. */
  readonly folder?: string | undefined
  /**
   * Leaves the container running at the end. The next layer of the same folder and manifest adopts it, and wakes it if
   * it is paused or stopped. Default: `false`.
   */
  readonly keep?: boolean | undefined
  /**
   * The user of commands, `uid` or `uid:gid`. Default: the user of this process if there is a `folder`, else that of the
   * image.
   */
  readonly user?: string | undefined
  /** Capabilities of commands. A package manager needs some, such as `CHOWN` and `SETUID`. Default: none. */
  readonly capabilities?: ReadonlyArray<string> | undefined
  /**
   * The only way from the commands to the network, such as `NodeEgress.start`: it fills in secrets by name. It needs an
   * engine on this Linux machine, and its user or root. Default: the manifest's network.
   */
  readonly egress?: Egress<R> | undefined
  /** The largest file to write, edit, upload or download, in bytes. Default: 10 MiB. */
  readonly maxFileSize?: number | undefined
  /** The most characters of output, half of them from its end. Default: 100,000. */
  readonly outputLimit?: number | undefined
}

/**
 * A container. `snapshot` leaves a mounted folder out; processes stand still meanwhile. `pause` stops processes where they
 * are. `address` is one of this machine, such as `127.0.0.1:49153`.
 */
export interface Container extends Sandbox.Service, Operations {}

const unsupported = (detail: string) =>
  Effect.fail(BackendError.make("open", "/", { _tag: "Unsupported" }, { detail: `DockerSandbox: ${detail}` }))

const openApi = ({ socket = findSocket(process.env) }: Engine): Api.Api => Api.make(makeClient(socket), socket)

/** The real path of the folder. With the engine's socket in it, the container could start others on this machine. */
const resolveFolder = Effect.fnUntraced(function* (inputPath: string, socketPath: string) {
  const path = NodePath.resolve(inputPath)
  const real = yield* on("open", inputPath, System.realpath(path))
  const isFolder = (yield* on("open", inputPath, System.stat(real))).isDirectory()
  if (!isFolder) return yield* Effect.fail(BackendError.make("open", inputPath, { _tag: "NotDirectory" }))
  const socket = yield* Effect.orElseSucceed(System.realpath(socketPath), () => socketPath)
  const isBelow = !NodePath.relative(real, socket).startsWith("..")
  return isBelow
    ? yield* unsupported(`the folder ${inputPath} holds the socket of the container engine: choose a folder without it`)
    : real
})

const checkManifest = (manifest: Manifest, hasEgress: boolean) =>
  hasEgress && (manifest.network ?? "none") !== "none"
    ? unsupported("with `network` of the manifest, commands would go around `egress`: leave one of them out")
    : checkPorts("DockerSandbox", manifest)

/** Finds out who commands run as, and gives them the workspace. */
const findOwner = Effect.fnUntraced(function* (api: Api.Api, id: string, hasFolder: boolean) {
  const script = `id -u && id -g && { [ -w ${Containers.workspace} ] && echo yes || echo no; }`
  const { output } = yield* Exec.run(api, id, script)
  const [uid = "", gid = "", canWrite] = output.trim().split("\n")
  if (!/^\d+$/.test(uid) || !/^\d+$/.test(gid)) {
    return yield* unsupported("the image needs a POSIX shell at /bin/sh with its usual tools")
  }
  // The engine makes a missing working directory for root only.
  if (canWrite !== "yes" && !hasFolder) yield* Exec.run(api, id, `chmod 0777 ${Containers.workspace}`, { user: "0:0" })
  return { uid: Number(uid), gid: Number(gid) }
})

/** The file of a container that says that all of its manifest is in it. */
const mark = "/tmp/.effect-deepagents"

/** Waits until another program has set up the container. */
const waitForMark = (api: Api.Api, id: string) =>
  Exec.run(api, id, `[ -e ${mark} ]`).pipe(
    Effect.repeat({ until: ({ exitCode }) => exitCode === 0, schedule: Schedule.spaced("500 millis"), times: 60 }),
    Effect.flatMap(({ exitCode }) => {
      const detail = `another program still sets the container up, or was ended while it did: try again, or remove it (docker rm -f ${id.slice(0, 12)})`
      return exitCode === 0
        ? Effect.void
        : Effect.fail(BackendError.make("open", "/", { _tag: "Unavailable" }, { detail }))
    })
  )

const refuse = makeEffectCheck("DockerSandbox", shapes.dockerSandboxMake)

/** Starts or adopts a container. Pulls its image if it is missing. */
export const make = <R = never>(
  options: Options<R>
): Effect.Effect<Container, BackendError.BackendError, R | Scope.Scope> =>
  refuse(options) ??
  Effect.gen(function* () {
    const { capabilities = [], egress, keep = false, manifest, maxFileSize, outputLimit } = options
    yield* checkManifest(manifest, egress !== undefined)
    const api = openApi(options)
    const folder = options.folder === undefined ? undefined : yield* resolveFolder(options.folder, api.socketPath)
    const own = process.getuid === undefined ? undefined : `${process.getuid()}:${process.getgid?.() ?? 0}`
    const user = options.user ?? (folder === undefined ? undefined : own)
    const { id, isNew } = yield* Containers.open(api, { manifest, folder, user, capabilities, keep })
    const owner = yield* findOwner(api, id, folder !== undefined)
    const way = egress === undefined ? undefined : yield* egress(yield* listenIn(id))
    const service = yield* makeSandbox(
      {
        id: `docker:${id}`,
        execute: (command) => Exec.run(api, id, command, way),
        executeStream: (command) => Exec.stream(api, id, command, way),
        write: Exec.writeFile(api, id, owner),
        read: Exec.readFile(api, id)
      },
      { root: Containers.workspace, maxFileSize, outputLimit },
      // Two containers may share a folder.
      folder === undefined ? `docker:${id}` : `docker:${folder}`
    )
    if (isNew) {
      yield* Effect.andThen(furnish(service, manifest), Exec.run(api, id, `: >${mark}`)).pipe(
        Effect.onError(() => Effect.ignore(Containers.remove(api, id)))
      )
    } else yield* waitForMark(api, id)
    return {
      ...service,
      snapshot: Containers.commit(api, id),
      pause: Containers.pause(api, id),
      resume: Containers.resume(api, id),
      address: (port) =>
        Effect.flatMap(Containers.addressOf(api, id, port), (address) =>
          address === undefined
            ? unsupported(`the port ${port} is not one of the manifest's, or the container does not run`)
            : Effect.succeed(address)
        )
    }
  })

/** The files and commands of a container: {@link make} as a layer. It isolates, so it provides `Isolated` too. */
export const layer = <R = never>(
  options: Options<R>
): Layer.Layer<Sandbox.Sandbox | Backend | Sandbox.Isolated, BackendError.BackendError, Exclude<R, Scope.Scope>> =>
  Layer.effectContext(
    Effect.map(make(options), (service) => {
      const { network = "none" } = options.manifest
      return Context.add(Sandbox.context(Sandbox.traced(service)), Sandbox.Isolated, {
        by: "docker",
        network: options.egress !== undefined ? "rules" : network === "none" ? "none" : "open"
      })
    })
  )

/** Lists the containers of this library, the newest first: kept ones, and containers in use. */
export const list = (engine: Engine = {}): Effect.Effect<ReadonlyArray<Containers.Entry>, BackendError.BackendError> =>
  Effect.suspend(() => Containers.list(openApi(engine)))

/** Removes a container, with all that runs in it. A mounted folder stays. */
export const remove = (id: string, engine: Engine = {}): Effect.Effect<void, BackendError.BackendError> =>
  Effect.suspend(() => Containers.remove(openApi(engine), id))
