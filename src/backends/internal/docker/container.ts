/** Containers of this library: created from a manifest, found by their labels, started, and removed. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { BackendError } from "../../../core/BackendError.ts"
import { defined } from "../../../support/json/defined.ts"
import { sha256 } from "../../../support/store/hash.ts"
import { cut } from "../../../support/text/text.ts"
import type { Manifest } from "../../Manifest.ts"
import * as Api from "./api.ts"
import { holdOpen } from "./socket.ts"

type Failing<A, R = never> = Effect.Effect<A, BackendError, R>

/** The folder of the agent in a container. */
export const workspace = "/workspace"

/** The label of all containers and snapshots of this library. */
const label = "effect-deepagents"

/** The labels of a container: its folder on this machine, and the hash of its plan. */
const labels = { folder: `${label}.folder`, plan: `${label}.plan` } as const

/** All that a container is made from. */
export interface Plan {
  readonly manifest: Manifest
  readonly folder: string | undefined
  readonly user: string | undefined
  readonly capabilities: ReadonlyArray<string>
  readonly keep: boolean
}

/** A container that runs. `isNew`: it was created just now. */
export interface StartedContainer {
  readonly id: string
  readonly isNew: boolean
}

const defaults = { memoryBytes: 2 ** 31, processes: 512 } as const

/** A kept container sleeps. Any other ends with its input, which this process holds open. */
const waiting = { kept: "while :; do sleep 86400; done", tied: "exec cat >/dev/null" } as const

const networkOf = ({ network = "none" }: Manifest): string =>
  network === "none" ? "none" : network === "open" ? "bridge" : network.name

const environmentOf = ({ environment, secrets = [] }: Manifest, user: string | undefined): ReadonlyArray<string> => {
  // A user by number has no home in the image.
  const home = user !== undefined && /^[1-9]/.test(user) ? { HOME: "/tmp" } : {}
  const byName = Object.fromEntries(secrets.map((name) => [name, `{{secret:${name}}}`]))
  return Object.entries({ ...home, ...byName, ...environment }).map(([name, value]) => `${name}=${value}`)
}

const bodyOf = (plan: Plan, hash: string) => {
  const { capabilities, folder, keep, manifest, user } = plan
  const { limits = {}, ports = [] } = manifest
  const { cpus, memoryBytes = defaults.memoryBytes, processes = defaults.processes } = limits
  const tied = keep ? {} : { OpenStdin: true, StdinOnce: true, AttachStdin: true }
  return {
    Image: manifest.image,
    Entrypoint: ["/bin/sh", "-c", keep ? waiting.kept : waiting.tied],
    Cmd: [],
    WorkingDir: workspace,
    Env: environmentOf(manifest, user),
    Labels: defined({ [label]: "sandbox", [labels.plan]: hash, [labels.folder]: folder }),
    ...defined({ User: user }),
    ...tied,
    ExposedPorts: Object.fromEntries(ports.map((port) => [`${port}/tcp`, {}])),
    HostConfig: {
      NetworkMode: networkOf(manifest),
      Memory: memoryBytes,
      MemorySwap: memoryBytes,
      PidsLimit: processes,
      ...defined({ NanoCpus: cpus === undefined ? undefined : Math.round(cpus * 1e9) }),
      CapDrop: ["ALL"],
      CapAdd: capabilities,
      SecurityOpt: ["no-new-privileges"],
      Init: true,
      AutoRemove: !keep,
      // A mount and not a bind: a name with a colon would change the meaning of a bind.
      Mounts: folder === undefined ? [] : [{ Type: "bind", Source: folder, Target: workspace }],
      PortBindings: Object.fromEntries(ports.map((port) => [`${port}/tcp`, [{ HostIp: "127.0.0.1", HostPort: "" }]]))
    }
  }
}

const Created = Schema.Struct({
  Id: Schema.String,
  Warnings: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))
})

const Port = Schema.Struct({ HostIp: Schema.String, HostPort: Schema.String })

const Inspected = Schema.Struct({
  Id: Schema.String,
  State: Schema.Struct({ Status: Schema.String }),
  Config: Schema.Struct({ Labels: Schema.NullOr(Schema.Record(Schema.String, Schema.String)) }),
  NetworkSettings: Schema.Struct({
    Ports: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.NullOr(Schema.Array(Port)))))
  })
})

const Listed = Schema.Array(
  Schema.Struct({
    Id: Schema.String,
    Image: Schema.String,
    State: Schema.String,
    Created: Schema.Finite,
    Labels: Schema.NullOr(Schema.Record(Schema.String, Schema.String))
  })
)

const toFailure = (error: BackendError): Api.Failure => ({ _tag: "Gone", error })

const inspect = (api: Api.Api, idOrName: string) =>
  Effect.flatMap(Api.call(api, "GET", `/containers/${encodeURIComponent(idOrName)}/json`), Api.readJson(Inspected))

