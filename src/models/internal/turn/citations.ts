/** Converts the citations of every provider to citations of a text block. */
import type { Citation } from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Sources from "../../../core/Sources.ts"
import { cut } from "../../../support/text/text.ts"
import { objectOf, placeOf, stringOf } from "../wire/read.ts"

/** Of one text so many are kept. */
const most = 200

/**
 * Finds a passage in a text, or nothing. Providers count characters, JavaScript counts UTF-16 units: a character beyond
 * the first plane is two.
 */
const passageOf = (text: string, from: unknown, to: unknown): { readonly start?: number; readonly end?: number } => {
  const [first, last] = [placeOf(from), placeOf(to)]
  if (first === undefined || last === undefined || first >= last || last > text.length) return {}
  let [units, characters, start] = [0, 0, 0]
  for (const character of text) {
    if (characters === first) start = units
    if (characters === last) break
    units += character.length
    characters++
  }
  return characters === last ? { start, end: units } : {}
}

const rangeOf = (word: string, from: unknown, to: unknown): string | undefined => {
  const [first, last] = [placeOf(from), placeOf(to)]
  if (first === undefined) return undefined
  // Ends are exclusive.
  return last === undefined || last <= first + 1 ? `${word} ${first}` : `${word}s ${first}–${last - 1}`
}

/** A place in a document, in words: its page, its blocks or its characters. */
const locatorOf = (wire: JsonObject): string | undefined =>
  rangeOf("page", wire["start_page_number"], wire["end_page_number"]) ??
  rangeOf("block", wire["start_block_index"], wire["end_block_index"]) ??
  rangeOf("character", wire["start_char_index"], wire["end_char_index"])

/** The source of a citation. Documents of a request have a place in it and perhaps a title; files have an id. */
const sourceOf = (wire: JsonObject): Sources.CitedSource | undefined => {
  const url = stringOf(wire["url"])
  const title = stringOf(wire["title"]) ?? stringOf(wire["document_title"]) ?? stringOf(wire["filename"])
  const snippet = stringOf(wire["cited_text"])
  if (url !== undefined && url !== "") return Sources.make({ url, title, snippet })
  const place = placeOf(wire["document_index"])
  const id =
    stringOf(wire["file_id"]) ??
    stringOf(wire["source"]) ??
    title ??
    (place === undefined ? undefined : `document ${place + 1}`)
  return id === undefined || id === "" ? undefined : Sources.make({ key: id, title, snippet })
}

const placed = (place: unknown, offset: number): unknown => {
  const at = placeOf(place)
  return at === undefined ? place : at + offset
}

/**
 * The citations of a text, as its provider wrote them: annotations of OpenAI (`url_citation`, `file_citation` …, nested
 * or not), citations of Anthropic (pages, characters, blocks, search results). What can't be read is left out. The
 * provider's places begin `offset` characters into the text.
 */
export const citationsOf = (wires: ReadonlyArray<JsonObject>, text: string, offset = 0): ReadonlyArray<Citation> =>
  wires.slice(0, most).flatMap((outer): ReadonlyArray<Citation> => {
    const wire = { ...outer, ...objectOf(outer[stringOf(outer["type"]) ?? ""]) }
    const source = sourceOf(wire)
    if (source === undefined) return []
    const quote = stringOf(wire["cited_text"])
    const locator = locatorOf(wire)
    return [
      {
        source,
        ...passageOf(text, placed(wire["start_index"], offset), placed(wire["end_index"], offset)),
        ...(quote === undefined ? {} : { quote: cut(quote, 1_000) }),
        ...(locator === undefined ? {} : { locator })
      }
    ]
  })

/** The property of a text block for its citations, if there are any. */
export const cited = (
  wires: ReadonlyArray<JsonObject>,
  text: string,
  offset = 0
): { readonly citations?: ReadonlyArray<Citation> } => {
  const citations = citationsOf(wires, text, offset)
  return citations.length === 0 ? {} : { citations }
}
