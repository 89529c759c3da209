/**
 * Layers whose options come from the configuration.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Config, ConfigProvider, Effect, Layer } from "effect"
import { Backend, Sandbox } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import * as AgentHome from "effect-deepagents/backends/AgentHome"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"

const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const made = mkdtempSync(join(tmpdir(), "configured-"))
    writeFileSync(join(made, "a.md"), "here")
    return made
  }),
  (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
)

const configured = (env: { readonly [name: string]: string }) =>
  Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))

const readA = Backend.Backend.use((backend) => backend.read("/a.md"))

describe("layerConfig", () => {
  it.live("reads a folder from the configuration; undefined counts as absent", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const layer = FilesystemBackend.layerConfig({ root: Config.String("ROOT"), ripgrep: undefined })
      expect(yield* readA.pipe(Effect.provide(layer), configured({ ROOT: root }))).toMatchObject({ text: "here" })
      const missing = yield* Effect.flip(readA.pipe(Effect.provide(layer), configured({})))
      expect(missing._tag).toBe("ConfigError")
    })
  )

  it.live("gives a shell its folder and its limits", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const layer = LocalShell.layerConfig({
        root: Config.String("ROOT"),
        outputLimit: Config.Int("LIMIT"),
        shell: undefined
      })
      const run = Sandbox.Sandbox.use((sandbox) => sandbox.execute("cat a.md; echo 123456789"))
      expect(yield* run.pipe(Effect.provide(layer), configured({ ROOT: root, LIMIT: "4" }))).toMatchObject({
        exitCode: 0,
        truncated: true
      })
    })
  )

  it.live("finds the home of an agent", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const layer = AgentHome.layerConfig({
        agentId: Config.String("AGENT"),
        folder: Config.String("HOMES"),
        files: MemoryBackend.layer()
      })
      const written = Backend.Backend.use((backend) => backend.write(`${AgentHome.mountedAt}/n.md`, "kept"))
      yield* written.pipe(Effect.provide(layer), configured({ AGENT: "ada", HOMES: root }))
      const direct = FilesystemBackend.layer({ root: join(root, "ada") })
      const kept = Backend.Backend.use((backend) => backend.read("/n.md"))
      expect(yield* Effect.provide(kept, direct)).toMatchObject({ text: "kept" })
      expect(Layer.isLayer(layer)).toBe(true)
    })
  )
})