/** Looks a container up. `undefined` if it is missing. */
const inspectThere = (api: Api.Api, name: string) =>
  api.send("GET", `/containers/${encodeURIComponent(name)}/json`).pipe(
    Effect.flatMap((response) => Effect.mapError(Api.readJson(Inspected)(response), toFailure)),
    Effect.map((container): typeof Inspected.Type | undefined => container),
    Effect.catchIf(
      (failure) => failure._tag === "Refused" && failure.status === 404,
      () => Effect.succeed(undefined)
    ),
    Effect.mapError(Api.toError)
  )

const Progress = Schema.fromJsonString(Schema.Struct({ error: Schema.optionalKey(Schema.String) }))

const pullFailure = (image: string, problem: string) =>
  Api.fail(
    `there is no image ${JSON.stringify(image)} here, and it could not be pulled: ${cut(problem, 300)}. Check its name, or pull it by hand: docker pull ${image}`
  )

/** Pulls an image. The engine answers with one line for each step. A failure is such a line. */
const pull = (api: Api.Api, image: string): Failing<void> => {
  const tag = /[:@][^/]*$/.test(image) ? {} : { tag: "latest" }
  return api.send("POST", `/images/create?${Api.queryOf({ fromImage: image, ...tag })}`).pipe(
    Effect.mapError((failure) => (failure._tag === "Gone" ? failure.error : pullFailure(image, failure.message))),
    Effect.flatMap(({ stream }) =>
      Stream.decodeText(stream).pipe(
        Stream.splitLines,
        Stream.mapEffect((line) => Effect.option(Schema.decodeEffect(Progress)(line))),
        Stream.mapError((cause) => Api.fail("the pull broke off", cause)),
        Stream.runForEach((step) => {
          const error = Option.getOrUndefined(step)?.error
          return error === undefined ? Effect.void : Effect.fail(pullFailure(image, error))
        })
      )
    )
  )
}

/** Creates a container. `undefined` if the name is taken. */
const create = (
  api: Api.Api,
  plan: Plan,
  name: string | undefined,
  hash: string
): Effect.Effect<string | undefined, Api.Failure> =>
  api
    .send("POST", `/containers/create${name === undefined ? "" : `?${Api.queryOf({ name })}`}`, bodyOf(plan, hash))
    .pipe(
      Effect.flatMap((response) => Effect.mapError(Api.readJson(Created)(response), toFailure)),
      Effect.tap(({ Warnings }) =>
        Effect.forEach(Warnings ?? [], (warning) => Effect.logWarning(`The container engine warns: ${warning}`))
      ),
      Effect.map(({ Id }) => Id),
      Effect.catchIf(
        (failure) => failure._tag === "Refused" && failure.status === 409 && name !== undefined,
        () => Effect.succeed(undefined)
      )
    )

/** Creates with an image that may have to be pulled first. */
const withImage = <A, R>(api: Api.Api, image: string, creation: Effect.Effect<A, Api.Failure, R>): Failing<A, R> =>
  creation.pipe(
    Effect.catchIf(
      (failure) => failure._tag === "Refused" && failure.status === 404,
      () => Effect.andThen(Effect.mapError(pull(api, image), toFailure), creation)
    ),
    Effect.mapError(Api.toError)
  )

/** Waits until the engine has removed a container. */
const waitUntilGone = (api: Api.Api, id: string): Failing<void> =>
  inspectThere(api, id).pipe(
    Effect.repeat({
      until: (container) => container === undefined,
      schedule: Schedule.spaced("50 millis"),
      times: 200
    }),
    Effect.asVoid
  )

/** Removes a container with all that runs in it. A missing container does not fail. */
export const remove = (api: Api.Api, id: string): Failing<void> =>
  api.send("DELETE", `/containers/${encodeURIComponent(id)}?force=1&v=1`).pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.void,
      onFailure: (failure) => {
        const status = failure._tag === "Refused" ? failure.status : undefined
        if (status === 404) return Effect.void
        // Its removal is in progress.
        return status === 409 ? waitUntilGone(api, id) : Effect.fail(Api.toError(failure))
      }
    })
  )

const start = (api: Api.Api, id: string) => Effect.asVoid(Api.call(api, "POST", `/containers/${id}/start`))
export const pause = (api: Api.Api, id: string) => Effect.asVoid(Api.call(api, "POST", `/containers/${id}/pause`))
export const resume = (api: Api.Api, id: string) => Effect.asVoid(Api.call(api, "POST", `/containers/${id}/unpause`))

/** Makes a container run that exists: it may be paused, or stopped. */
const wake = (api: Api.Api, id: string): Failing<void> =>
  Effect.flatMap(inspect(api, id), ({ State: { Status } }) =>
    Status === "running" ? Effect.void : Status === "paused" ? resume(api, id) : start(api, id)
  )

const removeQuietly = (api: Api.Api, id: string): Effect.Effect<void> =>
  Effect.catch(remove(api, id), (error) =>
    Effect.logWarning(`The container ${id} could not be removed: ${error.message}`)
  )

