import { Context, Effect, type Layer } from "effect"
import { type Approval, type ChatModel } from "effect-deepagents"
import { ApprovalClassifier } from "effect-deepagents/middleware"
import { expectTypeOf } from "vitest"

class Rules extends Context.Service<Rules, { readonly max: number }>()("Rules") {}

// A classifier stands in front of somebody, and needs what its Effect needs; it fails nothing.
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
