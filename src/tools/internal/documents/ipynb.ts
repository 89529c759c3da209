/** Notebooks: the cells, with what they put out. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { cut } from "../../../support/text.ts"
import { failing } from "./failure.ts"

const fail = failing("notebook")

/** A text may be a list of its lines. */
const Lines = Schema.Union([Schema.String, Schema.Array(Schema.String)])

const Output = Schema.Struct({
  output_type: Schema.String,
  text: Schema.optionalKey(Lines),
  data: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  ename: Schema.optionalKey(Schema.String),
  evalue: Schema.optionalKey(Schema.String)
})

const Cell = Schema.Struct({
  cell_type: Schema.String,
  source: Lines,
  outputs: Schema.optionalKey(Schema.Array(Output))
})

const Notebook = Schema.fromJsonString(Schema.Struct({ cells: Schema.Array(Cell) }))

const decode = Schema.decodeEffect(Notebook)

const isLines = Schema.is(Lines)

/** Output of a cell is shown up to here: tables and logs may be endless. */
const outputLength = 10_000

const joined = (lines: typeof Lines.Type): string => (typeof lines === "string" ? lines : lines.join(""))

// oxlint-disable-next-line no-control-regex -- colours of a terminal
const colours = /\u001b\[[0-9;]*m/g

const outputOf = ({ data = {}, ename, evalue, output_type, text }: typeof Output.Type): ReadonlyArray<string> => {
  if (output_type === "error") return [`${ename ?? "error"}: ${evalue ?? ""}`]
  if (text !== undefined) return [joined(text)]
  const plain = data["text/plain"]
  const images = Object.keys(data).filter((type) => type.startsWith("image/"))
  return [...(isLines(plain) ? [joined(plain)] : []), ...images.map((type) => `[a picture, ${type}]`)]
}

const textOf = ({ cell_type, outputs = [], source }: typeof Cell.Type): string => {
  const shown = outputs.flatMap(outputOf).map((output) => cut(output.replaceAll(colours, ""), outputLength).trimEnd())
  return [joined(source).trimEnd(), ...shown.map((output) => `Output of the ${cell_type} cell:\n${output}`)]
    .map((text) => `${text}\n`)
    .join("")
}

export const read = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Effect.sync(() => new TextDecoder().decode(bytes)).pipe(
    Effect.flatMap(decode),
    Effect.mapError((error) => fail("Damaged", "it is not JSON with a list of cells", error)),
    Effect.map(({ cells }) =>
      Stream.fromIterable(cells).pipe(
        Stream.map((cell, index) => ({
          part: index + 1,
          label: `cell ${index + 1} (${cut(cell.cell_type, 20)})`,
          text: textOf(cell)
        }))
      )
    ),
    Stream.unwrap
  )
