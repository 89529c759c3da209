/** Documents in `read_file`: a window of their lines, read only as far as it reaches. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Backend from "../../../core/Backend.ts"
import * as Document from "../../../core/Document.ts"
import * as Sources from "../../../core/Sources.ts"
import * as ToolError from "../../../core/ToolError.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import * as Path from "../files/path.ts"
import { maxCharacters } from "../text/render.ts"
import { showPath } from "./text.ts"

/** The requested lines. A negative `offset` counts from the end. */
export interface Lines {
  readonly offset: number
  readonly limit: number
  /** The first part that is wanted, from 1: lines are counted from there. */
  readonly page: number
}

interface FoundLines {
  readonly lines: ReadonlyArray<string>
  readonly first: number
  readonly hasMore: boolean
}

/** The lines from `offset` on; one line behind them is looked at, to say whether there is more. */
const forward = <E>(lines: Stream.Stream<string, E>, { limit, offset }: Lines): Effect.Effect<FoundLines, E> =>
  Effect.suspend(() => {
    const excerpt: Array<string> = []
    let characters = 0
    let hasMore = false
    return lines.pipe(
      Stream.drop(offset - 1),
      Stream.takeWhile((line) => {
        hasMore = excerpt.length >= limit || (excerpt.length > 0 && characters + line.length > maxCharacters)
        return !hasMore
      }),
      Stream.runForEach((line) =>
        Effect.sync(() => {
          characters += line.length + 8
          excerpt.push(line)
        })
      ),
      Effect.map(() => ({ lines: excerpt, first: offset, hasMore }))
    )
  })

/** The last lines: all is read, and no more than they is kept. */
const backward = <E>(lines: Stream.Stream<string, E>, { limit, offset }: Lines): Effect.Effect<FoundLines, E> =>
  Effect.suspend(() => {
    let last: Array<string> = []
    let total = 0
    const count = Math.min(limit, -offset)
    return Stream.runForEachArray(lines, (batch) =>
      Effect.sync(() => {
        total += batch.length
        last = [...last, ...batch].slice(offset)
      })
    ).pipe(
      Effect.map(() => {
        const excerpt = last.slice(0, count)
        let characters = 0
        const cut = excerpt.findIndex((line, index) => (characters += line.length + 8) > maxCharacters && index > 0)
        const fitting = cut === -1 ? excerpt : excerpt.slice(0, cut)
        return { lines: fitting, first: total - last.length + 1, hasMore: fitting.length < last.length }
      })
    )
  })

const render = (format: Document.Format, { page }: Lines, { first, hasMore, lines }: FoundLines): string => {
  const last = first + lines.length - 1
  const from = page > 1 ? `, counted from part ${page}` : ""
  const end = hasMore ? `there is more: go on with offset ${last + 1}` : "this is the end"
  const note =
    lines.length === 0
      ? first > 1
        ? `nothing at offset ${first}${from}: the document ends before`
        : `no text in this ${format.name}${from}`
      : `lines ${first}–${last}${from}; ${end}`
  return [
    ...lines.map((line, index) => `${String(first + index).padStart(4)}\t${line}`),
    `[the text of this ${format.name}, ${note}]`
  ].join("\n")
}

const advice: { readonly [Reason in Document.DocumentError["reason"]]: string } = {
  Damaged: "",
  Encrypted: " Say that it is needed without a password.",
  TooLarge: "",
  TimedOut: " Begin at another page.",
  Unsupported: "",
  Unavailable: " Say so to whoever set this up."
}

/** Reads a window of a document. What it says is a source: the model cites it by number, and by the marks of its parts. */
export const readDocument = Effect.fnUntraced(function* (
  formats: ReadonlyArray<Document.Format>,
  format: Document.Format,
  file: Pick<Backend.BinaryFile, "path"> & { readonly mimeType?: string },
  wanted: Lines
) {
  const backend = yield* Backend.Backend
  const { path } = file
  const [transfer] = yield* backend.download([path])
  if (transfer === undefined) return yield* ToolError.make(`${showPath(path)} could not be had.`)
  if (!transfer.ok) return yield* Effect.fail(transfer.error)
  const name = Path.basename(path)
  const about = { bytes: transfer.value, name, mimeType: file.mimeType }
  const actual = Document.find(formats, about) ?? format
  const lines = Document.lines(Document.readPieces(actual, { ...about, from: wanted.page }))
  const excerpt = yield* (wanted.offset < 0 ? backward : forward)(lines, wanted).pipe(
    Effect.mapError((error) =>
      ToolError.make(`${showPath(path)} can't be read as a ${error.format}: ${error.message}.${advice[error.reason]}`)
    )
  )
  return ToolOutput.make(render(actual, wanted, excerpt), {
    details: {
      kind: "read",
      path,
      format: actual.name,
      startLine: excerpt.first,
      endLine: excerpt.first + excerpt.lines.length - 1
    },
    sources: [Sources.make({ key: path, title: name })]
  })
})
