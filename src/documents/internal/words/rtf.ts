/** Reads RTF: paragraphs, headings, numbered lists, tables, notes, comments, headers and footers. */
import * as Stream from "effect/Stream"
import type { Input, Piece } from "../../../core/Document.ts"
import { encodingOfCodePage, encodingsOfFonts } from "../../../support/text/charset.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { indentOf, parseLevel } from "../labels.ts"
import { makeWriter, type Writer } from "../writer.ts"
import { scanTokens, type TokenHandler } from "./rtfTokens.ts"
import { makeScripts, type Script } from "./scripts.ts"

/** Groups whose content is not shown. */
const skipped = new Set(
  "fonttbl colortbl stylesheet info pict objdata sn sv sp nonshppict listtable listoverridetable xmlnstbl filetbl themedata colorschememapping datastore latentstyles atnid".split(
    " "
  )
)

/** Optional groups that are shown. */
const optional = new Set(["shpinst", "annotation", "atnauthor", "pntext"])

/** Headers and footers, also of left, right and first pages. */
const edges = /^(header|footer)[lrf]?$/

/** Words that stand for a character. */
const characters = new Map([
  ["line", "\n"],
  ["tab", "\t"],
  ["emdash", "—"],
  ["endash", "–"],
  ["bullet", "•"],
  ["lquote", "‘"],
  ["rquote", "’"],
  ["ldblquote", "“"],
  ["rdblquote", "”"],
  ["nestcell", " "]
])

interface Group {
  /** Destination of text: the document, a label, the name of an author, or none. */
  readonly to: "text" | "label" | "author" | "nowhere"
  readonly isHidden: boolean
  readonly script: Script
  readonly encoding: string | undefined
  /** Number of bytes after a Unicode character that repeat it for older programs. */
  readonly fallback: number
  /** Text that is written at the end of the group. */
  readonly end: string
  /** True in a note or a comment, which stays inside its paragraph. */
  readonly isInline: boolean
  readonly edge: string
}

const firstGroup: Group = {
  to: "text",
  isHidden: false,
  script: "",
  encoding: undefined,
  fallback: 1,
  end: "",
  isInline: false,
  edge: ""
}

const maxDepth = 1_000
const maxFonts = 10_000
const shortLength = 100

/** Writes the paragraphs of RTF, with their headings and list labels. */
const makeParagraphs = (writer: Writer) => {
  let label = ""
  let level = 0
  let outline: number | undefined
  return {
    reset: () => {
      level = 0
      outline = undefined
    },
    setLevel: (value: number | undefined) => (level = parseLevel(String(value ?? 0))),
    setOutline: (value: number | undefined) =>
      (outline = value !== undefined && value >= 0 && value < 9 ? value : undefined),
    beginLabel: () => (label = ""),
    addLabel: (text: string) => (label = cut(label + text, shortLength, "")),
    end: (edge: string) => {
      const mark = joinLines(label)
      const item = mark === "" ? "" : `${indentOf(level)}${/[\p{L}\p{N}]/u.test(mark) ? mark : "-"} `
      const prefix = outline === undefined ? item : `${"#".repeat(Math.min(6, outline + 1))} ${item.trimStart()}`
      writer.paragraph(edge + prefix)
      label = ""
    }
  }
}

/** Writes the rows of a table. RTF has no element for a cell: it marks their ends. */
const makeTable = (writer: Writer) => {
  let inRow = false
  return {
    isOpen: () => inRow,
    openRow: () => {
      if (inRow) return
      inRow = true
      writer.row.open()
      writer.cell.open()
    },
    endCell: () => {
      writer.cell.close()
      writer.cell.open()
    },
    closeRow: () => {
      if (inRow) writer.row.close()
      inRow = false
    }
  }
}

/** Collects bytes, so that characters of several bytes are decoded together. */
const makeBuffer = (flush: (bytes: Uint8Array) => void) => {
  const buffer = new Uint8Array(4_096)
  let length = 0
  const flushBuffer = () => {
    if (length > 0) flush(buffer.subarray(0, length))
    length = 0
  }
  return {
    add: (byte: number) => {
      buffer[length++] = byte
      if (length === buffer.length) flushBuffer()
    },
    flush: flushBuffer
  }
}

