import { Context, Data, Effect } from "effect"
import { Agent, type ChatModel, type Middleware, type ModelError } from "effect-deepagents"
import { Guardrail } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"

class Policy extends Context.Service<
  Policy,
  { readonly allows: (text: string) => Effect.Effect<boolean, PolicyDown> }
>()("Policy") {}
class PolicyDown extends Data.TaggedError("PolicyDown")<{}> {}

const check = ({ text }: { readonly text: string }) =>
  Effect.map(
    Policy.use((policy) => policy.allows(text)),
    (ok) => (ok ? Guardrail.pass : Guardrail.trip("not allowed"))
  )
const answer = { answer: "no" } as const

expectTypeOf(Guardrail.input({ name: "p", check })).toEqualTypeOf<
  Middleware.Middleware<PolicyDown | Guardrail.GuardrailTripped, Policy>
>()
expectTypeOf(Guardrail.input({ name: "p", check, onTrip: "fail", mode: "beside" })).toEqualTypeOf<
  Middleware.Middleware<PolicyDown | Guardrail.GuardrailTripped, Policy>
>()
expectTypeOf(Guardrail.input({ name: "p", check, onTrip: answer })).toEqualTypeOf<
  Middleware.Middleware<PolicyDown, Policy>
>()
expectTypeOf(Guardrail.output({ name: "p", check, onTrip: { answer: "no" } })).toEqualTypeOf<
  Middleware.Middleware<PolicyDown, Policy>
>()

declare const either: Guardrail.OnTrip
expectTypeOf(
  Guardrail.output({ name: "p", check: () => Effect.succeed(Guardrail.pass), onTrip: either })
).toEqualTypeOf<Middleware.Middleware<Guardrail.GuardrailTripped>>()

expectTypeOf(
  Guardrail.toolCalls({ name: "p", check: () => Effect.succeed(Guardrail.pass) })
).toEqualTypeOf<Middleware.Middleware>()
expectTypeOf(
  Guardrail.toolCalls({ name: "p", check: ({ call }) => check({ text: call.name }), onTrip: "fail" })
).toEqualTypeOf<Middleware.Middleware<PolicyDown | Guardrail.GuardrailTripped, Policy>>()

const agent = Agent.make({ name: "a", prompt: "", middleware: [Guardrail.input({ name: "p", check, onTrip: answer })] })
expectTypeOf(agent).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError | PolicyDown, ChatModel.ChatModel | Policy>
>()

// A check by a model needs the agent's model, and fails as it does.
const byModel = Guardrail.byModel({ rules: "" })
expectTypeOf(Guardrail.input({ name: "p", check: byModel })).toEqualTypeOf<
  Middleware.Middleware<ModelError.ModelError | Guardrail.GuardrailTripped, ChatModel.ChatModel>
>()
expectTypeOf(Guardrail.toolResults({ name: "p", check: byModel })).toEqualTypeOf<
  Middleware.Middleware<ModelError.ModelError, ChatModel.ChatModel>
>()
expectTypeOf(Guardrail.toolCalls({ name: "p", check: byModel })).toEqualTypeOf<
  Middleware.Middleware<ModelError.ModelError, ChatModel.ChatModel>
>()
