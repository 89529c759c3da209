/** Reads HTML as text, with headings, lists, tables and links. It skips scripts, styles and hidden elements. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as HtmlParser from "htmlparser2"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { textOf } from "../../support/text/charset.ts"
import { loadPackage, makeFail } from "./failure.ts"
import { appendRest, makeWriter, type Writer } from "./writer.ts"

const fail = makeFail("page")

/** Elements that are skipped with their content. */
const skipped = new Set("script style noscript template svg math iframe object select canvas".split(" "))

/** Elements that begin and end a paragraph. */
const blocks = new Set(
  "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tbody tfoot thead title ul".split(
    " "
  )
)

const heading = /^h([1-6])$/

const linked = /^https?:\/\//i

const maxHref = 500

/** Beyond this depth the parser starts anew, since each element costs it time in proportion to its depth. */
const maxDepth = 1_000

/** Characters that are parsed between two checks of the depth. */
const checkInterval = 4_096

/** Depth of a parser in elements. */
interface Depth {
  now: number
}

const prefixOf = (name: string): string => {
  const level = heading.exec(name)?.[1]
  if (level !== undefined) return `${"#".repeat(Number(level))} `
  return name === "li" ? "- " : name === "title" ? "# " : ""
}

/** Tracks elements that are skipped. `open` and `close` return true inside of one. */
const makeSkip = () => {
  let name: string | undefined
  let depth = 0
  return {
    isOn: () => name !== undefined,
    open: (opened: string): boolean => {
      if (name === undefined && skipped.has(opened)) name = opened
      if (opened === name) depth++
      return name !== undefined
    },
    close: (closed: string): boolean => {
      if (name === undefined) return false
      if (closed === name && --depth === 0) name = undefined
      return true
    }
  }
}

/** Writes the elements and texts that the parser reads. */
const handlerOf = (writer: Writer, depth: Depth): Partial<HtmlParser.Handler> => {
  const skip = makeSkip()
  let preformatted = 0
  let prefix = ""
  let href: string | undefined
  /** The open element whose attributes are read. */
  let inside: "a" | "img" | undefined
  const endParagraph = () => {
    writer.paragraph(prefix)
    prefix = ""
  }
  const elements = new Map<string, { readonly open?: () => void; readonly close?: () => void }>(
    Object.entries({
      br: { open: () => writer.text("\n") },
      tr: writer.row,
      td: writer.cell,
      th: writer.cell,
      img: { open: () => (inside = "img") },
      a: {
        open: () => {
          inside = "a"
          href = undefined
        },
        close: () => {
          if (href !== undefined) writer.text(` (${href})`)
          href = undefined
        }
      }
    })
  )
  return {
    // Attributes are read one by one, so that memory does not grow with their number.
    onopentagname: (name) => {
      inside = undefined
      depth.now++
      if (skip.open(name)) return
      const element = elements.get(name)
      if (element !== undefined) return element.open?.()
      if (name === "pre") preformatted++
      if (!blocks.has(name)) return
      endParagraph()
      prefix = prefixOf(name)
    },
    onattribute: (name, value) => {
      if (inside === "a" && name === "href") href = linked.test(value) && value.length <= maxHref ? value : undefined
      if (inside === "img" && name === "alt" && value.trim() !== "") writer.text(`[${value.trim()}]`)
    },
    ontext: (text) => {
      if (!skip.isOn()) writer.text(preformatted > 0 ? text : text.replaceAll(/[\s\u00a0]+/g, " "))
    },
    onclosetag: (name) => {
      depth.now--
      if (skip.close(name)) return
      const element = elements.get(name)
      if (element !== undefined) return element.close?.()
      if (name === "pre") preformatted = Math.max(0, preformatted - 1)
      if (blocks.has(name)) endParagraph()
    }
  }
}

/** Loads the package that parses HTML. */
export const loadParser: Effect.Effect<typeof HtmlParser, DocumentError> = loadPackage(
  fail,
  "htmlparser2",
  () => import("htmlparser2")
)

/** Streams the pieces of a page. The writer stays open. In `xhtml`, as in books, `<script/>` is a closed element. */
export const streamHtml = <E>(
  { Parser }: typeof HtmlParser,
  texts: Stream.Stream<string, E>,
  writer: Writer,
  xhtml = false
): Stream.Stream<Piece, E> =>
  Stream.suspend(() => {
    const depth: Depth = { now: 0 }
    const handler = handlerOf(writer, depth)
    const make = () => new Parser(handler, { decodeEntities: true, recognizeSelfClosing: xhtml })
    let parser = make()
    const write = (text: string) => {
      for (let at = 0; at < text.length; at += checkInterval) {
        parser.write(text.slice(at, at + checkInterval))
        if (depth.now > maxDepth) {
          parser.end()
          depth.now = 0
          parser = make()
        }
      }
    }
    return texts.pipe(
      Stream.mapAccumArray(
        () => writer,
        (own, batch) => {
          for (const text of batch) write(text)
          return [own, own.take()] as const
        },
        {
          onHalt: (own) => {
            parser.end()
            own.paragraph()
            return own.take()
          }
        }
      )
    )
  })

export const readHtml = ({ bytes, mimeType }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.map(loadParser, (module) => {
      const writer = makeWriter()
      return streamHtml(module, textOf(bytes, mimeType), writer).pipe(appendRest(writer))
    })
  )
