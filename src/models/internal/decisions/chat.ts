/** Decisions by any chat model: one turn with an answer in a schema. */
import type { AiError } from "effect/ai/AiError"
import * as DecisionModel from "effect/ai/DecisionModel"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../../../core/Agent.ts"
import { ChatModel } from "../../../core/ChatModel.ts"
import { type JsonObject, stringify } from "../../../core/Json.ts"
import type { DecisionRequest } from "../../../support/decisions/format.ts"
import { fieldOf, promptOf, questionsOf, readAnswer } from "../../../support/decisions/letters.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { quote } from "../../../support/text/untrusted.ts"
import * as Logprobs from "../../Logprobs.ts"
import { toAiError } from "./server.ts"

type ChatOptions = { readonly certainty?: number | undefined; readonly logprobs?: JsonObject | undefined }

/** Answers all decisions in one turn of a model. */
const decideBy = (model: ChatModel["Service"], { certainty = 0.9, logprobs }: ChatOptions) =>
  Effect.fnUntraced(function* ({
    decisions,
    state
  }: DecisionRequest): Effect.fn.Return<DecisionModel.ProviderResponse, AiError> {
    const isByToken = logprobs !== undefined
    const questions = questionsOf(decisions)
    const agent = Agent.make({
      name: "decision",
      prompt: promptOf(questions, isByToken),
      output: Schema.Struct(Object.fromEntries(questions.map((one) => [one.name, fieldOf(one, isByToken)]))),
      parameters: logprobs ?? {}
    })
    const text = quote(typeof state === "string" ? state : stringify(state))
    const run = Effect.provideService(Agent.run(agent, text), ChatModel, model)
    const { newMessages, output, usage } = yield* Effect.mapError(run, toAiError)
    const tokens = isByToken ? newMessages.slice(-1).flatMap(Logprobs.of) : []
    const results = questions.map((one) => ({
      key: one.key,
      ...readAnswer(one, valueAt<string | number>(output, one.name) ?? "", tokens, certainty)
    }))
    return {
      answers: Object.fromEntries(results.map(({ answer, key }) => [key, answer])),
      usage: { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens },
      modelId: model.modelId,
      ...(results.every(({ isCalibrated }) => isCalibrated)
        ? {}
        : { metadata: { effectDeepagents: { calibrated: false } } })
    }
  })

/** Makes a decision model of the chat model in context. */
export const makeFromChat = (options: ChatOptions): Effect.Effect<DecisionModel.DecisionModel, never, ChatModel> =>
  ChatModel.use((model) => DecisionModel.make({ decide: decideBy(model, options) }))
