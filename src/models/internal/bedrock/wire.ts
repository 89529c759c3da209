/** The Converse API as plain types, with bytes instead of base64. */
import type { Json } from "../../../core/Json.ts"

export type Value = Json | Uint8Array | ReadonlyArray<Value> | { readonly [key: string]: Value }

/** An object whose single key names its kind: `{ text }`, `{ toolUse }`, `{ cachePoint }` … */
export type Part = { readonly [key: string]: Value }

export interface Message {
  readonly role: "user" | "assistant"
  readonly content: ReadonlyArray<Part>
}

/** A request; further fields are what parameters say. */
export interface Body {
  readonly modelId: string
  readonly messages: ReadonlyArray<Message>
  readonly system?: ReadonlyArray<Part> | undefined
  readonly toolConfig?: { readonly tools: ReadonlyArray<Part>; readonly toolChoice?: Part | undefined } | undefined
  readonly [field: string]: unknown
}
