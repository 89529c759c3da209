import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Layer, Redacted, type Scope, Stream } from "effect"
import { type Backend, type BackendError, Sandbox } from "effect-deepagents"
import type { Manifest } from "effect-deepagents/backends"
import * as DaytonaSandbox from "effect-deepagents/backends/DaytonaSandbox"
import * as E2bSandbox from "effect-deepagents/backends/E2bSandbox"
import * as ModalSandbox from "effect-deepagents/backends/ModalSandbox"
import * as RunloopSandbox from "effect-deepagents/backends/RunloopSandbox"
import * as VercelSandbox from "effect-deepagents/backends/VercelSandbox"
import { vi } from "vitest"
import { isFull } from "../scale.ts"
import * as LocalShell from "./fixtures/localShell.ts"
import * as machines from "./fixtures/machines.ts"

/** The requests to the SDKs, and the shell behind their objects. */
const world = vi.hoisted(() => ({
  log: [] as Array<string>,
  shell: undefined as LocalShell.LocalShell | undefined,
  fail: undefined as Error | undefined,
  note: (what: string, ...details: ReadonlyArray<unknown>) => {
    world.log.push([what, ...details.map((detail) => JSON.stringify(detail))].join(" "))
    if (world.fail !== undefined) throw world.fail
    if (world.shell === undefined) throw new Error("no shell")
    return world.shell
  }
}))

vi.mock("@daytonaio/sdk", () => ({
  Daytona: class {
    readonly options: unknown
    constructor(options: unknown) {
      this.options = options
    }
    create = async (params: unknown) => ({
      ...machines.daytona(world.note("create", this.options, params)),
      createSnapshot: async (name: string) => void world.note("snapshot", name),
      getSignedPreviewUrl: async (port: number) => ({ url: `https://${port}-signed.proxy.daytona.works` })
    })
    get = async (id: string) => ({ ...machines.daytona(world.note("get", id), id), state: "stopped" })
    start = async ({ id }: { readonly id: string }) => void world.note("start", id)
    delete = async ({ id }: { readonly id: string }) => void world.note("end", id)
    stop = async ({ id }: { readonly id: string }) => void world.note("pause", id)
    list = async function* () {
      yield { id: "daytona-1", state: "stopped" }
    }
  }
}))
vi.mock("e2b", () => {
  const ending = (machine: ReturnType<typeof machines.e2b>) => ({
    ...machine,
    kill: async () => void world.note("end", machine.sandboxId),
    createSnapshot: async () => ({ snapshotId: "team/deepagents:default", names: [world.note("snapshot")] }),
    pause: async () => world.note("pause", machine.sandboxId) !== undefined,
    connect: async () => world.note("resume", machine.sandboxId),
    getHost: (port: number) => `${port}-${machine.sandboxId}.e2b.app`
  })
  return {
    Sandbox: {
      list: () => {
        const pages = [[{ sandboxId: "e2b-1", state: "running" }], [{ sandboxId: "e2b-2", state: "paused" }]]
        return {
          get hasNext() {
            return pages.length > 0
          },
          nextItems: async () => pages.shift()
        }
      },
      create: async (...args: ReadonlyArray<unknown>) => ending(machines.e2b(world.note("create", ...args))),
      connect: async (id: string, options: unknown) => ending(machines.e2b(world.note("get", id, options), id))
    }
  }
})
vi.mock("modal", () => ({
  ModalClient: class {
    readonly options: unknown
    constructor(options: unknown) {
      this.options = options
    }
    apps = { fromName: async (name: string) => ({ name }) }
    images = { fromRegistry: (tag: string) => ({ tag }), fromId: async (imageId: string) => ({ imageId }) }
    sandboxes = {
      create: async (app: unknown, image: unknown, params: unknown) =>
        this.ending(machines.modal(world.note("create", this.options, app, image, params))),
      fromId: async (id: string) => this.ending(machines.modal(world.note("get", id), id)),
      list: async function* () {
        yield { sandboxId: "modal-1" }
      }
    }
    ending = (machine: ReturnType<typeof machines.modal>) => ({
      ...machine,
      terminate: async () => void world.note("end", machine.sandboxId),
      snapshotFilesystem: async () => ({ imageId: "im-1", shell: world.note("snapshot") }),
      tunnels: async () => ({ 3000: { url: "https://tunnel.modal.host" } })
    })
    close = () => void world.log.push("close")
  }
}))
vi.mock("@runloop/api-client", () => ({
  RunloopSDK: class {
    readonly options: unknown
    constructor(options: unknown) {
      this.options = options
    }
    ending = (machine: ReturnType<typeof machines.runloop>) => ({
      ...machine,
      shutdown: async () => void world.note("end", machine.id),
      snapshotDisk: async () => ({ id: "snp_1", shell: world.note("snapshot") }),
      suspend: async () => void world.note("pause", machine.id),
      awaitSuspended: async () => void world.log.push("suspended"),
      resume: async () => void world.note("resume", machine.id),
      getTunnelUrl: async (port: number) => `https://${port}-key.tunnel.runloop.ai`
    })
    api = {
      devboxes: {
        list: async function* ({ status }: { readonly status: string }) {
          yield { id: `runloop-${status}` }
        }
      }
    }
    devbox = {
      create: async (params: unknown) => this.ending(machines.runloop(world.note("create", this.options, params))),
      fromId: (id: string) => this.ending(machines.runloop(world.note("get", id), id))
    }
  }
}))
vi.mock("@vercel/sandbox", () => {
  const ending = (machine: ReturnType<typeof machines.vercel>) => ({
    ...machine,
    delete: async () => void world.note("end", machine.name),
    stop: async () => void world.note("pause", machine.name),
    snapshot: async () => ({ snapshotId: "snap_1", shell: world.note("snapshot") }),
    domain: (port: number) => `https://${port}.vercel.run`
  })
  return {
    Sandbox: {
      list: async () => ({ toArray: async () => [{ name: "vercel-1", status: "stopped" }] }),
      create: async (params: unknown) => ending(machines.vercel(world.note("create", params))),
      get: async (params: { readonly name: string }) => ending(machines.vercel(world.note("get", params), params.name))
    }
  }
})

