/** Styles and list numbers of Word documents. */
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../../core/Document.ts"
import type { Fail } from "../failure.ts"
import {
  type Counters,
  countItem,
  formatNumber,
  indentOf,
  makeCounters,
  type Numerals,
  parseLevel,
  parseWhole
} from "../labels.ts"
import { copyText } from "../names.ts"
import { type Attributes, handleElements, readPart } from "../xml.ts"
import type { Archive } from "../zip.ts"

/** The place of a paragraph in a list. Without a level, one of the styles decides it. */
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

const readStyles = (archive: Archive, path: string, fail: Fail): Effect.Effect<Styles, DocumentError> => {
  const styles = new Map<string, Style>()
  let style: Style | undefined
  const setStyle = (change: (value: string | undefined) => Partial<Style>) => (attributes: Attributes) => {
    if (style !== undefined) Object.assign(style, change(attributes("val")))
  }
  const handler = handleElements({
    style: {
      open: (attributes) => {
        style = { name: "", basedOn: undefined, outline: undefined, list: undefined, level: undefined }
        styles.set(copyText(attributes("styleId")), style)
      },
      close: () => (style = undefined)
    },
    name: setStyle((name) => ({ name: copyText(name).toLowerCase() })),
    basedOn: setStyle((id) => ({ basedOn: copyText(id) })),
    outlineLvl: setStyle((level) => ({ outline: parseLevel(level) })),
    numId: setStyle((id) => ({ list: copyText(id) })),
    ilvl: setStyle((level) => ({ level: parseLevel(level) }))
  })
  return readPart(archive, path, fail, handler).pipe(Effect.as(styles))
}

interface Level {
  start: number
  format: string
  text: string
  isLegal: boolean
  /** The level whose items reset this one. 0 for never. */
  restart: number | undefined
  style: string | undefined
}

interface List {
  readonly levels: Array<Level | undefined>
  /** The style that defines the levels. */
  link: string | undefined
}

