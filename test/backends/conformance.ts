/** Common parts of the conformance suite's subjects. */
import { describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { isFull, sampled } from "../scale.ts"
import * as subjects from "./subjects.ts"

const { absent } = BackendConformance

export const tenMebibytes = 10 * 1024 * 1024
export const elsewhere = absent("what this is made of is held to it")

/** For a layer with no files of this machine behind it. */
export const inMemory = (count?: number) => {
  const none = absent("there are no files of this machine behind it")
  return {
    host: none,
    again: absent("the files are this layer's own"),
    counter: none,
    deny: none,
    fillDisk: none,
    huge: none,
    maxFileSize: tenMebibytes,
    manyFiles: count === undefined ? elsewhere : { count },
    atomicWrites: true as const,
    distinctNames: true as const
  }
}

/** For a layer that has the files of a folder. */
export const onDisk = {
  host: subjects.host,
  again: subjects.again,
  counter: subjects.counter,
  deny: subjects.deny,
  fillDisk: absent("this takes a disk of its own: see the small disk"),
  huge: isFull ? subjects.huge : absent("100 MB are of a long run"),
  maxFileSize: absent("the limit is 100 MiB: see the small disk"),
  manyFiles: { count: isFull ? 20_000 : 2_000, plant: subjects.plant },
  atomicWrites: true as const,
  distinctNames: true as const
}

/** A backend made of others, without own work for large files or folders. */
export const onDiskAgain = { ...onDisk, counter: elsewhere, huge: elsewhere, manyFiles: elsewhere }

export const holds = <E>(name: string, checks: ReadonlyArray<BackendConformance.Check<E, never>>) =>
  describe(name, () => {
    for (const check of sampled(checks))
      (check.absent === undefined ? it.live : it.live.skip)(check.name, () => check.run, 180_000)
  })

export const inFolder = <A, E>(layer: (root: string) => Layer.Layer<A, E>) =>
  Layer.unwrap(Effect.map(subjects.Folder, ({ root }) => layer(root))).pipe(Layer.provideMerge(subjects.folder))

export const folder = (ripgrep: string | false) => (root: string) => FilesystemBackend.layer({ root, ripgrep })
