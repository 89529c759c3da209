/** Answers of servers, as the content of messages. */
import type { CallToolResult, ContentBlock, PromptMessage } from "@modelcontextprotocol/client"
import * as Content from "../../../core/Content.ts"
import { fromUnknown, stringify } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import * as Sources from "../../../core/Sources.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { ResourceContent, Result } from "../model.ts"

const bytes = (base64: string, mimeType: string, name?: string): Content.Block =>
  mimeType.startsWith("image/") ? Content.image({ base64, mimeType }) : Content.file({ base64, mimeType, name })

const unknownType = "application/octet-stream"

/** A part of a resource as content. */
export const resourceBlock = (content: ResourceContent): Content.Block =>
  "text" in content
    ? Content.text(content.text)
    : bytes(content.base64, content.mimeType ?? unknownType, content.uri.split("/").at(-1))

/** A part of a resource as it came. */
export const resourceContent = (resource: {
  readonly uri: string
  readonly mimeType?: string | undefined
  readonly text?: unknown
  readonly blob?: unknown
}): ResourceContent => {
  const { mimeType, uri } = resource
  return typeof resource.text === "string"
    ? { uri, mimeType, text: resource.text }
    : { uri, mimeType, base64: typeof resource.blob === "string" ? resource.blob : "" }
}

/** A block as content. */
export const blockOf = (block: ContentBlock): Content.Block => {
  switch (block.type) {
    case "text":
      return Content.text(block.text)
    case "image":
    case "audio":
      return bytes(block.data, block.mimeType)
    case "resource":
      return resourceBlock(resourceContent(block.resource))
    case "resource_link": {
      const { description, name, uri } = block
      const more = description === undefined ? "" : `: ${oneLine(description)}`
      return Content.text(`[resource ${oneLine(uri)} (${oneLine(name)})${more}]\n`)
    }
  }
}

const sourceOf = (block: ContentBlock): ReadonlyArray<Sources.CitedSource> => {
  if (block.type === "resource_link") {
    const { description, name, title = name, uri } = block
    return [Sources.make({ url: uri, title, snippet: description })]
  }
  return block.type === "resource" ? [Sources.make({ url: block.resource.uri })] : []
}

/** The result of a call. What is structured only is shown as JSON. */
export const resultOf = (result: CallToolResult): Result => {
  const structured = result.structuredContent === undefined ? undefined : fromUnknown(result.structuredContent)
  const content = result.content.map(blockOf)
  return {
    content: content.length === 0 && structured !== undefined ? [Content.text(stringify(structured))] : content,
    isError: result.isError === true,
    sources: result.content.flatMap(sourceOf),
    ...(structured === undefined ? {} : { structured })
  }
}

/** Messages of a prompt, or of a request for an answer. */
export const messagesOf = (
  messages: ReadonlyArray<{ readonly role: PromptMessage["role"]; readonly content: ReadonlyArray<Content.Block> }>
): ReadonlyArray<Message.Message> =>
  messages.map(({ content, role }) => (role === "assistant" ? Message.ai(content) : Message.human(content)))
