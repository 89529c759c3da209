import { Context, Data, type Effect, Layer } from "effect"
import type { Backend, Sandbox } from "effect-deepagents"
import { CompositeBackend } from "effect-deepagents/backends"
import { expectTypeOf } from "vitest"

class DiskFull extends Data.TaggedError("DiskFull")<{}> {}
class NoNetwork extends Data.TaggedError("NoNetwork")<{}> {}
class Disk extends Context.Service<Disk, {}>()("Disk") {}
class Network extends Context.Service<Network, {}>()("Network") {}

declare const plain: Layer.Layer<Backend.Backend>
declare const disk: Layer.Layer<Backend.Backend, DiskFull, Disk>
declare const network: Layer.Layer<Backend.Backend, NoNetwork, Network>
declare const shell: Layer.Layer<Sandbox.Sandbox | Backend.Backend, DiskFull, Disk>

expectTypeOf(CompositeBackend.layer({ default: plain, routes: {} })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, CompositeBackend.InvalidRoute>
>()
expectTypeOf(CompositeBackend.layer({ default: plain, routes: { "/a": plain } })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, CompositeBackend.InvalidRoute>
>()
expectTypeOf(CompositeBackend.layer({ default: disk, routes: { "/a": plain, "/b": network } })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, DiskFull | NoNetwork | CompositeBackend.InvalidRoute, Disk | Network>
>()
expectTypeOf(CompositeBackend.layer({ default: plain, routes: { "/a": disk, "/b": network } })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, DiskFull | NoNetwork | CompositeBackend.InvalidRoute, Disk | Network>
>()
// A sandbox is a backend too.
expectTypeOf(CompositeBackend.layer({ default: shell, routes: { "/a": shell } })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, DiskFull | CompositeBackend.InvalidRoute, Disk>
>()
expectTypeOf(CompositeBackend.layerSandbox({ default: shell, routes: { "/a": network } })).toEqualTypeOf<
  Layer.Layer<Sandbox.Sandbox | Backend.Backend, DiskFull | NoNetwork | CompositeBackend.InvalidRoute, Disk | Network>
>()
// @ts-expect-error no commands can run in the default
CompositeBackend.layerSandbox({ default: plain, routes: {} })
// @ts-expect-error this layer gives no files
CompositeBackend.layer({ default: plain, routes: { "/a": Layer.succeed(Disk, {}) } })

declare const files: Backend.Service
declare const sandbox: Sandbox.Service
expectTypeOf(CompositeBackend.make(files, { "/a": files })).toEqualTypeOf<
  Effect.Effect<Backend.Service, CompositeBackend.InvalidRoute>
>()
expectTypeOf(CompositeBackend.makeSandbox(sandbox, { "/a": files })).toEqualTypeOf<
  Effect.Effect<Sandbox.Service, CompositeBackend.InvalidRoute>
>()

declare const isolating: Layer.Layer<Sandbox.Sandbox | Backend.Backend | Sandbox.Isolated>
// The default isolates the composite.
expectTypeOf(CompositeBackend.layerSandbox({ default: isolating, routes: {} })).toEqualTypeOf<
  Layer.Layer<Sandbox.Sandbox | Backend.Backend | Sandbox.Isolated, CompositeBackend.InvalidRoute>
>()
