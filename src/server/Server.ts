/**
 * Runs of agents that belong to a server: they outlive connections and the process, and each tenant has its own threads.
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Server } from "effect-deepagents/server"
 * import { MemorySessions } from "effect-deepagents/sessions"
 * import { Storage } from "effect-deepagents/stores"
 * import { TestChatModel } from "effect-deepagents/testing"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 * const runs = Server.layer({ helper }).pipe(
 *   Layer.provide([Storage.layerMemory, TestChatModel.script(["Hello, Ada."])]),
 *   Layer.provideMerge(MemorySessions.layer)
 * )
 *
 * const program = Effect.gen(function* () {
 *   const acme = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
 *   const thread = yield* acme.thread("report-7")
 *   const all = yield* Server.Runs
 *   const { position } = yield* all.start(thread, { agent: "helper", input: "Write it", id: "mail-7" })
 *   return yield* Stream.runCollect(all.observe(thread, { after: position }))
 * }).pipe(Effect.provide(runs))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Agent from "../core/Agent.ts"
import type { Journal } from "../core/Journal.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { Storage } from "../stores/Storage.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import * as Mailbox from "./internal/mailbox.ts"
import { make } from "./internal/runs.ts"
import { Runs, type RunsError } from "./internal/service.ts"
import * as shapes from "./internal/shapes.ts"
import type { Caller } from "./internal/tenant.ts"

export { type Frame, Position } from "./internal/position.ts"
export { Runs, RunsError, type Status, type Taken } from "./internal/service.ts"
export { Caller, Principal, type Tenant, tenant, type ThreadRef } from "./internal/tenant.ts"

/** The options of runs. */
export interface Options {
  /** Bytes of events that are kept of a thread at work, so that readers go on exactly. Default: 1 MiB. */
  readonly keep?: number | undefined
  /** Runs and waiting inputs at once. Default: 1,000. */
  readonly limit?: number | undefined
}

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** The services that the agents need of the server. */
type Needs<Agents extends Readonly<Record<string, AnyAgent>>> = Exclude<
  Agent.Services<Agents[keyof Agents]>,
  Journal | Caller | Scope.Scope
>

const refuseLayer = makeLayerCheck("Server.layer", shapes.serverLayer)

/**
 * Runs these agents in this process. Inputs are stored in the table `mailbox` of the `Storage` before they are taken; those
 * that were taken and not settled go on when the layer is built. One process at a time has a mailbox.
 */
export const layer = <const Agents extends Readonly<Record<string, AnyAgent>>>(
  agents: Agents,
  options?: Options
): Layer.Layer<Runs, RunsError, SessionStore | Storage | Needs<Agents>> =>
  refuseLayer(options) ??
  Layer.effect(
    Runs,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const { table } = yield* Storage
      const settings = { keep: options?.keep ?? 1 << 20, limit: options?.limit ?? 1_000 }
      return yield* make(agents, store, Mailbox.make(table("mailbox")), settings)
    })
  )
