/** Reads messages in the form of chat completions, which other protocols have, too. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Content from "../../../core/Content.ts"
import { readFile } from "./input.ts"

const ContentPart = Schema.Struct({
  type: Schema.String,
  text: Schema.optionalKey(Schema.String),
  image_url: Schema.optionalKey(Schema.Union([Schema.String, Schema.Struct({ url: Schema.String })])),
  file_data: Schema.optionalKey(Schema.String),
  filename: Schema.optionalKey(Schema.String),
  file: Schema.optionalKey(
    Schema.Struct({ file_data: Schema.optionalKey(Schema.String), filename: Schema.optionalKey(Schema.String) })
  )
})

/** A message in the form of chat completions. */
export const Said = Schema.Struct({
  role: Schema.optionalKey(Schema.String),
  content: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Array(ContentPart)])))
})

/** Reads the text and the files of a message. */
export const readContent = Effect.fnUntraced(function* (content: (typeof Said.Type)["content"]) {
  const blocks: Array<Content.Block> = []
  if (typeof content === "string") return content === "" ? blocks : [Content.text(content)]
  for (const part of content ?? []) {
    if (part.text !== undefined && part.text !== "") blocks.push(Content.text(part.text))
    const { filename } = part.file ?? part
    const image = typeof part.image_url === "string" ? part.image_url : part.image_url?.url
    const url = image ?? part.file?.file_data ?? part.file_data
    if (url !== undefined) blocks.push(yield* readFile(url, image === undefined ? undefined : "image/png", filename))
  }
  return blocks
})
