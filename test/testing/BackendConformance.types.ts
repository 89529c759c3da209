import { Context, Effect, type Layer } from "effect"
import type { Backend, BackendError, Sandbox } from "effect-deepagents"
import { TestBackend } from "effect-deepagents/testing"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { expectTypeOf } from "vitest"

class Folder extends Context.Service<Folder, { readonly root: string }>()("Folder") {}
class Disk extends Context.Service<Disk, string>()("Disk") {}

const none = BackendConformance.absent("no")
const nothing = {
  host: none,
  deny: none,
  fillDisk: none,
  huge: none,
  maxFileSize: none,
  manyFiles: none,
  atomicWrites: none,
  distinctNames: none
}

declare const folder: Layer.Layer<Backend.Backend | Folder, "broken", Disk>
declare const sandbox: Layer.Layer<Sandbox.Sandbox | Backend.Backend, "broken", Disk>

// A check needs the services of the layer, and fails with its errors.
expectTypeOf(BackendConformance.suite({ ...nothing, layer: folder })).toEqualTypeOf<
  ReadonlyArray<BackendConformance.Check<"broken" | BackendError.BackendError, Disk>>
>()
expectTypeOf(BackendConformance.suite({ ...nothing, layer: TestBackend.layer() })).toEqualTypeOf<
  ReadonlyArray<BackendConformance.Check<BackendError.BackendError, never>>
>()
expectTypeOf<BackendConformance.Check<"broken" | BackendError.BackendError, Disk>["run"]>().toEqualTypeOf<
  Effect.Effect<void, "broken" | BackendError.BackendError | BackendConformance.NotConformant, Disk>
>()
expectTypeOf(
  BackendConformance.sandboxSuite({ layer: sandbox, secret: "KEY", processes: none, streams: true })
).toEqualTypeOf<ReadonlyArray<BackendConformance.Check<"broken" | BackendError.BackendError, Disk>>>()

// Actions behind a backend may use the other services of its layer, and nothing else.
BackendConformance.suite({ ...nothing, layer: folder, deny: () => Effect.asVoid(Folder) })
// @ts-expect-error the layer gives no folder
BackendConformance.suite({ ...nothing, layer: TestBackend.layer(), deny: () => Effect.asVoid(Folder) })

// A subject must declare the abilities that it lacks.
// @ts-expect-error nothing is said of links
BackendConformance.suite({ layer: TestBackend.layer() })
