/** Writes lines, tables and JSON. Text of others is made harmless for the terminal. */
import * as Effect from "effect/Effect"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { escaped } from "../../support/text/untrusted.ts"
import { Failure } from "./failure.ts"

const toClosed = () => new Failure({ exit: "closed", message: "" })

/** Writes to the standard output at the reader's pace. Fails with `closed` when the reader left. */
export const write = (text: string) =>
  Stdio.Stdio.use((stdio) => Stream.run(Stream.make(text), Sink.mapError(stdio.stdout(), toClosed)))

/** Writes a stream of texts. */
export const writeAll = <E, R>(texts: Stream.Stream<string, E, R>) =>
  Stdio.Stdio.use((stdio) => Stream.run(texts, Sink.mapError(stdio.stdout(), toClosed)))

export const print = (...lines: ReadonlyArray<string>) => write(lines.map((line) => `${line}\n`).join(""))

export const printJson = (value: unknown) => write(`${JSON.stringify(value, null, 2)}\n`)

/** Writes to the standard error, for a person. Ignores a missing reader. */
export const tell = (...lines: ReadonlyArray<string>) =>
  Stdio.Stdio.use((stdio) =>
    Effect.ignore(Stream.run(Stream.make(lines.map((line) => `${line}\n`).join("")), stdio.stderr()))
  )

/** Reports whether somebody is there to ask: standard input and output are a terminal. */
export const canAsk = Stdio.Stdio.use((stdio) =>
  Effect.zipWith(stdio.stdinIsTerminal, stdio.stdoutIsTerminal, (input, output) => input && output)
)

/** Aligns columns. The last column has no padding. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const clean = rows.map((row) => row.map(escaped))
  const widths = (clean[0] ?? []).map((_, column) => Math.max(...clean.map((row) => (row[column] ?? "").length)))
  return clean.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd()
  )
}

/** Formats a past time, such as "2 hours ago", from milliseconds. */
export const ago = (millis: number): string => {
  const minutes = Math.floor(millis / 60_000)
  if (minutes < 1) return "now"
  if (minutes < 60) return `${minutes} min ago`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ago` : `${Math.floor(hours / 24)} days ago`
}