type Provided<E> = Layer.Layer<Sandbox.Sandbox | Backend.Backend, E>
type Lifetime = { readonly root: string; readonly sandboxId?: string; readonly keep?: boolean }
interface Provider {
  readonly name: string
  readonly id: string
  readonly streams: boolean
  readonly from: (
    shell: LocalShell.LocalShell,
    root: string
  ) => Effect.Effect<Sandbox.Service, BackendError.BackendError>
  readonly layer: (key: Redacted.Redacted, options: Lifetime) => Provided<BackendError.BackendError>
  readonly configured: (root: string) => Provided<unknown>
  readonly env: Record<string, string>
  /** A machine from a manifest, in full. */
  readonly make: (manifest: object, options: Lifetime) => Effect.Effect<Machine, BackendError.BackendError, Scope.Scope>
  readonly list: Effect.Effect<ReadonlyArray<Manifest.Entry>, BackendError.BackendError>
  /** The fields that the manifest has here beside those of all, and the request that is made of it. */
  readonly manifest: object
  readonly request: object
  readonly refused: { readonly [field: string]: object }
  /** The request from the image that `snapshot` gives. */
  readonly restored: string
  readonly address: string
  readonly entries: ReadonlyArray<Manifest.Entry>
}
type Machine = Sandbox.Service & Pick<Manifest.Operations, "snapshot"> & Partial<Manifest.Operations>

const key = "very-secret-key-of-a-provider"

