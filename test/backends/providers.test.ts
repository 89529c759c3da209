import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Layer, Redacted, Stream } from "effect"
import { type Backend, type BackendError, Sandbox } from "effect-deepagents"
import * as DaytonaSandbox from "effect-deepagents/backends/DaytonaSandbox"
import * as E2bSandbox from "effect-deepagents/backends/E2bSandbox"
import * as ModalSandbox from "effect-deepagents/backends/ModalSandbox"
import * as RunloopSandbox from "effect-deepagents/backends/RunloopSandbox"
import * as VercelSandbox from "effect-deepagents/backends/VercelSandbox"
import { vi } from "vitest"
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
    create = async (params: unknown) => machines.daytona(world.note("create", this.options, params))
    get = async (id: string) => ({ ...machines.daytona(world.note("get", id), id), state: "stopped" })
    start = async ({ id }: { readonly id: string }) => void world.note("start", id)
    delete = async ({ id }: { readonly id: string }) => void world.note("end", id)
  }
}))
vi.mock("e2b", () => {
  const ending = (machine: ReturnType<typeof machines.e2b>) => ({
    ...machine,
    kill: async () => void world.note("end", machine.sandboxId)
  })
  return {
    Sandbox: {
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
    images = { fromRegistry: (tag: string) => ({ tag }) }
    sandboxes = {
      create: async (app: unknown, image: unknown, params: unknown) =>
        this.ending(machines.modal(world.note("create", this.options, app, image, params))),
      fromId: async (id: string) => this.ending(machines.modal(world.note("get", id), id))
    }
    ending = (machine: ReturnType<typeof machines.modal>) => ({
      ...machine,
      terminate: async () => void world.note("end", machine.sandboxId)
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
      shutdown: async () => void world.note("end", machine.id)
    })
    devbox = {
      create: async (params: unknown) => this.ending(machines.runloop(world.note("create", this.options, params))),
      fromId: (id: string) => this.ending(machines.runloop(world.note("get", id), id))
    }
  }
}))
vi.mock("@vercel/sandbox", () => {
  const ending = (machine: ReturnType<typeof machines.vercel>) => ({
    ...machine,
    stop: async () => void world.note("end", machine.name)
  })
  return {
    Sandbox: {
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
}

const key = "very-secret-key-of-a-provider"

const providers: ReadonlyArray<Provider> = [
  {
    name: "Daytona",
    id: "daytona-1",
    streams: false,
    from: (shell, root) => DaytonaSandbox.fromSandbox(machines.daytona(shell), { root }),
    layer: (apiKey, options) => DaytonaSandbox.layer({ apiKey, create: { language: "typescript" }, ...options }),
    configured: (root) => DaytonaSandbox.layerConfig({ root, apiKey: undefined }),
    env: { DAYTONA_API_KEY: key }
  },
  {
    name: "E2B",
    id: "e2b-1",
    streams: true,
    from: (shell, root) => E2bSandbox.fromSandbox(machines.e2b(shell), { root }),
    layer: (apiKey, options) => E2bSandbox.layer({ apiKey, template: "typescript", ...options }),
    configured: (root) => E2bSandbox.layerConfig({ root, apiKey: undefined }),
    env: { E2B_API_KEY: key }
  },
  {
    name: "Modal",
    id: "modal-1",
    streams: true,
    from: (shell, root) => ModalSandbox.fromSandbox(machines.modal(shell), { root }),
    layer: (tokenSecret, options) =>
      ModalSandbox.layer({ tokenId: Redacted.make("ak-1"), tokenSecret, image: "typescript", ...options }),
    configured: (root) => ModalSandbox.layerConfig({ root, tokenId: undefined, tokenSecret: undefined }),
    env: { MODAL_TOKEN_ID: "ak-1", MODAL_TOKEN_SECRET: key }
  },
  {
    name: "Runloop",
    id: "runloop-1",
    streams: false,
    from: (shell, root) => RunloopSandbox.fromSandbox(machines.runloop(shell), { root }),
    layer: (apiKey, options) => RunloopSandbox.layer({ apiKey, create: { blueprint_name: "typescript" }, ...options }),
    configured: (root) => RunloopSandbox.layerConfig({ root, apiKey: undefined }),
    env: { RUNLOOP_API_KEY: key }
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
    env: { VERCEL_TOKEN: key, VERCEL_TEAM_ID: "t", VERCEL_PROJECT_ID: "p" }
  }
]

const worldly = Effect.gen(function* () {
  const shell = yield* LocalShell.make()
  world.log.length = 0
  world.fail = undefined
  world.shell = shell
  return { shell, root: join(shell.folder, "root") }
})

for (const { configured, env, from, id, layer, name, streams } of providers) {
  describe(`a sandbox of ${name}`, () => {
    it.live(
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
  })
}
