/** Notebooks: the cells, with what they put out. */
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { cut } from "../../support/text/text.ts"
import { failing } from "./failure.ts"
import { type Cursor, cursor } from "./json.ts"

const fail = failing("notebook")

/** Output of a cell is shown up to here: tables and logs may be endless. */
const outputLength = 10_000

// oxlint-disable-next-line no-control-regex -- colours of a terminal
const colours = /\u001b\[[0-9;]*m/g

/** A text, which may be a list of its lines. What is beyond `most` characters need not be there. */
const linesOf = (json: Cursor, most: number): string => {
  if (json.isString()) return json.string() ?? ""
  let text = ""
  json.array(() => {
    const line = json.string() ?? ""
    if (text.length <= most) text += line
  })
  return text
}

const shownOf = (json: Cursor): string => {
  const text = linesOf(json, 2 * outputLength)
  return cut(text.slice(0, 2 * outputLength).replaceAll(colours, ""), outputLength).trimEnd()
}

const outputOf = (json: Cursor): ReadonlyArray<string> => {
  let type: string | undefined
  let error = "error"
  let problem = ""
  let text: string | undefined
  let plain: string | undefined
  const pictures = new Set<string>()
  json.object((key) => {
    if (key === "output_type") type = json.string()
    else if (key === "ename") error = json.string() ?? ""
    else if (key === "evalue") problem = json.string() ?? ""
    else if (key === "text") text = shownOf(json)
    else if (key === "data") {
      json.object((format) => {
        if (format === "text/plain") plain = shownOf(json)
        else {
          if (format.startsWith("image/")) pictures.add(`[a picture, ${cut(format, 100)}]`)
          json.skip()
        }
      })
    } else json.skip()
  })
  if (type === undefined) json.fail()
  if (type === "error") return [cut(`${error}: ${problem}`, outputLength)]
  return text === undefined ? [...(plain === undefined ? [] : [plain]), ...pictures] : [text]
}

const cellOf = (json: Cursor): Omit<Piece, "part"> => {
  let type: string | undefined
  let source: string | undefined
  const outputs: Array<string> = []
  json.object((key) => {
    if (key === "cell_type") type = json.string()
    else if (key === "source") source = linesOf(json, Infinity)
    else if (key === "outputs") {
      json.array(() => {
        for (const output of outputOf(json)) outputs.push(output)
      })
    } else json.skip()
  })
  if (type === undefined || source === undefined) json.fail()
  const kind = cut(type ?? "", 20)
  const texts = [(source ?? "").trimEnd(), ...outputs.map((output) => `Output of the ${kind} cell:\n${output}`)]
  return { label: kind, text: texts.map((text) => `${text}\n`).join("") }
}

/** The cells of a notebook, one at a time. The cursor is broken behind the last one if it is none. */
const cellsOf = function* (json: Cursor): Generator<Piece> {
  let part = 0
  let isNotebook = false
  const cells = function* (): Generator<Piece> {
    if (!json.takes("[")) return json.fail()
    if (json.takes("]")) return
    do {
      const { label, text } = cellOf(json)
      if (json.isBroken()) return
      part++
      yield { part, label: `cell ${part} (${label})`, text }
    } while (json.takes(","))
    if (!json.takes("]")) json.fail()
  }
  if (!json.takes("{")) return json.fail()
  do {
    const key = json.string()
    if (!json.takes(":")) return json.fail()
    if (key === "cells") {
      isNotebook = true
      yield* cells()
    } else json.skip()
  } while (json.takes(","))
  if (!json.takes("}") || !isNotebook) json.fail()
}

export const read = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.suspend(() => {
    const json = cursor(new TextDecoder().decode(bytes))
    return Stream.concat(
      Stream.fromIterable(cellsOf(json), { chunkSize: 16 }),
      Stream.suspend(() =>
        json.isBroken() ? Stream.fail(fail("Damaged", "it is not JSON with a list of cells")) : Stream.empty
      )
    )
  })
