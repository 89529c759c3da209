import type { Config, Layer } from "effect"
import type { ChatModel, ModelError } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { expectTypeOf } from "vitest"

expectTypeOf(ChatModels.resolve("anthropic:x")).toEqualTypeOf<
  Layer.Layer<ChatModel.ChatModel, ChatModels.UnknownProvider | ModelError.ModelError | Config.ConfigError>
>()

declare const own: ChatModels.Provider<"broken", "Keys">
expectTypeOf(ChatModels.resolve("own:x", { providers: [own] })).toEqualTypeOf<
  Layer.Layer<
    ChatModel.ChatModel,
    ChatModels.UnknownProvider | ModelError.ModelError | Config.ConfigError | "broken",
    "Keys"
  >
>()
