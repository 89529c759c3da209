/** The styles of a Word document, and the numbers of its lists. */
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../../core/Document.ts"
import { cut } from "../../../support/text/text.ts"
import type { Fail } from "../failure.ts"
import { count, type Counters, indentOf, levelOf, makeCounters, numeralOf, type Numerals, wholeOf } from "../labels.ts"
import { whole } from "../xml.ts"
import type { Archive } from "../zip.ts"

/** A short text apart from the chunk that it came in, which it would keep otherwise. */
const own = (text: string | undefined): string => structuredClone(cut(text ?? "", 100, ""))

/** The place of a paragraph in a list; without a level, it is the level of one of the styles. */
interface Place {
  readonly list: string
  readonly level: number | undefined
  readonly styles: ReadonlyArray<string>
}

interface Style {
  name: string
  basedOn: string | undefined
  outline: number | undefined
  list: string | undefined
  level: number | undefined
}

type Styles = ReadonlyMap<string, Style>

const nothing = () => undefined

const stylesOf = (archive: Archive, path: string, fail: Fail): Effect.Effect<Styles, DocumentError> => {
  const styles = new Map<string, Style>()
  let style: Style | undefined
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      if (name === "style") {
        style = { name: "", basedOn: undefined, outline: undefined, list: undefined, level: undefined }
        styles.set(own(attributes("styleId")), style)
      }
      if (style === undefined) return
      const value = attributes("val")
      if (name === "name") style.name = own(value).toLowerCase()
      else if (name === "basedOn") style.basedOn = own(value)
      else if (name === "outlineLvl") style.outline = levelOf(value)
      else if (name === "numId") style.list = own(value)
      else if (name === "ilvl") style.level = levelOf(value)
    },
    text: nothing,
    close: (name) => {
      if (name === "style") style = undefined
    }
  }).pipe(Effect.as(styles))
}

interface Level {
  start: number
  format: string
  text: string
  isLegal: boolean
  /** The level below which this one begins anew: 0 for never. */
  restart: number | undefined
  style: string | undefined
}

interface List {
  readonly levels: Array<Level | undefined>
  /** The style that has the levels. */
  link: string | undefined
}

interface Instance {
  list: string
  /** Levels that begin at another number, or are others. */
  readonly starts: Array<number | undefined>
  readonly levels: Array<Level | undefined>
}

interface Numbering {
  readonly lists: ReadonlyMap<string, List>
  readonly instances: ReadonlyMap<string, Instance>
}

const makeLevel = (): Level => ({
  start: 1,
  format: "decimal",
  text: "",
  isLegal: false,
  restart: undefined,
  style: undefined
})

const isOn = (value: string | undefined): boolean => value === undefined || /^(?:1|true|on)$/.test(value)

const numberingOf = (archive: Archive, path: string, fail: Fail): Effect.Effect<Numbering, DocumentError> => {
  const lists = new Map<string, List>()
  const instances = new Map<string, Instance>()
  let list: List | undefined
  let instance: Instance | undefined
  let level: Level | undefined
  let overridden = 0
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      const value = attributes("val")
      switch (name) {
        case "abstractNum":
          list = { levels: [], link: undefined }
          lists.set(own(attributes("abstractNumId")), list)
          return
        case "numStyleLink":
          if (list !== undefined) list.link = own(value)
          return
        case "num":
          instance = { list: "", starts: [], levels: [] }
          instances.set(own(attributes("numId")), instance)
          return
        case "abstractNumId":
          if (instance !== undefined) instance.list = own(value)
          return
        case "lvlOverride":
          overridden = levelOf(attributes("ilvl"))
          return
        case "startOverride":
          if (instance !== undefined) instance.starts[overridden] = wholeOf(value, 1)
          return
        case "lvl": {
          level = makeLevel()
          const levels = instance?.levels ?? list?.levels
          if (levels !== undefined) levels[levelOf(attributes("ilvl"))] = level
          return
        }
      }
      if (level === undefined) return
      if (name === "start") level.start = wholeOf(value, 1)
      else if (name === "numFmt") level.format = own(value)
      else if (name === "lvlText") level.text = structuredClone(cut(value ?? "", 50, ""))
      else if (name === "isLgl") level.isLegal = isOn(value)
      else if (name === "lvlRestart") level.restart = levelOf(value)
      else if (name === "pStyle") level.style = own(value)
    },
    text: nothing,
    close: (name) => {
      if (name === "lvl") level = undefined
      else if (name === "abstractNum") list = undefined
      else if (name === "num") instance = undefined
    }
  }).pipe(Effect.as({ lists, instances }))
}

const numerals = new Map<string, Numerals>([
  ["decimalZero", "zero"],
  ["lowerLetter", "letters"],
  ["upperLetter", "LETTERS"],
  ["lowerRoman", "roman"],
  ["upperRoman", "ROMAN"]
])

/** What is known of a paragraph when it ends. */
export interface Paragraph {
  style: string | undefined
  list: string | undefined
  level: number | undefined
  outline: number | undefined
}

