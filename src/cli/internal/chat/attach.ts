/** Attaches the images that a message names. */
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as FileSystem from "effect/FileSystem"
import * as Message from "../../../core/Message.ts"
import { valueAt } from "../../../support/json/valueAt.ts"

const types: { readonly [extension: string]: string } = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp"
}

/** Words as a shell splits them: quoted, or with escaped spaces. `@` picks a file. */
const words = /@?(?:"[^"\n]*"|'[^'\n]*'|(?:\\ |\S)+)/g

const image = /\.(png|jpe?g|gif|webp)$/i

/** The longest path that systems accept, in characters. */
const longest = 4_096

/** The largest image that is sent, in bytes. */
const largest = 20_000_000

const unquoted = (word: string): string =>
  word
    .replace(/^@/, "")
    .replace(/^(["'])(.*)\1$/, "$2")
    .replaceAll("\\ ", " ")

/** Makes a message with the existing images that its text names. */
export const withImages = Effect.fnUntraced(function* (text: string, id: string) {
  const fs = yield* FileSystem.FileSystem
  const images: Array<{ readonly base64: string; readonly mimeType: string }> = []
  for (const [word] of text.matchAll(words)) {
    const path = word.length > longest ? "" : unquoted(word)
    const extension = image.exec(path)?.[1]
    if (extension === undefined) continue
    const bytes = yield* Effect.option(fs.readFile(path))
    if (bytes._tag === "Some" && bytes.value.length <= largest) {
      images.push({
        base64: Base64.encode(bytes.value),
        mimeType: valueAt(types, extension.toLowerCase()) ?? "image/png"
      })
    }
  }
  return Message.human(text, images.length === 0 ? { id } : { id, images })
})
