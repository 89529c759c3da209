/**
 * Every layer of files is held to the one suite.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import { Context, Effect, Layer } from "effect"
import { Backend } from "effect-deepagents"
import { CompositeBackend, MemoryBackend, Permissions, StoreBackend } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as HostFiles from "effect-deepagents/backends/HostFiles"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { KeyValueStore } from "effect/persistence"
import { layerRootedAt } from "../../src/testing/conformance/internal/backend/rooted.ts"
import { elsewhere, folder, holds, inFolder, inMemory, onDisk, onDiskAgain } from "./conformance.ts"
import { inRun } from "./run.ts"
import * as subjects from "./subjects.ts"

const { absent } = BackendConformance

const all = { operations: ["read", "write"], paths: ["/**"], ruling: "allow" } as const
const allowed = Permissions.layer({ rules: [all], default: "refuse" })

/** A composite that has this at a path, seen from there. */
const mounted = <E, R>(layer: Layer.Layer<Backend.Backend, E, R>) =>
  layerRootedAt("/mounted/here").pipe(
    Layer.provide(CompositeBackend.layer({ default: MemoryBackend.layer(), routes: { "/mounted/here": layer } }))
  )

/** This behind rules, below everything else of a composite, and mounted in another one. */
const wrapped = <E, R>(layer: Layer.Layer<Backend.Backend, E, R>) =>
  allowed.pipe(Layer.provide(CompositeBackend.layer({ default: mounted(layer), routes: {} })))

const store = StoreBackend.layer({ namespace: ["tenants", "one"] })
const stored = store.pipe(Layer.provide(KeyValueStore.layerMemory))
const storedInFolder = (root: string) =>
  store.pipe(Layer.provide(KeyValueStore.layerFileSystem(root)), Layer.provide(NodeServices.layer))

holds("memory", BackendConformance.suite({ layer: MemoryBackend.layer(), ...inMemory(20_000) }))

describe("memory in the state of a run", () => {
  const again = Effect.map(Layer.build(Layer.fresh(MemoryBackend.layerState)), Context.get(Backend.Backend))
  for (const check of BackendConformance.suite({ layer: MemoryBackend.layerState, ...inMemory(1000), again }))
    (check.absent === undefined ? it.live : it.live.skip)(check.name, () => inRun(check.run), 60_000)
})

holds(
  "a store in memory",
  BackendConformance.suite({
    layer: store.pipe(Layer.provideMerge(KeyValueStore.layerMemory)),
    ...inMemory(2000),
    again: StoreBackend.make({ namespace: ["tenants", "one"] })
  })
)
holds(
  "a store in files",
  BackendConformance.suite({
    layer: inFolder(storedInFolder),
    ...inMemory(),
    atomicWrites: absent("this store overwrites in place")
  })
)
holds(
  "a folder, with ripgrep",
  BackendConformance.suite({ layer: inFolder(folder(rgPath)), ...onDisk, huge: elsewhere })
)
holds(
  "a folder, without ripgrep",
  BackendConformance.suite({
    layer: inFolder(folder(false)),
    ...onDisk,
    manyFiles: { ...onDisk.manyFiles, count: 2000 }
  })
)
holds(
  "folders of the machine",
  BackendConformance.suite({
    layer: inFolder((root) => HostFiles.layer({ cwd: root, ripgrep: false })),
    ...onDisk,
    manyFiles: { ...onDisk.manyFiles, count: 2000 }
  })
)
// Rules and composites hand on to the layer below. The suite holds for all of them together.
holds("memory, mounted and allowed", BackendConformance.suite({ layer: wrapped(MemoryBackend.layer()), ...inMemory() }))
holds("a store, mounted and allowed", BackendConformance.suite({ layer: wrapped(stored), ...inMemory() }))
holds(
  "a folder, mounted and allowed",
  BackendConformance.suite({ layer: inFolder((root) => wrapped(folder(false)(root))), ...onDiskAgain })
)

describe("a small disk", () => {
  const layer = Layer.unwrap(
    Effect.map(subjects.Folder, ({ root }) => FilesystemBackend.layer({ root, ripgrep: false, maxFileSize: 1_000_000 }))
  ).pipe(Layer.provideMerge(subjects.smallDisk))
  const none = absent("only what needs a disk of its own")
  const only = { host: none, deny: none, huge: none, manyFiles: none, distinctNames: none, atomicWrites: none }
  const checks = BackendConformance.suite({ layer, ...only, maxFileSize: 1_000_000, fillDisk: subjects.fillDisk })
  for (const check of checks.filter(({ name }) => /over the limit|disk that is full/.test(name)))
    it.live.skipIf(!subjects.canMount)(check.name, () => check.run, 60_000)
})
