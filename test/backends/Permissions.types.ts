import { type Effect, Layer, pipe, type Result } from "effect"
import type { Backend, Ruling, Sandbox } from "effect-deepagents"
import { Permissions } from "effect-deepagents/backends"
import { expectTypeOf } from "vitest"

declare const files: Layer.Layer<Backend.Backend, "no disk", "Disk">
declare const shell: Layer.Layer<Sandbox.Sandbox | Backend.Backend, "no disk", "Disk">

const options = {
  rules: [
    { operations: ["read", "write"], paths: ["/secrets"], ruling: "refuse" },
    { operations: ["execute"], ruling: "ask" }
  ],
  default: "refuse"
} as const satisfies Permissions.Options

expectTypeOf(Permissions.layer(options)).toEqualTypeOf<
  Layer.Layer<Backend.Backend, Permissions.InvalidPermissions, Backend.Backend>
>()
expectTypeOf(Permissions.layerSandbox(options)).toEqualTypeOf<
  Layer.Layer<Sandbox.Sandbox | Backend.Backend, Permissions.InvalidPermissions, Sandbox.Sandbox>
>()
expectTypeOf(Permissions.layer(options).pipe(Layer.provide(files))).toEqualTypeOf<
  Layer.Layer<Backend.Backend, Permissions.InvalidPermissions | "no disk", "Disk">
>()
expectTypeOf(Permissions.layerSandbox(options).pipe(Layer.provide(shell))).toEqualTypeOf<
  Layer.Layer<Sandbox.Sandbox | Backend.Backend, Permissions.InvalidPermissions | "no disk", "Disk">
>()
expectTypeOf(Permissions.layerSandbox(options).pipe(Layer.provide(files))).toEqualTypeOf<
  Layer.Layer<Sandbox.Sandbox | Backend.Backend, Permissions.InvalidPermissions | "no disk", Sandbox.Sandbox | "Disk">
>()

declare const backend: Backend.Service
declare const sandbox: Sandbox.Service
expectTypeOf(Permissions.wrap(backend, options)).toEqualTypeOf<
  Effect.Effect<Backend.Service, Permissions.InvalidPermissions>
>()
expectTypeOf(Permissions.wrapSandbox(sandbox, options)).toEqualTypeOf<
  Effect.Effect<Sandbox.Service, Permissions.InvalidPermissions>
>()
expectTypeOf(Permissions.compile(options)).toEqualTypeOf<
  Result.Result<
    (operation: "read" | "write" | "execute", path?: string) => Ruling.Ruling,
    Permissions.InvalidPermissions
  >
>()

// @ts-expect-error there are no patterns of commands
Permissions.layer({ rules: [{ operations: ["execute"], paths: ["/x"], ruling: "refuse" }] })
// @ts-expect-error a rule for files needs paths
Permissions.layer({ rules: [{ operations: ["read"], ruling: "refuse" }] })
// @ts-expect-error files and commands have rules of their own
Permissions.layer({ rules: [{ operations: ["read", "execute"], paths: ["/x"], ruling: "refuse" }] })
// @ts-expect-error the default can't ask
Permissions.layer({ rules: [], default: "ask" })

// Data-last, for a pipe.
expectTypeOf(pipe(sandbox, Permissions.wrap({ rules: [] }))).toEqualTypeOf<
  Effect.Effect<Backend.Service, Permissions.InvalidPermissions>
>()
expectTypeOf(pipe(sandbox, Permissions.wrapSandbox({ rules: [] }))).toEqualTypeOf<
  Effect.Effect<Sandbox.Service, Permissions.InvalidPermissions>
>()
