/** Builds the first message of a run from the command line, the standard input, files and images. */
import { fstatSync } from "node:fs"
import { basename, extname } from "node:path"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as FileSystem from "effect/FileSystem"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Content from "../../../core/Content.ts"
import * as Message from "../../../core/Message.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { fail, orFail } from "../failure.ts"

const images: { readonly [extension: string]: string } = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp"
}

const documents: { readonly [extension: string]: string } = { ".pdf": "application/pdf" }

const mostBytes = 20 * 1024 * 1024

const bytesOf = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const { size } = yield* orFail("usage")(fs.stat(path))
  if (size > mostBytes) {
    return yield* fail("usage", `${path} has ${size} bytes; at most ${mostBytes} can be sent. Name it in the prompt.`)
  }
  return yield* orFail("usage")(fs.readFile(path))
})

const text = (name: string, value: string): Content.Block =>
  Content.text(`<file name=${JSON.stringify(name)}>\n${value}\n</file>`)

const attachment = Effect.fnUntraced(function* (path: string) {
  const bytes = yield* bytesOf(path)
  const extension = extname(path).toLowerCase()
  const image = valueAt(images, extension)
  if (image !== undefined) return Content.image({ base64: Base64.encode(bytes), mimeType: image })
  const document = valueAt(documents, extension)
  if (document !== undefined) {
    return Content.file({ base64: Base64.encode(bytes), mimeType: document, name: basename(path) })
  }
  const decoded = new TextDecoder("utf-8").decode(bytes)
  return decoded.includes("\u0000")
    ? yield* fail("usage", `${path} is no text, no PDF and no image (${Object.keys(images).join(", ")})`)
    : text(basename(path), decoded)
})

/**
 * Reports whether a pipe or a file is on the standard input. A parent process may leave the input open without
 * writing, so other kinds are read only for `-`.
 */
const isPiped: Effect.Effect<boolean> = Effect.orElseSucceed(
  Effect.try(() => {
    const info = fstatSync(0)
    return info.isFIFO() || (info.isFile() && info.size > 0)
  }),
  () => false
)

const stdin = Effect.fnUntraced(function* () {
  const stdio = yield* Stdio.Stdio
  return yield* orFail("failed", "The standard input can't be read: ")(Stream.mkString(Stream.decodeText(stdio.stdin)))
})

/** Reads the prompt. Without words the standard input is the prompt; with words it is appended, as files are. */
export const readPrompt = Effect.fnUntraced(function* (options: {
  readonly words: ReadonlyArray<string>
  readonly files: ReadonlyArray<string>
}) {
  const { files, words } = options
  const stdio = yield* Stdio.Stdio
  const prompt = words
    .filter((word) => word !== "-")
    .join(" ")
    .trim()
  const wants = words.includes("-") || (prompt === "" ? !(yield* stdio.stdinIsTerminal) : yield* isPiped)
  const piped = wants ? (yield* stdin()).trim() : ""
  const attached = yield* Effect.forEach(files, attachment)
  if (prompt === "" && piped === "") {
    return yield* fail("usage", 'There is no prompt. Say it: deepagents run "…", or pipe it in: … | deepagents run')
  }
  const first =
    prompt === "" ? [Content.text(piped)] : [Content.text(prompt), ...(piped === "" ? [] : [text("stdin", piped)])]
  return {
    title: (prompt === "" ? piped : prompt).replaceAll(/\s+/g, " ").slice(0, 80),
    message: Message.human([...first, ...attached])
  }
})
