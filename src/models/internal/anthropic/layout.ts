/** The layout of an answer: Anthropic needs the blocks back in their original order. */
import { isObject, type Json } from "../../../core/Json.ts"
import type { VerbatimPart } from "./wire.ts"

/**
 * The order of an answer, unless it is content followed by calls. `said`, `call` and `malformed` stand for the next
 * content, call or malformed call. An object is Anthropic's own block (a server tool, a compaction), which is sent back
 * verbatim.
 */
export type Layout = ReadonlyArray<"said" | "call" | "malformed" | VerbatimPart>

const verbatim =
  /^(server_tool_use|mcp_tool_use|mcp_tool_listing|container_upload|compaction|fallback|\w+_tool_result)$/

/** Reports whether a block is sent back verbatim. */
export const isVerbatim = (value: unknown): value is VerbatimPart =>
  isObject(value) &&
  typeof value["type"] === "string" &&
  verbatim.test(value["type"]) &&
  value["type"] !== "tool_result"

/** The id of a block that asks one of Anthropic's own tools, whose result is a block too. */
export const askedBy = (part: VerbatimPart): string | undefined =>
  part.type.endsWith("_tool_use") && typeof part["id"] === "string" ? part["id"] : undefined

/** The id of the block that a result answers. */
export const answeredBy = (part: VerbatimPart): string | undefined =>
  part.type.endsWith("_tool_result") && typeof part["tool_use_id"] === "string" ? part["tool_use_id"] : undefined

const isLayout = (value: unknown): value is Layout =>
  Array.isArray(value) &&
  value.every((item) => item === "said" || item === "call" || item === "malformed" || isVerbatim(item))

/** The layout that was kept, or none. */
export const toLayout = (value: Json | undefined): Layout => (isLayout(value) ? value : [])

const order = ["said", "call", "malformed"]

/** Reports whether a layout is the usual one, which need not be kept. */
export const isPlain = (layout: Layout): boolean =>
  layout.every((item, at) => {
    const before = layout[at - 1]
    return typeof item === "string" && (typeof before !== "string" || order.indexOf(before) <= order.indexOf(item))
  })
