import { Context, Effect, type Layer } from "effect"
import { type AgentError, type Approval, type ChatModel, type ModelError } from "effect-deepagents"
import { ApprovalClassifier } from "effect-deepagents/middleware"
import type { AiError, DecisionModel } from "effect/ai"
import { expectTypeOf } from "vitest"

class Rules extends Context.Service<Rules, { readonly max: number }>()("Rules") {}

// A classifier stands in front of a decider, and needs the services of its Effect; it fails nothing.
expectTypeOf(
  ApprovalClassifier.layer({
    classify: (requests) =>
      Rules.use(({ max }) =>
        requests.length > max ? Effect.fail("many") : Effect.succeed([ApprovalClassifier.approve, undefined])
      )
  })
).toEqualTypeOf<Layer.Layer<Approval.Approvals, never, Approval.Approvals | Rules>>()

expectTypeOf(ApprovalClassifier.layer({ classify: ApprovalClassifier.byModel({ rules: "" }) })).toEqualTypeOf<
  Layer.Layer<Approval.Approvals, never, Approval.Approvals | ChatModel.ChatModel>
>()

// A decision model is taken from the context without a need for it.
expectTypeOf(ApprovalClassifier.byModel({ rules: "", settle: (p) => (p > 0.9 ? "yes" : "person") })([])).toEqualTypeOf<
  Effect.Effect<
    ReadonlyArray<ApprovalClassifier.Verdict>,
    ModelError.ModelError | AgentError.AgentError,
    ChatModel.ChatModel
  >
>()
expectTypeOf(ApprovalClassifier.estimate([], { rules: "" })).toEqualTypeOf<
  Effect.Effect<ReadonlyArray<number | undefined>, AiError.AiError, DecisionModel.DecisionModel>
>()
// @ts-expect-error a verdict that settles nothing
ApprovalClassifier.byModel({ rules: "", settle: () => "maybe" })