interface Instance {
  list: string
  /** Levels that override those of the list. */
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

const readNumbering = (archive: Archive, path: string, fail: Fail): Effect.Effect<Numbering, DocumentError> => {
  const lists = new Map<string, List>()
  const instances = new Map<string, Instance>()
  let list: List | undefined
  let instance: Instance | undefined
  let level: Level | undefined
  let overridden = 0
  const setLevel = (change: (value: string | undefined) => Partial<Level>) => (attributes: Attributes) => {
    if (level !== undefined) Object.assign(level, change(attributes("val")))
  }
  const handler = handleElements({
    abstractNum: {
      open: (attributes) => {
        list = { levels: [], link: undefined }
        lists.set(copyText(attributes("abstractNumId")), list)
      },
      close: () => (list = undefined)
    },
    numStyleLink: (attributes) => {
      if (list !== undefined) list.link = copyText(attributes("val"))
    },
    num: {
      open: (attributes) => {
        instance = { list: "", starts: [], levels: [] }
        instances.set(copyText(attributes("numId")), instance)
      },
      close: () => (instance = undefined)
    },
    abstractNumId: (attributes) => {
      if (instance !== undefined) instance.list = copyText(attributes("val"))
    },
    lvlOverride: (attributes) => (overridden = parseLevel(attributes("ilvl"))),
    startOverride: (attributes) => {
      if (instance !== undefined) instance.starts[overridden] = parseWhole(attributes("val"), 1)
    },
    lvl: {
      open: (attributes) => {
        level = makeLevel()
        const levels = instance?.levels ?? list?.levels
        if (levels !== undefined) levels[parseLevel(attributes("ilvl"))] = level
      },
      close: () => (level = undefined)
    },
    start: setLevel((value) => ({ start: parseWhole(value, 1) })),
    numFmt: setLevel((value) => ({ format: copyText(value) })),
    lvlText: setLevel((value) => ({ text: copyText(value, 50) })),
    isLgl: setLevel((value) => ({ isLegal: isOn(value) })),
    lvlRestart: setLevel((value) => ({ restart: parseLevel(value) })),
    pStyle: setLevel((value) => ({ style: copyText(value) }))
  })
  return readPart(archive, path, fail, handler).pipe(Effect.as({ lists, instances }))
}

const numerals = new Map<string, Numerals>([
  ["decimalZero", "zero"],
  ["lowerLetter", "letters"],
  ["upperLetter", "LETTERS"],
  ["lowerRoman", "roman"],
  ["upperRoman", "ROMAN"]
])

/** Formatting of a paragraph. */
export interface Paragraph {
  style: string | undefined
  list: string | undefined
  level: number | undefined
  outline: number | undefined
}

/** Lists a style and its base styles, nearest first. */
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

/** Finds the level of a heading, from 1. Word stores English names in every language. */
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

/** Makes a function that numbers paragraphs. Call it in the order of the document. */
const makePrefixes = (styles: Styles, { instances, lists }: Numbering): ((paragraph: Paragraph) => string) => {
  const counters = new Map<string, Counters>()
  const started = new Set<string>()

  const resolveList = (instance: Instance): readonly [string, List] | undefined => {
    const list = lists.get(instance.list)
    if (list === undefined) return undefined
    const linked = list.link === undefined ? undefined : instances.get(styles.get(list.link)?.list ?? "")
    const levels = linked === undefined ? undefined : lists.get(linked.list)
    return linked !== undefined && levels !== undefined ? [linked.list, levels] : [instance.list, list]
  }

  const renderLabel = (
    values: Counters["values"],
    levels: ReadonlyArray<Level | undefined>,
    { isLegal, text }: Level
  ) =>
    text.replaceAll(/%([1-9])/g, (_, digit: string) => {
      const at = Number(digit) - 1
      const level = levels[at]
      const format = isLegal ? undefined : numerals.get(level?.format ?? "")
      return formatNumber(format ?? "decimal", values[at] ?? level?.start ?? 1)
    })

  const makeItem = ({ level, list: id, styles: ids }: Place): string => {
    const instance = instances.get(id)
    const resolution = instance === undefined ? undefined : resolveList(instance)
    if (instance === undefined || resolution === undefined) return `${indentOf(level ?? 0)}- `
    const [key, list] = resolution
    const levels = Array.from({ length: 10 }, (_, at) => instance.levels[at] ?? list.levels[at])
    const named = ids.map((style) => levels.findIndex((one) => one?.style === style)).find((index) => index >= 0)
    const at = level ?? named ?? 0
    const own = levels[at]
    if (own === undefined) return `${indentOf(at)}- `
    const counter = counters.get(key) ?? makeCounters()
    counters.set(key, counter)
    if (!started.has(id)) {
      started.add(id)
      for (const [index, start] of instance.starts.entries()) if (start !== undefined) counter.values[index] = undefined
    }
    countItem(counter, at, instance.starts[at] ?? own.start, (deeper) => {
      const restart = levels[deeper]?.restart
      return restart !== undefined && (restart === 0 || at >= restart)
    })
    if (own.format === "bullet") return `${indentOf(at)}- `
    const label = renderLabel(counter.values, levels, own).trim()
    return label === "" ? indentOf(at) : `${indentOf(at)}${label} `
  }

  const placeOf = ({ level, list, style }: Paragraph): Place | undefined => {
    const chain = style === undefined ? [] : chainOf(styles, style)
    const id = list ?? chain.find(([, one]) => one.list !== undefined)?.[1].list
    if (id === undefined) return undefined
    const ofStyles = list === undefined ? chain.find(([, one]) => one.level !== undefined)?.[1].level : undefined
    return { list: id, level: level ?? ofStyles, styles: chain.map(([name]) => name) }
  }

  return (paragraph) => {
    const { style } = paragraph
    const heading = headingOf(styles, paragraph)
    const place = placeOf(paragraph)
    const isNone = place?.list === "0"
    const label = place === undefined || isNone ? undefined : makeItem(place)
    if (heading !== undefined) {
      const number = (label ?? "").trim()
      return `${"#".repeat(Math.min(6, heading))} ${number === "" || number === "-" ? "" : `${number} `}`
    }
    if (label !== undefined || isNone || style === undefined) return label ?? ""
    return listName.test(styles.get(style)?.name ?? style) ? "- " : ""
  }
}

/** Reads styles and numbering, and makes the function that returns the prefix of a paragraph. */
export const readPrefixes = (
  archive: Archive,
  paths: { readonly styles: string; readonly numbering: string },
  fail: Fail
): Effect.Effect<(paragraph: Paragraph) => string, DocumentError> =>
  Effect.gen(function* () {
    const styles = yield* readStyles(archive, paths.styles, fail)
    return makePrefixes(styles, yield* readNumbering(archive, paths.numbering, fail))
  })
