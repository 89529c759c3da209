import type { Effect, Layer, Stream } from "effect"
import type { ChatModel, ModelError } from "effect-deepagents"
import * as DecisionModels from "effect-deepagents/models/DecisionModels"
import { Audit, Decisions } from "effect-deepagents/rules"
import type { SessionStore } from "effect-deepagents/sessions"
import type { AiError, DecisionModel } from "effect/ai"
import { expectTypeOf } from "vitest"

expectTypeOf(DecisionModels.layerOpenAi({ model: "gpt-6-luna" })).toEqualTypeOf<
  Layer.Layer<DecisionModel.DecisionModel, ModelError.ModelError>
>()
expectTypeOf(DecisionModels.layerSystemOne({ model: "kev-4b", baseURL: "http://localhost:8080/v1" })).toEqualTypeOf<
  Layer.Layer<DecisionModel.DecisionModel, ModelError.ModelError>
>()
expectTypeOf(DecisionModels.layerChatModel()).toEqualTypeOf<
  Layer.Layer<DecisionModel.DecisionModel, never, ChatModel.ChatModel>
>()
// @ts-expect-error no server is guessed
DecisionModels.layerSystemOne({ model: "kev-4b" })

// Errors and services come from the records and the model.
expectTypeOf(Decisions.labelled(Audit.records(), { rules: "" })).toEqualTypeOf<
  Effect.Effect<
    ReadonlyArray<Decisions.LabelledDecision>,
    AiError.AiError | Stream.Error<ReturnType<typeof Audit.records>>,
    DecisionModel.DecisionModel | SessionStore.SessionStore
  >
>()

const { settle } = Decisions.calibrate([{ probability: 0.5, isYes: true }])
expectTypeOf(settle({ wrongYes: 1, wrongNo: 1, person: 1 })(0.5)).toEqualTypeOf<"yes" | "no" | "person">()
// @ts-expect-error a cost is missing
settle({ wrongYes: 1, wrongNo: 1 })