/** A style and those that it is based on, nearest first. */
const chainOf = (styles: Styles, id: string): ReadonlyArray<readonly [string, Style]> => {
  const chain: Array<readonly [string, Style]> = []
  for (let next: string | undefined = id; next !== undefined && chain.length < 20;) {
    const style: Style | undefined = styles.get(next)
    if (style === undefined) break
    chain.push([next, style])
    next = style.basedOn
  }
  return chain
}

const headingName = /^heading ?([1-9])$/i

/** The level of a heading, from 1; `undefined` for a paragraph of text. Names are English in every language of Word. */
const headingOf = (styles: Styles, { outline, style: id }: Paragraph): number | undefined => {
  if (outline !== undefined) return outline < 9 ? outline + 1 : undefined
  if (id === undefined) return undefined
  const chain = chainOf(styles, id)
  if (chain.length === 0) return /^title$/i.test(id) ? 1 : Number(headingName.exec(id)?.[1]) || undefined
  for (const [, style] of chain) {
    if (style.outline !== undefined) return style.outline < 9 ? style.outline + 1 : undefined
    const named = headingName.exec(style.name)?.[1]
    if (named !== undefined) return Number(named)
    if (style.name === "title") return 1
  }
  return undefined
}

const listName = /^list ?(?:bullet|number)/i

/** Writes the beginnings of paragraphs, which must be asked for in the order of the document. */
const makePrefixes = (styles: Styles, { instances, lists }: Numbering): ((paragraph: Paragraph) => string) => {
  const counters = new Map<string, Counters>()
  const begun = new Set<string>()

  const resolved = (instance: Instance): readonly [string, List] | undefined => {
    const list = lists.get(instance.list)
    if (list === undefined) return undefined
    const linked = list.link === undefined ? undefined : instances.get(styles.get(list.link)?.list ?? "")
    const levels = linked === undefined ? undefined : lists.get(linked.list)
    return linked !== undefined && levels !== undefined ? [linked.list, levels] : [instance.list, list]
  }

  const labelOf = (values: Counters["values"], levels: ReadonlyArray<Level | undefined>, { isLegal, text }: Level) =>
    text.replaceAll(/%([1-9])/g, (_, digit: string) => {
      const at = Number(digit) - 1
      const level = levels[at]
      const format = isLegal ? undefined : numerals.get(level?.format ?? "")
      return numeralOf(format ?? "decimal", values[at] ?? level?.start ?? 1)
    })

  const item = ({ level, list: id, styles: ids }: Place): string => {
    const instance = instances.get(id)
    const found = instance === undefined ? undefined : resolved(instance)
    if (instance === undefined || found === undefined) return `${indentOf(level ?? 0)}- `
    const [key, list] = found
    const levels = Array.from({ length: 10 }, (_, at) => instance.levels[at] ?? list.levels[at])
    const named = ids.map((style) => levels.findIndex((one) => one?.style === style)).find((found) => found >= 0)
    const at = level ?? named ?? 0
    const own = levels[at]
    if (own === undefined) return `${indentOf(at)}- `
    const known = counters.get(key) ?? makeCounters()
    counters.set(key, known)
    if (!begun.has(id)) {
      begun.add(id)
      for (const [index, start] of instance.starts.entries()) if (start !== undefined) known.values[index] = undefined
    }
    count(known, at, instance.starts[at] ?? own.start, (deeper) => {
      const restart = levels[deeper]?.restart
      return restart !== undefined && (restart === 0 || at >= restart)
    })
    if (own.format === "bullet") return `${indentOf(at)}- `
    const label = labelOf(known.values, levels, own).trim()
    return label === "" ? indentOf(at) : `${indentOf(at)}${label} `
  }

  const placeOf = ({ level, list, style }: Paragraph): Place | undefined => {
    const chain = style === undefined ? [] : chainOf(styles, style)
    const id = list ?? chain.find(([, one]) => one.list !== undefined)?.[1].list
    if (id === undefined) return undefined
    const ofStyles = list === undefined ? chain.find(([, one]) => one.level !== undefined)?.[1].level : undefined
    return { list: id, level: level ?? ofStyles, styles: chain.map(([found]) => found) }
  }

  return (paragraph) => {
    const { style } = paragraph
    const heading = headingOf(styles, paragraph)
    const place = placeOf(paragraph)
    const isNone = place?.list === "0"
    const label = place === undefined || isNone ? undefined : item(place)
    if (heading !== undefined) {
      const number = (label ?? "").trim()
      return `${"#".repeat(Math.min(6, heading))} ${number === "" || number === "-" ? "" : `${number} `}`
    }
    if (label !== undefined || isNone || style === undefined) return label ?? ""
    return listName.test(styles.get(style)?.name ?? style) ? "- " : ""
  }
}

/** Reads the styles and the numbering of a document. */
export const prefixesOf = (
  archive: Archive,
  paths: { readonly styles: string; readonly numbering: string },
  fail: Fail
): Effect.Effect<(paragraph: Paragraph) => string, DocumentError> =>
  Effect.gen(function* () {
    const styles = yield* stylesOf(archive, paths.styles, fail)
    return makePrefixes(styles, yield* numberingOf(archive, paths.numbering, fail))
  })
