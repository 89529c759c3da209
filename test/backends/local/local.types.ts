import type { Effect, Layer, Scope } from "effect"
import type { Backend, BackendError, Sandbox } from "effect-deepagents"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { expectTypeOf } from "vitest"

expectTypeOf(FilesystemBackend.layer({ root: "." })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, BackendError.BackendError>
>()
expectTypeOf(FilesystemBackend.make({ root: "." })).toEqualTypeOf<
  Effect.Effect<Backend.Service, BackendError.BackendError>
>()
expectTypeOf(LocalShell.layer({ root: "." })).toEqualTypeOf<
  Layer.Layer<Sandbox.Sandbox | Backend.Backend, BackendError.BackendError>
>()
expectTypeOf(LocalShell.make({ root: "." })).toEqualTypeOf<
  Effect.Effect<Sandbox.Service, BackendError.BackendError, Scope.Scope>
>()
FilesystemBackend.layer({ root: ".", ripgrep: false, maxFileSize: 1 })
// @ts-expect-error a root must be named
LocalShell.layer({})
// @ts-expect-error ripgrep is a path, or none
FilesystemBackend.layer({ root: ".", ripgrep: true })
