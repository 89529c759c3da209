/**
 * The part of Anthropic's Messages API that requests are made of, as plain types: a request can be written down and
 * read without the SDK.
 */
import type { JsonObject } from "../../../core/Json.ts"

/** A cache breakpoint. Without `ttl` it lasts five minutes. */
export interface CacheControl {
  readonly type: "ephemeral"
  readonly ttl?: "1h"
}

interface Cacheable {
  readonly cache_control?: CacheControl
}

export interface TextPart extends Cacheable {
  readonly type: "text"
  readonly text: string
  readonly citations?: ReadonlyArray<JsonObject>
}

export type ImageType = "image/jpeg" | "image/png" | "image/gif" | "image/webp"

export interface ImagePart extends Cacheable {
  readonly type: "image"
  readonly source:
    | { readonly type: "base64"; readonly media_type: ImageType; readonly data: string }
    | { readonly type: "url"; readonly url: string }
    | { readonly type: "file"; readonly file_id: string }
}

export interface DocumentPart extends Cacheable {
  readonly type: "document"
  readonly source:
    | { readonly type: "base64"; readonly media_type: "application/pdf"; readonly data: string }
    | { readonly type: "text"; readonly media_type: "text/plain"; readonly data: string }
    | { readonly type: "url"; readonly url: string }
    | { readonly type: "file"; readonly file_id: string }
  readonly title?: string
  readonly citations?: { readonly enabled: true }
}

export interface ThinkingPart {
  readonly type: "thinking"
  readonly thinking: string
  readonly signature: string
}

export interface RedactedThinkingPart {
  readonly type: "redacted_thinking"
  readonly data: string
}

export interface ToolUsePart extends Cacheable {
  readonly type: "tool_use"
  readonly id: string
  readonly name: string
  readonly input: JsonObject
  readonly caller?: JsonObject
}

export interface ToolResultPart extends Cacheable {
  readonly type: "tool_result"
  readonly tool_use_id: string
  readonly content: ReadonlyArray<TextPart | ImagePart | DocumentPart>
  readonly is_error?: true
}

/** A block that is sent back verbatim: a server tool's result, or a compaction. */
export interface VerbatimPart {
  readonly type:
    | "server_tool_use"
    | "mcp_tool_use"
    | "container_upload"
    | "compaction"
    | "fallback"
    | `${string}_tool_result`
  readonly [key: string]: JsonObject[string]
}

/** A tool that comes or goes inside of a conversation. */
export interface ToolChangePart {
  readonly type: "tool_addition" | "tool_removal"
  readonly tool:
    | {
        readonly type: "tool_reference"
        readonly name: string
      }
    | {
        readonly type: "tool_definition"
        readonly definition: Tool
      }
}

export type Part =
  | TextPart
  | ImagePart
  | DocumentPart
  | ThinkingPart
  | RedactedThinkingPart
  | ToolUsePart
  | ToolResultPart
  | VerbatimPart
  | ToolChangePart

export interface Message {
  readonly role: "user" | "assistant" | "system"
  readonly content: ReadonlyArray<Part>
}

/** A tool that the client runs. */
export interface Tool extends Cacheable {
  readonly name: string
  readonly description: string
  readonly input_schema: JsonObject
  readonly strict?: true
  readonly defer_loading?: boolean
  readonly allowed_callers?: ReadonlyArray<string>
  readonly eager_input_streaming?: boolean
  readonly input_examples?: ReadonlyArray<JsonObject>
}

interface OneByOne {
  readonly disable_parallel_tool_use?: true
}

export type ToolChoice =
  | ({ readonly type: "auto" } & OneByOne)
  | { readonly type: "none" }
  | ({ readonly type: "any" } & OneByOne)
  | ({ readonly type: "tool"; readonly name: string } & OneByOne)

export type Thinking = (
  | { readonly type: "enabled"; readonly budget_tokens: number; readonly display?: "summarized" | "omitted" }
  | { readonly type: "adaptive"; readonly display?: "summarized" | "omitted" }
  | { readonly type: "between_tools" }
  | { readonly type: "disabled" }
) & {
  /** The treatment of thinking that was thought in a conversation which reads differently now. */
  readonly block_binding?: { readonly prefix_mismatch_behavior: "drop_block" }
}

/** The fields that the token counting endpoint takes, and the beginning of every request. */
export interface Prompt {
  readonly model: string
  readonly system?: ReadonlyArray<TextPart>
  readonly messages: ReadonlyArray<Message>
  /** Tools of the client and Anthropic's server tools, as its API describes them. */
  readonly tools?: ReadonlyArray<Tool | JsonObject>
  readonly tool_choice?: ToolChoice
  readonly thinking?: Thinking
  readonly output_config?: {
    readonly effort?: "low" | "medium" | "high" | "xhigh" | "max"
    readonly format?: { readonly type: "json_schema"; readonly schema: JsonObject }
  }
}

/** The body of a request. */
export interface Body extends Prompt {
  readonly max_tokens: number
  readonly stream: true
  readonly stop_sequences?: ReadonlyArray<string>
  readonly temperature?: number
  readonly top_p?: number
  readonly top_k?: number
  readonly service_tier?: "auto" | "standard_only"
  readonly context_management?: JsonObject
  readonly metadata?: { readonly user_id: string }
  /** The place where code runs: by its id the container of the turn before, which a caller may have asked for with skills. */
  readonly container?: string | JsonObject
  /** Bedrock takes the API version here, Anthropic in a header. */
  readonly anthropic_version?: string
}
