import type { MessageCreateParamsStreaming as BetaParams } from "@anthropic-ai/sdk/resources/beta/messages/messages"
/** Our requests fit the SDK's types. */
import type {
  ContentBlockParam,
  MessageCountTokensParams,
  MessageCreateParamsStreaming,
  MessageParam
} from "@anthropic-ai/sdk/resources/messages"
import type { Config, Layer } from "effect"
import type { ChatModel, ModelError } from "effect-deepagents"
import type * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import type * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
import type * as BedrockConverseChatModel from "effect-deepagents/models/BedrockConverseChatModel"
import { expectTypeOf } from "vitest"
import type * as Wire from "../../../src/models/internal/anthropic/wire.ts"

/** The SDK's arrays are mutable; ours are not, and are not changed. */
type Mutable<T> =
  T extends ReadonlyArray<infer Item>
    ? Array<Mutable<Item>>
    : T extends object
      ? { -readonly [Key in keyof T]: Mutable<T[Key]> }
      : T

type Params = MessageCreateParamsStreaming

// Parts that come from the API and go back verbatim are open JSON here, and closed unions there.
expectTypeOf<Mutable<Omit<Wire.TextPart, "citations">>>().toExtend<ContentBlockParam>()
expectTypeOf<Mutable<Omit<Wire.ToolUsePart, "caller">>>().toExtend<ContentBlockParam>()
expectTypeOf<
  Mutable<Wire.ImagePart | Wire.DocumentPart | Wire.ThinkingPart | Wire.RedactedThinkingPart>
>().toExtend<ContentBlockParam>()
expectTypeOf<Mutable<Omit<Wire.ToolResultPart, "content">>>().toExtend<ContentBlockParam>()
expectTypeOf<Wire.Message["role"]>().toExtend<MessageParam["role"]>()
expectTypeOf<Wire.ToolChoice>().toExtend<NonNullable<Params["tool_choice"]>>()
expectTypeOf<Wire.Thinking>().toExtend<NonNullable<Params["thinking"]>>()
expectTypeOf<NonNullable<Wire.Body["output_config"]>["effort"]>().toExtend<
  NonNullable<Params["output_config"]>["effort"]
>()
expectTypeOf<NonNullable<Wire.Body["service_tier"]>>().toExtend<NonNullable<Params["service_tier"]>>()
/** The API can count every field of a prompt. */
expectTypeOf<keyof Wire.Prompt>().toExtend<keyof MessageCountTokensParams>()
expectTypeOf<Exclude<keyof Wire.Body, "temperature" | "top_p" | "top_k" | "anthropic_version">>().toExtend<
  keyof Params | keyof BetaParams
>()

type Built = Layer.Layer<ChatModel.ChatModel, ModelError.ModelError>
type BuiltFromConfig = Layer.Layer<ChatModel.ChatModel, ModelError.ModelError | Config.ConfigError>

expectTypeOf<ReturnType<typeof AnthropicChatModel.layer>>().toEqualTypeOf<Built>()
expectTypeOf<ReturnType<typeof BedrockChatModel.layer>>().toEqualTypeOf<Built>()
expectTypeOf<ReturnType<typeof BedrockConverseChatModel.layer>>().toEqualTypeOf<Built>()
expectTypeOf<ReturnType<typeof AnthropicChatModel.layerConfig>>().toEqualTypeOf<BuiltFromConfig>()
expectTypeOf<ReturnType<typeof BedrockChatModel.layerConfig>>().toEqualTypeOf<BuiltFromConfig>()
expectTypeOf<ReturnType<typeof BedrockConverseChatModel.layerConfig>>().toEqualTypeOf<BuiltFromConfig>()