/** Makes a handler that writes tokens. `end` writes the open paragraph. */
const makeReader = (writer: Writer): TokenHandler & { readonly end: () => void } => {
  const scripts = makeScripts(writer)
  const paragraphs = makeParagraphs(writer)
  const groups: Array<Group> = []
  const fonts = new Map<number, string | undefined>()
  const rows = makeTable(writer)
  let group = firstGroup
  let defaultEncoding = "windows-1252"
  /** Number of open groups beyond the maximum depth. */
  let excess = 0
  /** Number of characters to skip after a Unicode character. */
  let skip = 0
  let isOptional = false
  let font = -1
  let author = ""

  const setGroup = (change: Partial<Group>) => {
    group = { ...group, ...change }
  }
  const write = (text: string) => {
    if (group.isHidden || group.to === "nowhere") return
    if (group.to === "label") paragraphs.addLabel(text)
    else if (group.to === "author") author = cut(author + text, shortLength, "")
    else scripts.text(text, group.script)
  }
  const buffer = makeBuffer((bytes) => write(new TextDecoder(group.encoding ?? defaultEncoding).decode(bytes)))
  const endParagraph = () => {
    scripts.close()
    paragraphs.end(group.edge)
  }
  const breakParagraph = () => {
    skip = 0
    if (group.isInline) write(" ")
    else if (group.to === "text") endParagraph()
  }
  const beginLabel = () => {
    paragraphs.beginLabel()
    setGroup({ to: "label" })
  }
  /** Begins a note inside its paragraph. */
  const beginNote = (start: string) => {
    scripts.close()
    write(start)
    setGroup({ isInline: true, end: "]" })
  }
  const hide = (value: number | undefined) => setGroup({ isHidden: value !== 0 })

  const words: { readonly [word: string]: (value: number | undefined) => void } = {
    par: breakParagraph,
    sect: breakParagraph,
    page: breakParagraph,
    nestrow: breakParagraph,
    pard: paragraphs.reset,
    ilvl: paragraphs.setLevel,
    outlinelevel: paragraphs.setOutline,
    trowd: () => group.to === "text" && rows.openRow(),
    cell: () => {
      if (!rows.isOpen()) return write(" ")
      endParagraph()
      rows.endCell()
    },
    row: rows.closeRow,
    listtext: beginLabel,
    pntext: beginLabel,
    atnauthor: () => {
      author = ""
      setGroup({ to: "author" })
    },
    annotation: () => beginNote(author === "" ? " [comment: " : ` [comment by ${joinLines(author)}: `),
    footnote: () => beginNote(" [note: "),
    super: (value) => setGroup({ script: value === 0 ? "" : "^" }),
    sub: (value) => setGroup({ script: value === 0 ? "" : "_" }),
    nosupersub: () => setGroup({ script: "" }),
    plain: () => setGroup({ script: "", isHidden: false, encoding: undefined }),
    v: hide,
    deleted: hide,
    uc: (value) => setGroup({ fallback: Math.min(10, Math.max(0, value ?? 1)) }),
    u: (value) => {
      write(String.fromCharCode((value ?? 63) & 0xffff))
      skip = group.fallback
    },
    f: (value) => {
      font = value ?? -1
      setGroup({ encoding: fonts.get(font) })
    },
    fcharset: (value) => fonts.size < maxFonts && fonts.set(font, encodingsOfFonts.get(value ?? 0)),
    mac: () => (defaultEncoding = "macintosh"),
    ansicpg: (value) => value !== undefined && (defaultEncoding = encodingOfCodePage(value))
  }
  const table = new Map(Object.entries(words))

  const readWord = (name: string, value: number | undefined) => {
    const wasOptional = isOptional
    isOptional = false
    if (skipped.has(name) || (wasOptional && !optional.has(name))) return setGroup({ to: "nowhere" })
    const edge = edges.exec(name)?.[1]
    if (edge !== undefined) {
      endParagraph()
      return setGroup({ edge: `${edge}: ` })
    }
    const character = characters.get(name)
    if (character === undefined) table.get(name)?.(value)
    else write(character)
  }

  return {
    openGroup: () => {
      buffer.flush()
      skip = 0
      if (groups.length < maxDepth) {
        groups.push(group)
        setGroup({ end: "" })
      } else excess++
    },
    closeGroup: () => {
      buffer.flush()
      skip = 0
      if (excess > 0) {
        excess--
        return
      }
      if (group.end !== "") {
        scripts.close()
        write(group.end)
      }
      const outer = groups.pop()
      if (outer === undefined) return
      if (group.edge !== outer.edge) endParagraph()
      group = outer
    },
    word: (name, value) => {
      // A word repeats a Unicode character if it stands for a character, and not if it does something.
      if (skip > 0 && !table.has(name)) skip--
      else {
        buffer.flush()
        readWord(name, value)
      }
    },
    byte: (code) => {
      if (skip > 0) skip--
      else buffer.add(code)
    },
    optional: () => (isOptional = true),
    end: () => {
      buffer.flush()
      endParagraph()
    }
  }
}

const parse = function* (bytes: Uint8Array): Generator<ReadonlyArray<Piece>> {
  const writer = makeWriter()
  const reader = makeReader(writer)
  for (const _ of scanTokens(bytes, reader)) yield writer.take()
  reader.end()
  yield writer.end()
}

export const readRtf = ({ bytes }: Input): Stream.Stream<Piece> =>
  Stream.suspend(() => Stream.fromIterable(parse(bytes), { chunkSize: 1 })).pipe(
    Stream.flatMap((pieces) => Stream.fromArray(pieces))
  )
