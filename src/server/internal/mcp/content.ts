/** Encodes outputs of tools as content blocks of the protocol. */
import * as McpSchema from "effect/ai/McpSchema"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { Block, Source } from "../../../core/Content.ts"
import { isObject, type Json } from "../../../core/Json.ts"
import { encodePart } from "../../../support/text/percent.ts"

type Content = typeof McpSchema.ContentBlock.Type

const text = (words: string): Content => ({ type: "text", text: words })

/** Encodes media: the bytes, or a link to them. */
const media = (
  source: Source,
  name: string,
  bytes: (data: Uint8Array<ArrayBuffer>, mimeType: string) => Content
): Content => {
  if (source.kind === "url") return { type: "resource_link", uri: source.url, name }
  if (source.kind === "fileId") return text(`(${name}: the file ${source.fileId} of the provider)`)
  return Result.match(Base64.decode(source.data), {
    onFailure: () => text(`(${name}: it could not be read)`),
    onSuccess: (data) => bytes(new Uint8Array(data), source.mimeType)
  })
}

const blockOf = (block: Block): ReadonlyArray<Content> => {
  switch (block.type) {
    case "text":
      return [text(block.text)]
    case "image":
      return [media(block.source, "image", (data, mimeType) => ({ type: "image", data, mimeType }))]
    case "file": {
      const name = block.name ?? "file"
      return [
        media(block.source, name, (data, mimeType) =>
          mimeType.startsWith("audio/")
            ? { type: "audio", data, mimeType }
            : { type: "resource", resource: { uri: `attachment:///${encodePart(name)}`, mimeType, blob: data } }
        )
      ]
    }
    case "reasoning":
      return []
  }
}

/** Makes the result of a call. Reasoning is left out. */
export const resultOf = (blocks: ReadonlyArray<Block>, isError: boolean): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({ content: blocks.flatMap(blockOf), ...(isError ? { isError } : {}) })

/** Makes a failure for the model that called. */
export const failed = (message: string): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({ content: [text(message)], isError: true })

/** Makes an answer: text, and JSON if it is an object. */
export const answerOf = (words: string, json: Json | undefined): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({
    content: [text(words === "" ? "The agent ended without an answer." : words)],
    ...(isObject(json) ? { structuredContent: json } : {})
  })