const providers: ReadonlyArray<Provider> = [
  {
    name: "Daytona",
    id: "daytona-1",
    streams: false,
    from: (shell, root) => DaytonaSandbox.fromSandbox(machines.daytona(shell), { root }),
    layer: (apiKey, options) => DaytonaSandbox.layer({ apiKey, create: { language: "typescript" }, ...options }),
    configured: (root) => DaytonaSandbox.layerConfig({ root, apiKey: undefined }),
    env: { DAYTONA_API_KEY: key },
    make: (manifest, options) => DaytonaSandbox.make({ manifest: manifest as DaytonaSandbox.Manifest, ...options }),
    list: DaytonaSandbox.list(),
    manifest: { secrets: ["NPM_TOKEN"], network: "open", ports: [3000], limits: { memoryBytes: 2 ** 32, cpus: 2 } },
    request: {
      networkBlockAll: false,
      envVars: { CI: "1" },
      secrets: { NPM_TOKEN: "NPM_TOKEN" },
      image: "node:24",
      resources: { cpu: 2, memory: 4 }
    },
    refused: {
      "limits.memoryBytes": { limits: { memoryBytes: 1_000_000_000 } },
      "limits.cpus": { limits: { cpus: 0.5 } },
      "limits.processes": { limits: { processes: 5 } },
      limits: { image: "snapshot://deepagents-1", limits: { cpus: 2 } },
      network: { network: { name: "net" } }
    },
    restored: '"networkBlockAll":true,"snapshot":"deepagents-',
    address: "https://3000-signed.proxy.daytona.works",
    entries: [{ id: "daytona-1", state: "stopped" }]
  },
  {
    name: "E2B",
    id: "e2b-1",
    streams: true,
    from: (shell, root) => E2bSandbox.fromSandbox(machines.e2b(shell), { root }),
    layer: (apiKey, options) => E2bSandbox.layer({ apiKey, template: "typescript", ...options }),
    configured: (root) => E2bSandbox.layerConfig({ root, apiKey: undefined }),
    env: { E2B_API_KEY: key },
    make: (manifest, options) => E2bSandbox.make({ manifest: manifest as E2bSandbox.Manifest, ...options }),
    list: E2bSandbox.list(),
    manifest: { network: "open", ports: [3000] },
    request: { envs: { CI: "1" }, allowInternetAccess: true },
    refused: { secrets: { secrets: ["KEY"] }, limits: { limits: { cpus: 2 } }, network: { network: { name: "net" } } },
    restored: '"team/deepagents:default" {"allowInternetAccess":false}',
    address: "https://3000-e2b-1.e2b.app",
    entries: [
      { id: "e2b-1", state: "running" },
      { id: "e2b-2", state: "paused" }
    ]
  },
  {
    name: "Modal",
    id: "modal-1",
    streams: true,
    from: (shell, root) => ModalSandbox.fromSandbox(machines.modal(shell), { root }),
    layer: (tokenSecret, options) =>
      ModalSandbox.layer({ tokenId: Redacted.make("ak-1"), tokenSecret, image: "typescript", ...options }),
    configured: (root) => ModalSandbox.layerConfig({ root, tokenId: undefined, tokenSecret: undefined }),
    env: { MODAL_TOKEN_ID: "ak-1", MODAL_TOKEN_SECRET: key },
    make: (manifest, options) => ModalSandbox.make({ manifest: manifest as ModalSandbox.Manifest, ...options }),
    list: ModalSandbox.list(),
    manifest: { network: "open", ports: [3000], limits: { memoryBytes: 2 ** 29, cpus: 0.5 } },
    request: {
      blockNetwork: false,
      env: { CI: "1" },
      encryptedPorts: [3000],
      memoryMiB: 512,
      memoryLimitMiB: 512,
      cpu: 0.5,
      cpuLimit: 0.5
    },
    refused: { secrets: { secrets: ["KEY"] }, "limits.memoryBytes": { limits: { memoryBytes: 1_000_000 } } },
    restored: '{"imageId":"im-1"} {"blockNetwork":true}',
    address: "https://tunnel.modal.host",
    entries: [{ id: "modal-1", state: "running" }]
  },
  {
    name: "Runloop",
    id: "runloop-1",
    streams: false,
    from: (shell, root) => RunloopSandbox.fromSandbox(machines.runloop(shell), { root }),
    layer: (apiKey, options) => RunloopSandbox.layer({ apiKey, create: { blueprint_name: "typescript" }, ...options }),
    configured: (root) => RunloopSandbox.layerConfig({ root, apiKey: undefined }),
    env: { RUNLOOP_API_KEY: key },
    make: (manifest, options) =>
      RunloopSandbox.make({ manifest: { network: "open", ...manifest } as RunloopSandbox.Manifest, ...options }),
    list: RunloopSandbox.list(),
    manifest: { network: { name: "np_1" }, ports: [3000], limits: { memoryBytes: 2 ** 32, cpus: 2 } },
    request: {
      blueprint_name: "node:24",
      environment_variables: { CI: "1" },
      tunnel: { auth_mode: "open" },
      launch_parameters: {
        network_policy_id: "np_1",
        resource_size_request: "CUSTOM_SIZE",
        custom_cpu_cores: 2,
        custom_gb_memory: 4
      }
    },
    refused: {
      secrets: { secrets: ["KEY"] },
      "limits.memoryBytes": { limits: { cpus: 2 } },
      network: { network: "none" }
    },
    restored: '{"snapshot_id":"snp_1","launch_parameters":{}}',
    address: "https://3000-key.tunnel.runloop.ai",
    entries: [
      { id: "runloop-running", state: "running" },
      { id: "runloop-suspended", state: "suspended" }
    ]
  },
  {
    name: "Vercel",
    id: "vercel-1",
    streams: true,
    from: (shell, root) => VercelSandbox.fromSandbox(machines.vercel(shell), { root }),
    layer: (token, options) =>
      VercelSandbox.layer({ token, teamId: "t", projectId: "p", create: { image: "typescript" }, ...options }),
    configured: (root) =>
      VercelSandbox.layerConfig({ root, token: undefined, teamId: undefined, projectId: undefined }),
    env: { VERCEL_TOKEN: key, VERCEL_TEAM_ID: "t", VERCEL_PROJECT_ID: "p" },
    make: (manifest, options) => VercelSandbox.make({ manifest: manifest as VercelSandbox.Manifest, ...options }),
    list: VercelSandbox.list(),
    manifest: { network: "open", ports: [3000], limits: { cpus: 2 } },
    request: {
      networkPolicy: "allow-all",
      env: { CI: "1" },
      ports: [3000],
      resources: { vcpus: 2 },
      image: "node:24"
    },
    refused: { "limits.memoryBytes": { limits: { memoryBytes: 2 ** 32 } }, secrets: { secrets: ["KEY"] } },
    restored: '{"networkPolicy":"deny-all","source":{"type":"snapshot","snapshotId":"snap_1"}}',
    address: "https://3000.vercel.run",
    entries: [{ id: "vercel-1", state: "stopped" }]
  }
]

