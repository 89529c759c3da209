import { type Effect, type Layer, Schema, type Stream } from "effect"
import {
  Agent,
  type AgentError,
  type Approval,
  type ChatModel,
  type Message,
  type Middleware,
  type ModelError,
  type SessionError
} from "effect-deepagents"
import {
  AgentClient,
  AgentEntity,
  type Conflict,
  Cron,
  DurableAgent,
  type NotRunning,
  type Outcome,
  type ThreadEvent,
  Wait
} from "effect-deepagents/durable"
import type { SessionStore } from "effect-deepagents/sessions"
import type { Sharding } from "effect/cluster"
import type { WorkflowEngine } from "effect/workflow"
import { expectTypeOf } from "vitest"

interface Orders {
  readonly orders: true
}
class Broke extends Schema.TaggedError<Broke>()("Broke", {}) {}
const Total = Schema.Struct({ total: Schema.Finite })

declare const plain: Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Orders>
declare const typed: Agent.Agent<typeof Total.Type, ModelError.ModelError | Broke, ChatModel.ChatModel>
const suspending = Agent.make({ name: "a", prompt: "", middleware: [Wait.make()] })

// Text needs nothing more; a schema, and failures of one's own, have to be said.
const text = DurableAgent.make({ name: "a", agent: plain })
const total = DurableAgent.make({ name: "a", agent: typed, output: Total, error: Broke })
// @ts-expect-error -- the output's schema is missing
DurableAgent.make({ name: "a", agent: typed, error: Broke })
// @ts-expect-error -- the failure's schema is missing
DurableAgent.make({ name: "a", agent: typed, output: Total })
// @ts-expect-error -- another schema
DurableAgent.make({ name: "a", agent: typed, output: Schema.String, error: Broke })
// @ts-expect-error -- the entity needs the same
AgentEntity.make({ name: "a", agent: typed, output: Total })

// The runner needs the agent's services; a caller needs the engine.
expectTypeOf(DurableAgent.layer(text)).toEqualTypeOf<
  Layer.Layer<never, never, WorkflowEngine.WorkflowEngine | SessionStore.SessionStore | ChatModel.ChatModel | Orders>
>()
const sent = { threadId: "t", inputId: "1", input: "x" }
expectTypeOf(DurableAgent.execute(total, sent)).toEqualTypeOf<
  Effect.Effect<
    Outcome.Outcome<{ readonly total: number }>,
    ModelError.ModelError | Broke | AgentError.AgentError,
    WorkflowEngine.WorkflowEngine
  >
>()
expectTypeOf(DurableAgent.start(text, sent)).toEqualTypeOf<
  Effect.Effect<string, AgentError.AgentError, WorkflowEngine.WorkflowEngine>
>()

// A workflow waits until there is an answer; an entity tells that it waits.
const waits = DurableAgent.make({ name: "a", agent: suspending })
expectTypeOf<
  Effect.Success<ReturnType<typeof DurableAgent.execute<string | undefined, ModelError.ModelError, never>>>
>().toEqualTypeOf<Outcome.Outcome<string>>()
expectTypeOf<Effect.Success<ReturnType<(typeof waits)["workflow"]["execute"]>>>().toExtend<
  Outcome.Outcome<string> | string
>()

const entity = AgentEntity.make({ name: "a", agent: suspending })
expectTypeOf(AgentEntity.layer(AgentEntity.make({ name: "a", agent: plain }))).toEqualTypeOf<
  Layer.Layer<never, never, Sharding.Sharding | SessionStore.SessionStore | ChatModel.ChatModel | Orders>
>()
const client = AgentClient.of(entity, "t")
expectTypeOf<Effect.Services<typeof client>>().toEqualTypeOf<Sharding.Sharding>()
declare const ada: Effect.Success<typeof client>
expectTypeOf(ada.send("x")).toEqualTypeOf<
  Effect.Effect<
    Outcome.Outcome<string | undefined>,
    | ModelError.ModelError
    | AgentError.AgentError
    | Conflict.Conflict
    | SessionError.SessionError
    | AgentClient.ClusterFailure
  >
>()
expectTypeOf<Effect.Error<ReturnType<typeof ada.steer>>>().toEqualTypeOf<
  NotRunning.NotRunning | SessionError.SessionError | AgentClient.ClusterFailure
>()
expectTypeOf<Effect.Success<typeof ada.history>>().toEqualTypeOf<ReadonlyArray<Message.Message>>()
expectTypeOf<Stream.Success<ReturnType<typeof ada.events>>>().toEqualTypeOf<ThreadEvent.ThreadEvent>()
expectTypeOf<Parameters<typeof ada.decide>[0]>().toEqualTypeOf<ReadonlyArray<Approval.Decision>>()

declare const times: Cron.Options
expectTypeOf(Cron.layer(entity, times)).toEqualTypeOf<Layer.Layer<never, never, Sharding.Sharding>>()

// Middleware around an agent adds its errors and services.
declare const needing: Middleware.Middleware<Broke, Orders>
const around = Agent.around(suspending, needing)
expectTypeOf(around).toEqualTypeOf<
  Agent.Agent<string | undefined, ModelError.ModelError | Broke, ChatModel.ChatModel | Orders>
>()
expectTypeOf(plain.pipe(Agent.around(Wait.make()))).toEqualTypeOf<
  Agent.Agent<string | undefined, ModelError.ModelError, ChatModel.ChatModel | Orders>
>()
