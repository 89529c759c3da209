/** Reads the files of a backend as documents. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Backend, type Paths } from "../../core/Backend.ts"
import type { BackendError } from "../../core/BackendError.ts"
import * as CoreDocument from "../../core/Document.ts"
import { sha256 } from "../../support/store/hash.ts"
import type { Document } from "../Chunk.ts"
import { markdown, type Splitter } from "../Chunker.ts"
import { isCode } from "./code/languages.ts"

/** A document that is read only if its content changed. */
export interface Item<E = never, R = never> {
  readonly id: string
  /** The hash of its content. */
  readonly content: string
  /** Reads it; a text says why it can't be indexed. */
  readonly read: Effect.Effect<Document | string, E, R>
  readonly split?: Splitter | undefined
}

/** The most characters of one document. */
const mostCharacters = 5_000_000

const isMarkdown = (path: string): boolean => /\.(?:md|mdx|markdown)$/i.test(path)

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** The title of a Markdown text: its first heading, near the beginning. */
const titleOf = (path: string, text: string): string => {
  const heading = isMarkdown(path) ? /^ {0,3}#[ \t]+(.+)$/m.exec(text.slice(0, 4_000))?.[1] : undefined
  return (heading ?? nameOf(path)).trim().slice(0, 300)
}

/** Decodes a text file; `undefined` for binary content. */
const decodeText = (bytes: Uint8Array): string | undefined => {
  const text = new TextDecoder().decode(bytes)
  return bytes.subarray(0, 8_000).includes(0) ? undefined : text
}

/** The metadata of files with code, by which they are searched alone. */
export const codeMetadata = { kind: "code" } as const

const readDocument = Effect.fnUntraced(function* (
  path: string,
  source: string,
  bytes: Uint8Array,
  formats: ReadonlyArray<CoreDocument.Format>
): Effect.fn.Return<Document | string> {
  const name = nameOf(path)
  const format = CoreDocument.find(formats, { bytes, name })
  if (format === undefined) {
    const text = decodeText(bytes)
    if (text === undefined) return "it is neither text nor a known format"
    const whole = { id: path, text: text.slice(0, mostCharacters), title: titleOf(path, text), source }
    return isCode(path) ? { ...whole, metadata: codeMetadata } : whole
  }
  const parts: Array<{ readonly start: number; readonly label: string }> = []
  let text = ""
  let part = 0
  const readAll = CoreDocument.readPieces(format, { bytes, name }).pipe(
    Stream.takeWhile(() => text.length < mostCharacters),
    Stream.runForEach((piece) =>
      Effect.sync(() => {
        if (piece.part !== part) {
          if (text !== "" && !text.endsWith("\n")) text += "\n"
          parts.push({ start: text.length, label: piece.label })
          part = piece.part
        }
        text += piece.text
      })
    )
  )
  const problem = yield* Effect.match(readAll, { onFailure: ({ message }) => message, onSuccess: () => undefined })
  return problem ?? { id: path, text: text.slice(0, mostCharacters), title: titleOf(path, text), source, parts }
})

/** The files that are loaded at once. */
const batch = 16

/** Reports whether a file or a folder below the path begins with a dot: settings, caches and keys are no documents. */
const isHidden = (folder: string, file: string): boolean =>
  /(?:^|\/)\./.test(file.startsWith(folder) ? file.slice(folder.length) : file)

/** The beginning of the paths in a folder, as backends write them. */
export const beginningOf = (path: string, paths: Paths | undefined): string => {
  const whole = path.startsWith("/") ? path : `${paths?.cwd ?? ""}/${path}`
  const names = whole.split("/").filter((name) => name !== "" && name !== ".")
  return names.length === 0 ? "/" : `/${names.join("/")}/`
}

/** The files below a path, in the order of paths. `isWhole` is false if the backend could not list all. */
export const listFiles = Effect.fnUntraced(function* (
  path: string,
  { glob, most }: { readonly glob: string; readonly most: number }
): Effect.fn.Return<{ readonly paths: ReadonlyArray<string>; readonly isWhole: boolean }, BackendError, Backend> {
  const backend = yield* Backend
  const below = beginningOf(path, backend.paths)
  const { entries, truncated } = yield* backend.glob({ pattern: glob, path, limit: most })
  return {
    paths: entries.filter((entry) => entry.kind === "file" && !isHidden(below, entry.path)).map((entry) => entry.path),
    isWhole: truncated === undefined
  }
})

/** Loads files; each is parsed only when it is read. */
export const loadFiles = (
  paths: ReadonlyArray<string>,
  {
    code,
    formats,
    source
  }: {
    readonly source: string
    readonly formats: ReadonlyArray<CoreDocument.Format>
    readonly code: Splitter | undefined
  }
): Stream.Stream<Item, BackendError, Backend> =>
  Stream.fromIterable(paths).pipe(
    Stream.grouped(batch),
    Stream.mapEffect((some) =>
      Effect.flatMap(
        Backend.use((backend) => backend.download(some)),
        (files) =>
          Effect.forEach(files, (file): Effect.Effect<Item> => {
            if (!file.ok) {
              return Effect.succeed({ id: file.path, content: "", read: Effect.succeed(file.error.message) })
            }
            const { path, value } = file
            return Effect.map(sha256(Uint8Array.from(value)), (content) => ({
              id: path,
              content: `${content} ${source}`,
              read: readDocument(path, source, value, formats),
              split: isMarkdown(path) ? markdown : isCode(path) ? code : undefined
            }))
          })
      )
    ),
    Stream.flatMap(Stream.fromIterable)
  )
