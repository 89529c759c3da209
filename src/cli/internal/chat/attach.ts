/** Files of the machine that a message names: images go along with it. */
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as FileSystem from "effect/FileSystem"
import * as Message from "../../../core/Message.ts"

const types: { readonly [extension: string]: string } = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp"
}

const named = /(?:^|\s)@?((?:"[^"]{1,1024}"|'[^']{1,1024}'|(?:\\ |[^\s"']){1,1024})\.(png|jpe?g|gif|webp))(?=\s|$)/gi

/** The largest image that is sent along, in bytes. */
const largest = 20_000_000

const unquoted = (path: string): string => path.replace(/^(["'])(.*)\1$/, "$2").replaceAll("\\ ", " ")

/** A message with the images that its text names and that are there. */
export const withImages = Effect.fnUntraced(function* (text: string, id: string) {
  const fs = yield* FileSystem.FileSystem
  const images: Array<{ readonly base64: string; readonly mimeType: string }> = []
  for (const [, path = "", extension = ""] of text.matchAll(named)) {
    const bytes = yield* Effect.option(fs.readFile(unquoted(path)))
    if (bytes._tag === "Some" && bytes.value.length <= largest) {
      images.push({ base64: Base64.encode(bytes.value), mimeType: types[extension.toLowerCase()] ?? "image/png" })
    }
  }
  return Message.human(text, images.length === 0 ? { id } : { id, images })
})
