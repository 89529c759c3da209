/** Turns the blocks of a prompt into the content of a message. */
import { fileURLToPath } from "node:url"
import type * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Content from "../../core/Content.ts"
import { cleanLine } from "../../support/text/clean.ts"
import { AcpError } from "../AcpError.ts"

/** The path or the address of a resource, on one line. */
const placeOf = (uri: string): string => {
  const path = Result.try(() => (uri.startsWith("file:") ? fileURLToPath(uri) : uri))
  return cleanLine(Result.getOrElse(path, () => uri)).replaceAll('"', "'")
}

const invalid = (detail: string) => new AcpError({ reason: "Invalid", method: "session/prompt", detail })

const blockOf = (block: Acp.ContentBlock): Effect.Effect<Content.Block, AcpError> => {
  switch (block.type) {
    case "text":
      return Effect.succeed(Content.text(block.text))
    case "image":
      return Effect.succeed(Content.image({ base64: block.data, mimeType: block.mimeType }))
    case "resource_link":
      return Effect.succeed(Content.text(`@${placeOf(block.uri)}`))
    case "resource": {
      const { resource } = block
      const name = placeOf(resource.uri)
      if ("text" in resource) return Effect.succeed(Content.text(`<file name="${name}">\n${resource.text}\n</file>`))
      const mimeType = resource.mimeType ?? "application/octet-stream"
      return Effect.succeed(
        mimeType.startsWith("image/")
          ? Content.image({ base64: resource.blob, mimeType })
          : Content.file({ base64: resource.blob, mimeType, name })
      )
    }
    case "audio":
      return Effect.fail(invalid(`a prompt has text, images and resources here, and no audio`))
  }
}

/** The content of a prompt. A prompt without content is refused. */
export const contentOf = (
  prompt: ReadonlyArray<Acp.ContentBlock>
): Effect.Effect<ReadonlyArray<Content.Block>, AcpError> =>
  prompt.length === 0 ? Effect.fail(invalid("the prompt is empty")) : Effect.forEach(prompt, blockOf)

/** The text that a person wrote, without the resources behind it. */
export const wordsOf = (prompt: ReadonlyArray<Acp.ContentBlock>): string =>
  prompt
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("\n")
    .trim()