const worldly = Effect.gen(function* () {
  const shell = yield* LocalShell.make()
  world.log.length = 0
  world.fail = undefined
  world.shell = shell
  return { shell, root: join(shell.folder, "root") }
})

/** A repository of one file in the folder of the shell. */
const plantRepository = (folder: string) => {
  const path = join(folder, "upstream")
  execFileSync("git", ["init", "-q", path])
  writeFileSync(join(path, "here.txt"), "cloned\n")
  const own = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
  execFileSync("git", ["-C", path, "add", "."])
  execFileSync("git", ["-C", path, ...own, "commit", "-qm", "one"])
  execFileSync("git", ["-C", path, "tag", "v1"])
  return path
}

for (const provider of providers) {
  const { configured, env, from, id, layer, name, streams } = provider
  describe(`a sandbox of ${name}`, () => {
    // A short run has it of the first one and of the last one.
    it.live.runIf(isFull || provider === providers[0] || provider === providers.at(-1))(
      "works as any sandbox does",
      () =>
        Effect.gen(function* () {
          const { root, shell } = yield* worldly
          const sandbox = yield* from(shell, root)
          expect(sandbox.id).toBe(id)
          expect(sandbox.reaches("/")).toBe(true)
          const large = new Uint8Array(600_000).map((_, index) => index % 251)
          const uploaded = yield* sandbox.upload([
            { path: "/a b/large.bin", content: large },
            { path: "/small.txt", content: new TextEncoder().encode("ä 'x'\n") }
          ])
          expect(uploaded.map(({ ok }) => ok)).toEqual([true, true])
          expect(shell.uploads.length).toBe(1)
          const [back] = yield* sandbox.download(["/a b/large.bin"])
          expect(back?.ok === true && Buffer.compare(back.value, large)).toBe(0)
          expect(shell.downloads.length).toBe(1)
          yield* sandbox.edit("/small.txt", [{ old: "ä", new: "é" }])
          expect((yield* sandbox.execute("cat small.txt; cat; exit 4", { stdin: "in" })).output).toBe("é 'x'\nin")
          expect(yield* sandbox.execute("echo out; echo err >&2; exit 4")).toEqual({
            output: "out\nerr\n",
            exitCode: 4,
            truncated: false
          })
          const events = yield* Stream.runCollect(sandbox.executeStream("echo out; echo err >&2; exit 4"))
          const textOf = (channel: string) =>
            events
              .flatMap((event) => (event._tag === "Output" && event.channel === channel ? [event.text] : []))
              .join("")
          expect([textOf("stdout"), textOf("stderr")]).toEqual(streams ? ["out\n", "err\n"] : ["out\nerr\n", ""])
          expect(events.at(-1)).toEqual({ _tag: "Exited", exitCode: 4, truncated: false })
          const late = yield* Effect.flip(sandbox.execute("echo begun; sleep 20", { timeout: "1 second" }))
          expect(late.reason).toEqual({ _tag: "TimedOut", limit: 1_000 })
          expect(late.detail).toContain("begun")
        }).pipe(Effect.scoped),
      30_000
    )

    it.live("lives as long as its layer, unless it is kept, or was there before", () =>
      Effect.gen(function* () {
        const { root } = yield* worldly
        const secret = Redacted.make(key)
        const use = (options: Omit<Lifetime, "root">) =>
          Sandbox.Sandbox.use((sandbox) => sandbox.execute("echo hi")).pipe(
            Effect.provide(Layer.fresh(layer(secret, { root, ...options }))),
            Effect.map(({ output }) => {
              const log = world.log.splice(0).filter((line) => line !== "close")
              return { output, calls: log.map((line) => line.split(" ")[0]), log: log.join("\n") }
            })
          )
        const whole = yield* use({})
        expect(whole.calls).toEqual(["create", "end"])
        expect(whole.output).toBe("hi\n")
        expect(whole.log).toContain(key)
        expect(whole.log).toContain("typescript")
        expect((yield* use({ keep: true })).calls).toEqual(["create"])
        const again = yield* use({ sandboxId: "other" })
        expect(again.calls[0]).toBe("get")
        expect(again.calls).not.toContain("end")
        expect(again.log).toContain("other")
        expect((yield* use({ sandboxId: "other", keep: false })).log).toMatch(/end "other"$/)
      }).pipe(Effect.scoped)
    )

    it.live("reads its keys from the configuration", () =>
      Effect.gen(function* () {
        const { root } = yield* worldly
        const withEnv = (values: Record<string, string>) =>
          Sandbox.Sandbox.use((sandbox) => sandbox.execute("echo hi")).pipe(
            Effect.provide(Layer.fresh(configured(root))),
            Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(values))
          )
        yield* withEnv(env)
        expect(world.log[0]).toContain(key)
        expect(Exit.isFailure(yield* Effect.exit(withEnv({})))).toBe(true)
      }).pipe(Effect.scoped)
    )

    it.live("no failure has a key in it", () =>
      Effect.gen(function* () {
        const { root } = yield* worldly
        world.fail = Object.assign(new Error(`401: the key ${key} is wrong`), {
          config: { headers: { Authorization: `Bearer ${key}` } }
        })
        const error = yield* Effect.flip(Effect.scoped(Layer.build(layer(Redacted.make(key), { root }))))
        expect(error.reason._tag).toBe("Unavailable")
        expect(error.message).toContain(`${name}: Error: 401: the key [hidden] is wrong`)
        const { inspect } = yield* Effect.promise(() => import("node:util"))
        expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(key)
      }).pipe(Effect.scoped)
    )

    it.live("is made from a manifest, and refuses what the provider can't do by the name of the field", () =>
      Effect.gen(function* () {
        const { root, shell } = yield* worldly
        const image = "node:24"
        yield* Effect.gen(function* () {
          const box = yield* provider.make(
            {
              image,
              environment: { CI: "1" },
              files: { "/notes/a.md": "# Notes\n" },
              repositories: [{ url: plantRepository(shell.folder), path: "/project", ref: "v1" }],
              ...provider.manifest
            },
            { root }
          )
          expect(world.log[0]).toContain(JSON.stringify(provider.request))
          expect(world.log[0]).toContain(image)
          const seen = yield* box.execute("cat notes/a.md project/here.txt")
          expect(seen.output).toBe("# Notes\ncloned\n")
        }).pipe(Effect.scoped)
        world.log.length = 0
        for (const [field, bad] of Object.entries(provider.refused)) {
          const error = yield* Effect.flip(Effect.scoped(provider.make({ image, ...bad }, { root })))
          expect([field, error.reason._tag]).toEqual([field, "Unsupported"])
          expect(error.message.toLowerCase()).toContain(name.toLowerCase())
          expect(error.message).toContain(`manifest.${field}`)
        }
        const closed = yield* Effect.flip(
          Effect.scoped(provider.make({ image, ports: [1], network: "none" }, { root }))
        )
        expect(closed.message).toMatch(/manifest\.(ports|network)/)
        // Nothing was made.
        expect(world.log.filter((line) => line !== "close")).toEqual([])
      }).pipe(Effect.scoped)
    )

    it.live("is copied, paused, resumed, addressed and listed as far as the provider can", () =>
      Effect.gen(function* () {
        const { root } = yield* worldly
        const box = yield* provider.make({ image: "node:24", ...provider.manifest }, { root })
        const image = yield* box.snapshot
        expect(world.log.at(-1)).toMatch(/^snapshot/)
        world.log.length = 0
        yield* Effect.scoped(provider.make({ image }, { root }))
        expect(world.log[0]).toContain(provider.restored)
        world.log.length = 0
        if (box.pause !== undefined) yield* box.pause
        if (box.resume !== undefined) yield* box.resume
        const calls = world.log.map((line) => line.split(" ")[0])
        expect(calls.join(" ")).toMatch(name === "Modal" ? /^$/ : /^pause (suspended )?(resume|start|get)$/)
        expect(yield* box.address?.(3000) ?? Effect.void).toBe(provider.address)
        expect(yield* provider.list).toEqual(provider.entries)
      }).pipe(Effect.scoped)
    )

    it.live("is not kept if it could not be set up", () =>
      Effect.gen(function* () {
        const { root } = yield* worldly
        const manifest = { image: "node:24", repositories: [{ url: "/nowhere/at/all", path: "/p" }] }
        const error = yield* Effect.flip(Effect.scoped(provider.make(manifest, { root, keep: true })))
        expect(error.message).toContain("/nowhere/at/all could not be cloned")
        expect(world.log.filter((line) => line !== "close").at(-1)).toMatch(/^end/)
      }).pipe(Effect.scoped)
    )
  })
}
