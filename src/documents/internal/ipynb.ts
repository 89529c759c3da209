/** Reads Jupyter notebooks: cells with their outputs. */
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { cut } from "../../support/text/text.ts"
import { makeFail } from "./failure.ts"
import { type Cursor, makeCursor } from "./json.ts"

const fail = makeFail("notebook")

/** Maximum characters of one output. */
const outputLength = 10_000

// oxlint-disable-next-line no-control-regex -- terminal colours
const colours = /\u001b\[[0-9;]*m/g

/** Reads a string or a list of lines. It may drop text beyond `most` characters. */
const readLines = (json: Cursor, most: number): string => {
  if (json.isString()) return json.string() ?? ""
  let text = ""
  json.array(() => {
    const line = json.string() ?? ""
    if (text.length <= most) text += line
  })
  return text
}

const readOutputText = (json: Cursor): string => {
  const text = readLines(json, 2 * outputLength)
  return cut(text.slice(0, 2 * outputLength).replaceAll(colours, ""), outputLength).trimEnd()
}

const readOutput = (json: Cursor): ReadonlyArray<string> => {
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
    else if (key === "text") text = readOutputText(json)
    else if (key === "data") {
      json.object((format) => {
        if (format === "text/plain") plain = readOutputText(json)
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

const readCell = (json: Cursor): Omit<Piece, "part"> => {
  let type: string | undefined
  let source: string | undefined
  const outputs: Array<string> = []
  json.object((key) => {
    if (key === "cell_type") type = json.string()
    else if (key === "source") source = readLines(json, Infinity)
    else if (key === "outputs") {
      json.array(() => {
        for (const output of readOutput(json)) outputs.push(output)
      })
    } else json.skip()
  })
  if (type === undefined || source === undefined) json.fail()
  const kind = cut(type ?? "", 20)
  const texts = [(source ?? "").trimEnd(), ...outputs.map((output) => `Output of the ${kind} cell:\n${output}`)]
  return { label: kind, text: texts.map((text) => `${text}\n`).join("") }
}

/** Reads cells one at a time. The cursor fails if the text is not a notebook. */
const readCells = function* (json: Cursor): Generator<Piece> {
  let part = 0
  let isNotebook = false
  const cells = function* (): Generator<Piece> {
    if (!json.takes("[")) return json.fail()
    if (json.takes("]")) return
    do {
      const { label, text } = readCell(json)
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

export const readIpynb = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.suspend(() => {
    const json = makeCursor(new TextDecoder().decode(bytes))
    return Stream.concat(
      Stream.fromIterable(readCells(json), { chunkSize: 16 }),
      Stream.suspend(() =>
        json.isBroken() ? Stream.fail(fail("Damaged", "it is not JSON with a list of cells")) : Stream.empty
      )
    )
  })
