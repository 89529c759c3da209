/** Places whose turns are recorded: a folder with its files, commands and stores. */
import * as fs from "node:fs"
import * as os from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Backend, type Sandbox } from "effect-deepagents"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { MemorySessions } from "effect-deepagents/sessions"
import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
import { make } from "./edits.ts"

/** A folder inside of another one, with a neighbour to which its links lead. */
export const aFolder = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(join(os.tmpdir(), "checkpoints-")))),
    (outer) => Effect.sync(() => fs.rmSync(outer, { recursive: true, force: true }))
  ),
  (outer) => {
    const folder = join(outer, "folder")
    fs.mkdirSync(folder)
    fs.mkdirSync(join(outer, "outside"))
    return folder
  }
)

/** A sandbox whose commands are edits as JSON. */
export const sandboxIn = (root: string) =>
  Effect.map(Backend.Backend, (backend): Sandbox.Service => {
    const execute = (command: string) =>
      Effect.sync(() => {
        make(root, JSON.parse(command))
        return { output: "", exitCode: 0, truncated: false }
      })
    return { ...backend, id: "edits", execute, executeStream: () => assert.fail("no stream"), reaches: () => true }
  })

export const layers = (root: string, file: string, omit?: ReadonlyArray<string>) =>
  Layer.mergeAll(
    FilesystemBackend.layer({ root }),
    MemorySessions.layer,
    FileCheckpoints.layer({ folders: [root], omit, file, locate: (path) => join(root, path) })
  )
