import { Context, Effect, type Layer } from "effect"
import type { Backend, BackendError } from "effect-deepagents"
import { CustomBackend, MemoryBackend, StoreBackend } from "effect-deepagents/backends"
import type { KeyValueStore } from "effect/persistence"
import { expectTypeOf } from "vitest"

class Tenant extends Context.Service<Tenant, { readonly name: string }>()("test/Tenant") {}
const Request = Context.Reference<string>("test/Request", { defaultValue: () => "" })

// A namespace that is known needs the store and nothing else.
expectTypeOf(StoreBackend.layer({ namespace: "a" })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, never, KeyValueStore.KeyValueStore>
>()
expectTypeOf(StoreBackend.layer({ namespace: ["a", "b"] })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, never, KeyValueStore.KeyValueStore>
>()

// The layer needs the services of its namespace effect; a reference is no service.
const ofTenant = Tenant.use(({ name }) => Effect.succeed([name, "files"]))
expectTypeOf(StoreBackend.layer({ namespace: ofTenant })).toEqualTypeOf<
  Layer.Layer<Backend.Backend, never, KeyValueStore.KeyValueStore | Tenant>
>()
expectTypeOf(StoreBackend.make({ namespace: Effect.map(Request, (name) => name) })).toEqualTypeOf<
  Effect.Effect<Backend.Service, never, KeyValueStore.KeyValueStore>
>()

// @ts-expect-error A failure must be a failure of operations.
StoreBackend.layer({ namespace: Effect.fail("who?") })

expectTypeOf(MemoryBackend.layer()).toEqualTypeOf<Layer.Layer<Backend.Backend>>()
expectTypeOf(MemoryBackend.layerState).toEqualTypeOf<Layer.Layer<Backend.Backend>>()

declare const primitives: CustomBackend.Primitives
declare const grep: Backend.Service["grep"]
expectTypeOf(CustomBackend.make(primitives)).toEqualTypeOf<Backend.Service>()
expectTypeOf({ ...CustomBackend.make(primitives), grep }).toExtend<Backend.Service>()
expectTypeOf<Effect.Error<ReturnType<CustomBackend.Primitives["read"]>>>().toEqualTypeOf<BackendError.BackendError>()
