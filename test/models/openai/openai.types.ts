import { Config, type Layer, Redacted } from "effect"
import type { ChatModel, ModelError } from "effect-deepagents"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import { expectTypeOf } from "vitest"

expectTypeOf(OpenAiChatModel.layer({ model: "gpt-5" })).toEqualTypeOf<
  Layer.Layer<ChatModel.ChatModel, ModelError.ModelError>
>()

expectTypeOf(
  OpenAiCompatibleChatModel.layerConfig({
    model: Config.String("MODEL"),
    apiKey: Config.Redacted("KEY"),
    temperature: 1
  })
).toEqualTypeOf<Layer.Layer<ChatModel.ChatModel, ModelError.ModelError | Config.ConfigError>>()

// @ts-expect-error a key is never a plain text
OpenAiChatModel.layer({ model: "gpt-5", apiKey: "sk-1" })

// @ts-expect-error an option that there is not
OpenAiChatModel.layer({ model: "gpt-5", topK: 3 })

// @ts-expect-error a model must be named
OpenAiChatModel.layerConfig({ apiKey: Redacted.make("sk-1") })