/** A container of its own, which ends with the scope, and with this process. */
const startTied = (api: Api.Api, plan: Plan, hash: string): Failing<StartedContainer, Scope.Scope> =>
  Effect.gen(function* () {
    const creation = Effect.acquireRelease(create(api, plan, undefined, hash), (newId) =>
      newId === undefined ? Effect.void : removeQuietly(api, newId)
    )
    const id = yield* withImage(api, plan.manifest.image, creation)
    if (id === undefined) return yield* Effect.fail(Api.fail("the container engine gave no container"))
    const query = Api.queryOf({ stream: "1", stdin: "1" })
    yield* Effect.mapError(holdOpen(api.socketPath, Api.pathOf(`/containers/${id}/attach?${query}`)), (cause) =>
      Api.fail("the input of the container could not be held open", cause)
    )
    yield* start(api, id)
    return { id, isNew: true }
  })

/** A name is taken before its container can be looked at, and free again if that can't start. */
const takenTime = { every: "200 millis", times: 150 } as const

/** The container of this plan: the one there is, or a new one. Two that come at once get the same. */
const startKept = (api: Api.Api, plan: Plan, hash: string): Failing<StartedContainer> => {
  const name = `deepagents-${hash.slice(0, 16)}`
  const creation = Effect.flatMap(create(api, plan, name, hash), (newId) =>
    newId === undefined
      ? Effect.succeed(undefined)
      : Effect.mapError(start(api, newId), toFailure).pipe(
          Effect.onError(() => removeQuietly(api, newId)),
          Effect.as(newId)
        )
  )
  const attempt = Effect.gen(function* () {
    const newId = yield* withImage(api, plan.manifest.image, Effect.uninterruptible(creation))
    if (newId !== undefined) return { id: newId, isNew: true }
    const container = yield* inspectThere(api, name)
    if (container === undefined) return undefined
    if (container.Config.Labels?.[labels.plan] !== hash) {
      return yield* Effect.fail(
        Api.fail(`the container ${name} was not made by this library: remove it (docker rm -f ${name})`)
      )
    }
    yield* wake(api, container.Id)
    return { id: container.Id, isNew: false }
  })
  return attempt.pipe(
    Effect.repeat({
      until: (started) => started !== undefined,
      schedule: Schedule.spaced(takenTime.every),
      times: takenTime.times
    }),
    Effect.flatMap((started) =>
      started === undefined
        ? Effect.fail(Api.fail(`the name ${name} is taken by a container that does not start: try again later`))
        : Effect.succeed(started)
    )
  )
}

/** Starts the container of a plan. */
export const open = (api: Api.Api, plan: Plan): Failing<StartedContainer, Scope.Scope> =>
  Effect.flatMap(sha256(JSON.stringify(plan)), (hash) =>
    plan.keep ? startKept(api, plan, hash) : startTied(api, plan, hash)
  )

const Committed = Schema.Struct({ Id: Schema.String })

/** Makes an image of a container's file system, and gives its id. */
export const commit = (api: Api.Api, id: string): Failing<string> =>
  api.send("POST", `/commit?${Api.queryOf({ container: id, pause: "1" })}`, { Labels: { [label]: "snapshot" } }).pipe(
    Effect.mapError(Api.toError),
    Effect.flatMap(Api.readJson(Committed)),
    Effect.map(({ Id }) => Id)
  )

/** The address on this machine of a port of the container. */
export const addressOf = (api: Api.Api, id: string, port: number): Failing<string | undefined> =>
  Effect.map(inspect(api, id), ({ NetworkSettings: { Ports } }) => {
    const [binding] = Ports?.[`${port}/tcp`] ?? []
    return binding === undefined ? undefined : `${binding.HostIp}:${binding.HostPort}`
  })

/** A container of this library. */
export interface Entry {
  readonly id: string
  readonly image: string
  /** The folder that is mounted in it. */
  readonly folder: string | undefined
  readonly state: "running" | "paused" | "stopped"
  /** When it was created, in milliseconds since 1970. */
  readonly createdAt: number
}

const stateOf = (state: string): Entry["state"] => (state === "running" || state === "paused" ? state : "stopped")

/** Lists the containers of this library, the newest first. */
export const list = (api: Api.Api): Failing<ReadonlyArray<Entry>> => {
  const filters = JSON.stringify({ label: [`${label}=sandbox`] })
  return Effect.flatMap(
    Api.call(api, "GET", `/containers/json?${Api.queryOf({ all: "1", filters })}`),
    Api.readJson(Listed)
  ).pipe(
    Effect.map((containers) =>
      containers.map(({ Created: created, Id, Image, Labels, State }) => ({
        id: Id,
        image: Image,
        folder: Labels?.[labels.folder],
        state: stateOf(State),
        createdAt: created * 1000
      }))
    )
  )
}
