import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { Backend, type BackendError, Sandbox } from "effect-deepagents"
import { CustomSandbox, CompositeBackend, Permissions } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { functionsOf, make as makeShell } from "./fixtures/localShell.ts"

const rules = [{ operations: ["read", "write"], paths: ["/secrets/**"], ruling: "refuse" }] as const

/** A folder with links to denied and to allowed files. */
const planted = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const root = yield* fs.makeTempDirectoryScoped()
  yield* fs.makeDirectory(`${root}/secrets`)
  yield* fs.makeDirectory(`${root}/open`)
  yield* fs.writeFileString(`${root}/secrets/a`, "SECRET")
  yield* fs.writeFileString(`${root}/open/b`, "open")
  yield* fs.symlink("secrets/a", `${root}/file`)
  yield* fs.symlink("secrets", `${root}/folder`)
  yield* fs.symlink("../secrets/new", `${root}/open/dangling`)
  yield* fs.symlink("open/b", `${root}/fine`)
  return root
})

/** The folder by way of a shell. */
const remote = (root: string) =>
  Effect.flatMap(makeShell(), (shell) => CustomSandbox.make(functionsOf(shell), { root }))

const reasonOf = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
  Effect.match(effect, { onFailure: (error) => error.reason._tag, onSuccess: () => "ok" })

const holds = (layer: (root: string) => Layer.Layer<Backend.Backend, unknown>) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const root = yield* planted
    yield* Effect.gen(function* () {
      const backend = yield* Backend.Backend
      for (const path of ["/file", "/folder/a", "/secrets/a"]) {
        assert.strictEqual(yield* reasonOf(backend.read(path)), "PermissionDenied", path)
        assert.strictEqual(yield* reasonOf(backend.write(path, "x")), "PermissionDenied", path)
      }
      assert.notStrictEqual(yield* reasonOf(backend.write("/open/dangling", "x")), "ok")
      assert.strictEqual(yield* reasonOf(backend.read("/fine")), "ok")
      const [denied, fine] = yield* backend.download(["/file", "/fine"])
      assert.deepStrictEqual([denied?.ok, fine?.ok], [false, true])
      const found = yield* backend.grep({ pattern: "SECRET" })
      assert.deepStrictEqual(found.files, [])
    }).pipe(Effect.provide(layer(root)))
    assert.strictEqual(yield* fs.readFileString(`${root}/secrets/a`), "SECRET")
    assert.isFalse(yield* fs.exists(`${root}/secrets/new`))
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

describe("rules over files behind links", () => {
  it.live("hold at the target of a link, in a folder", () =>
    holds((root) => Permissions.layer({ rules }).pipe(Layer.provide(FilesystemBackend.layer({ root }))))
  )

  it.live("hold at the target of a link, behind a remote shell", () =>
    holds((root) =>
      Permissions.layer({ rules }).pipe(
        Layer.provide(
          Layer.effect(
            Backend.Backend,
            Effect.map(remote(root), (sandbox): Backend.Service => {
              // Without commands: rules could not be enforced beside them.
              const { execute: _execute, executeStream: _stream, id: _id, reaches: _reaches, ...files } = sandbox
              return files
            })
          )
        )
      )
    )
  )

  it.live("are refused for a folder beside a local shell: its commands reach it", () =>
    Effect.gen(function* () {
      const root = yield* planted
      const fs = yield* FileSystem.FileSystem
      const shell = LocalShell.layer({ root: yield* fs.makeTempDirectoryScoped() })
      const both = CompositeBackend.layerSandbox({
        default: shell,
        routes: { "/other": FilesystemBackend.layer({ root }) }
      })
      const denied = [{ operations: ["read"], paths: ["/other/secrets/**"], ruling: "refuse" }] as const
      const error = yield* Effect.flip(
        Effect.provide(Sandbox.Sandbox, Permissions.layerSandbox({ rules: denied }).pipe(Layer.provide(both)))
      )
      assert.strictEqual(error._tag, "InvalidPermissions")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
