/** Attaches the files that a message names. */
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Content from "../../../core/Content.ts"
import * as Message from "../../../core/Message.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import * as SqliteFiles from "../../../support/store/sqliteFiles.ts"
import { cleanLine } from "../../../support/text/clean.ts"

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

/** The most characters of a text that goes along, and of all of a message. */
const texts = { one: 60_000, all: 200_000 } as const

/** Reads a text below a folder. `undefined` if there is none, or if it lies outside. */
const readText = Effect.fnUntraced(function* (folder: string, name: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.realPath(folder)
  const real = yield* fs.realPath(path.resolve(root, name))
  if (!real.startsWith(root.endsWith(path.sep) ? root : root + path.sep)) return undefined
  const { dev, ino, size, type } = yield* fs.stat(real)
  if (type !== "File" || SqliteFiles.isOpen({ dev, ino: Option.getOrElse(ino, () => 0) })) return undefined
  if (size > texts.one) return { size: Number(size), text: undefined }
  const text = yield* fs.readFileString(real)
  return text.includes("\0") ? undefined : { size: Number(size), text }
})

/**
 * Makes a message with the images that its text names, and with the texts of the folder that it names behind an `@`.
 * Files that are too large are named only; `problems` tells the person.
 */
export const withFiles = Effect.fnUntraced(function* (text: string, id: string, folder = ".") {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const images: Array<Content.Block> = []
  const files = new Map<string, string>()
  const problems: Array<string> = []
  let remaining: number = texts.all
  for (const [word] of text.matchAll(words)) {
    const name = word.length > longest ? "" : unquoted(word)
    const extension = image.exec(name)?.[1]
    if (extension !== undefined) {
      const bytes = yield* Effect.option(fs.readFile(path.resolve(folder, name)))
      if (bytes._tag === "Some" && bytes.value.length <= largest) {
        const mimeType = valueAt(types, extension.toLowerCase()) ?? "image/png"
        images.push(Content.image({ base64: Base64.encode(bytes.value), mimeType }))
      }
    } else if (word.startsWith("@") && name !== "" && !files.has(name)) {
      const file = yield* Effect.orElseSucceed(readText(folder, name), () => undefined)
      if (file === undefined) continue
      if (file.text === undefined || file.text.length > remaining) {
        problems.push(`${cleanLine(name)} is too large to go along (${file.size} bytes); only its name does`)
      } else {
        remaining -= file.text.length
        files.set(name, file.text)
      }
    }
  }
  const attached = [...files].map(([name, value]) =>
    Content.text(`<file name=${JSON.stringify(name)}>\n${value}\n</file>`)
  )
  const message = Message.human([Content.text(text), ...attached, ...images], { id })
  return { message, problems }
})
