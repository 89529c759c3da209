/** The adapters take the objects of the real SDKs, and the layers declare their results, services and errors. */
import type { Sandbox as DaytonaSdk } from "@daytonaio/sdk"
import type { Devbox } from "@runloop/api-client/sdk"
import type { Sandbox as VercelSdk } from "@vercel/sandbox"
import type { Sandbox as E2bSdk } from "e2b"
import type { Config, Effect, Layer } from "effect"
import type { Backend, BackendError, Sandbox } from "effect-deepagents"
import { CustomSandbox } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import * as DaytonaSandbox from "effect-deepagents/backends/DaytonaSandbox"
import * as E2bSandbox from "effect-deepagents/backends/E2bSandbox"
import * as ModalSandbox from "effect-deepagents/backends/ModalSandbox"
import * as RunloopSandbox from "effect-deepagents/backends/RunloopSandbox"
import * as VercelSandbox from "effect-deepagents/backends/VercelSandbox"
import type { Sandbox as ModalSdk } from "modal"
import { expectTypeOf } from "vitest"

expectTypeOf<DaytonaSdk>().toExtend<Parameters<typeof DaytonaSandbox.fromSandbox>[0]>()
expectTypeOf<E2bSdk>().toExtend<Parameters<typeof E2bSandbox.fromSandbox>[0]>()
expectTypeOf<ModalSdk>().toExtend<Parameters<typeof ModalSandbox.fromSandbox>[0]>()
expectTypeOf<Devbox>().toExtend<Parameters<typeof RunloopSandbox.fromSandbox>[0]>()
expectTypeOf<VercelSdk>().toExtend<Parameters<typeof VercelSandbox.fromSandbox>[0]>()

type Provided = Sandbox.Sandbox | Backend.Backend | Sandbox.Isolated
type Built = Layer.Layer<Provided, BackendError.BackendError>
type Configured = Layer.Layer<Provided, BackendError.BackendError | Config.ConfigError>
type Made = Effect.Effect<Sandbox.Service, BackendError.BackendError>

declare const daytona: DaytonaSdk
declare const e2b: E2bSdk
declare const modal: ModalSdk
declare const runloop: Devbox
declare const vercel: VercelSdk

expectTypeOf(DaytonaSandbox.fromSandbox(daytona)).toEqualTypeOf<Made>()
expectTypeOf(E2bSandbox.fromSandbox(e2b)).toEqualTypeOf<Made>()
expectTypeOf(ModalSandbox.fromSandbox(modal)).toEqualTypeOf<Made>()
expectTypeOf(RunloopSandbox.fromSandbox(runloop)).toEqualTypeOf<Made>()
expectTypeOf(VercelSandbox.fromSandbox(vercel)).toEqualTypeOf<Made>()
expectTypeOf(CustomSandbox.make).returns.toEqualTypeOf<Made>()

expectTypeOf(DaytonaSandbox.layer()).toEqualTypeOf<Built>()
expectTypeOf(E2bSandbox.layer()).toEqualTypeOf<Built>()
expectTypeOf(ModalSandbox.layer()).toEqualTypeOf<Built>()
expectTypeOf(RunloopSandbox.layer()).toEqualTypeOf<Built>()
expectTypeOf(VercelSandbox.layer()).toEqualTypeOf<Built>()

expectTypeOf(DaytonaSandbox.layerConfig()).toEqualTypeOf<Configured>()
expectTypeOf(E2bSandbox.layerConfig()).toEqualTypeOf<Configured>()
expectTypeOf(ModalSandbox.layerConfig()).toEqualTypeOf<Configured>()
expectTypeOf(RunloopSandbox.layerConfig()).toEqualTypeOf<Configured>()
expectTypeOf(VercelSandbox.layerConfig()).toEqualTypeOf<Configured>()

expectTypeOf(Bash.layer()).toEqualTypeOf<Layer.Layer<Provided, BackendError.BackendError, Backend.Backend>>()

// What a provider's API can't do is no part of its type.
expectTypeOf<Effect.Success<ReturnType<typeof ModalSandbox.make>>>().not.toHaveProperty("pause")
E2bSandbox.make({ manifest: { image: "base", network: "open", ports: [3000] } })
// @ts-expect-error a template has the limits
E2bSandbox.make({ manifest: { image: "base", limits: { cpus: 2 } } })
// @ts-expect-error Vercel has a fixed amount of memory for a core
VercelSandbox.make({ manifest: { image: "vercel/sandbox/universal", limits: { memoryBytes: 1 } } })
// @ts-expect-error no provider limits processes
DaytonaSandbox.make({ manifest: { image: "node:24", limits: { processes: 5 } } })
// @ts-expect-error a devbox without a network policy has a network, and says so
RunloopSandbox.make({ manifest: { image: "agents" } })
// @ts-expect-error Modal would put the value into the machine
ModalSandbox.make({ manifest: { image: "node:24", secrets: ["KEY"] } })

// @ts-expect-error a key is never a plain text
E2bSandbox.layer({ apiKey: "e2b_key" })
