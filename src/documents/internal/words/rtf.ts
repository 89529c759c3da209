/** Rich text: paragraphs, headings, lists with their numbers, tables, notes, comments, headers and footers. */
import * as Stream from "effect/Stream"
import type { Input, Piece } from "../../../core/Document.ts"
import { encodingOfCodePage, encodingsOfFonts } from "../../../support/text/charset.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { indentOf, levelOf } from "../labels.ts"
import { makeWriter } from "../writer.ts"
import { characters, edges, known, skipped } from "./rtfWords.ts"
import { makeScripts, type Script } from "./scripts.ts"

interface Group {
  /** Where the text goes: into the document, a label, an author's name, or nowhere. */
  readonly to: "text" | "label" | "author" | "nowhere"
  readonly isHidden: boolean
  readonly script: Script
  readonly encoding: string | undefined
  /** Bytes that stand for a character of Unicode in older programs. */
  readonly fallback: number
  /** Written with the end of the group. */
  readonly end: string
  /** True in a note or a comment, which is a part of its paragraph. */
  readonly isInline: boolean
  readonly edge: string
}

const maxDepth = 1_000
const maxFonts = 10_000
const sliceLength = 65_536
const shortLength = 100

const isLetter = (code: number): boolean => (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** Reads the document, and gives what is ready from time to time. */
const parse = function* (bytes: Uint8Array): Generator<ReadonlyArray<Piece>> {
  const writer = makeWriter()
  const scripts = makeScripts(writer)
  const groups: Array<Group> = []
  const fonts = new Map<number, string | undefined>()
  const buffer = new Uint8Array(4_096)
  let group: Group = {
    to: "text",
    isHidden: false,
    script: "",
    encoding: undefined,
    fallback: 1,
    end: "",
    isInline: false,
    edge: ""
  }
  let usual = "windows-1252"
  let length = 0
  /** Groups beyond those that are kept, and characters that are left out behind one of Unicode. */
  let over = 0
  let skip = 0
  let isOptional = false
  let font = -1
  let label = ""
  let author = ""
  let level = 0
  let outline: number | undefined
  let inRow = false

  const write = (text: string) => {
    if (group.isHidden || group.to === "nowhere") return
    if (group.to === "label") label = cut(label + text, shortLength, "")
    else if (group.to === "author") author = cut(author + text, shortLength, "")
    else scripts.text(text, group.script)
  }
  const flush = () => {
    if (length > 0) write(new TextDecoder(group.encoding ?? usual).decode(buffer.subarray(0, length)))
    length = 0
  }
  const byte = (code: number) => {
    if (skip > 0) skip--
    else {
      buffer[length++] = code
      if (length === buffer.length) flush()
    }
  }
  const paragraph = () => {
    scripts.close()
    const mark = joinLines(label)
    const item = mark === "" ? "" : `${indentOf(level)}${/[\p{L}\p{N}]/u.test(mark) ? mark : "-"} `
    writer.paragraph(
      group.edge + (outline === undefined ? item : `${"#".repeat(Math.min(6, outline + 1))} ${item.trimStart()}`)
    )
    label = ""
  }
  const begin = (change: Partial<Group>) => {
    group = { ...group, ...change }
  }
  /** A note in its paragraph. */
  const inline = (start: string) => {
    scripts.close()
    write(start)
    begin({ isInline: true, end: "]" })
  }
  const word = (name: string, value: number | undefined) => {
    const wasOptional = isOptional
    isOptional = false
    if (skipped.has(name) || (wasOptional && !known.has(name))) return begin({ to: "nowhere" })
    const edge = edges.exec(name)?.[1]
    if (edge !== undefined) {
      paragraph()
      return begin({ edge: `${edge}: ` })
    }
    const character = characters[name]
    if (character !== undefined) return write(character)
    switch (name) {
      case "par":
      case "sect":
      case "page":
      case "nestrow":
        return group.isInline ? write(" ") : group.to === "text" ? paragraph() : undefined
      case "pard":
        level = 0
        outline = undefined
        return
      case "ilvl":
        level = levelOf(String(value ?? 0))
        return
      case "outlinelevel":
        outline = value !== undefined && value >= 0 && value < 9 ? value : undefined
        return
      case "trowd":
        if (inRow || group.to !== "text") return
        inRow = true
        writer.row.open()
        return writer.cell.open()
      case "cell":
        if (!inRow) return write(" ")
        paragraph()
        writer.cell.close()
        return writer.cell.open()
      case "row":
        if (inRow) writer.row.close()
        inRow = false
        return
      case "listtext":
      case "pntext":
        label = ""
        return begin({ to: "label" })
      case "atnauthor":
        author = ""
        return begin({ to: "author" })
      case "annotation":
        return inline(author === "" ? " [comment: " : ` [comment by ${joinLines(author)}: `)
      case "footnote":
        return inline(" [note: ")
      case "super":
        return begin({ script: value === 0 ? "" : "^" })
      case "sub":
        return begin({ script: value === 0 ? "" : "_" })
      case "nosupersub":
        return begin({ script: "" })
      case "plain":
        return begin({ script: "", isHidden: false, encoding: undefined })
      case "v":
      case "deleted":
        return begin({ isHidden: value !== 0 })
      case "uc":
        return begin({ fallback: Math.min(10, Math.max(0, value ?? 1)) })
      case "u":
        write(String.fromCharCode((value ?? 63) & 0xffff))
        skip = group.fallback
        return
      case "f":
        font = value ?? -1
        return begin({ encoding: fonts.get(font) })
      case "fcharset":
        if (fonts.size < maxFonts) fonts.set(font, encodingsOfFonts.get(value ?? 0))
        return
      case "mac":
        usual = "macintosh"
        return
      case "ansicpg":
        if (value === undefined) return
        usual = encodingOfCodePage(value)
        return
    }
  }

  let next = sliceLength
  for (let at = 0; at < bytes.length; at++) {
    if (at >= next) {
      next = at + sliceLength
      yield writer.take()
    }
    const code = bytes[at] ?? 0
    if (code === 123) {
      flush()
      skip = 0
      if (groups.length < maxDepth) {
        groups.push(group)
        begin({ end: "" })
      } else over++
    } else if (code === 125) {
      flush()
      skip = 0
      if (over > 0) over--
      else {
        if (group.end !== "") {
          scripts.close()
          write(group.end)
        }
        const outer = groups.pop()
        if (outer !== undefined) {
          if (group.edge !== outer.edge) paragraph()
          group = outer
        }
      }
    } else if (code === 92) {
      const following = bytes[++at] ?? 0
      if (isLetter(following)) {
        let end = at
        while (end < at + 32 && isLetter(bytes[end] ?? 0)) end++
        const name = String.fromCharCode(...bytes.subarray(at, end))
        const start = end
        if (bytes[end] === 45) end++
        while (end < start + 11 && isDigit(bytes[end] ?? 0)) end++
        const value = end > start ? Number(String.fromCharCode(...bytes.subarray(start, end))) : undefined
        at = bytes[end] === 32 ? end : end - 1
        if (name === "bin") at += Math.max(0, value ?? 0)
        else if (skip > 0) skip--
        else {
          flush()
          word(name, value === undefined || Number.isNaN(value) ? undefined : value)
        }
      } else if (following === 39) {
        byte(Number.parseInt(String.fromCharCode(...bytes.subarray(at + 1, at + 3)), 16) || 63)
        at += 2
      } else if (following === 42) isOptional = true
      else if (following === 10 || following === 13) {
        flush()
        word("par", undefined)
      } else if (following === 126) byte(32)
      else if (following === 95) byte(45)
      else if (following === 92 || following === 123 || following === 125) byte(following)
    } else if (code !== 10 && code !== 13 && code !== 0) byte(code)
  }
  flush()
  paragraph()
  yield writer.end()
}

export const read = ({ bytes }: Input): Stream.Stream<Piece> =>
  Stream.suspend(() => Stream.fromIterable(parse(bytes), { chunkSize: 1 })).pipe(
    Stream.flatMap((pieces) => Stream.fromArray(pieces))
  )
