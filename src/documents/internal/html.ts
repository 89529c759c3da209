/** Pages as text: headings, lists, tables and links stay what they are; scripts, styles and what is hidden are not read. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as HtmlParser from "htmlparser2"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { textOf } from "../../support/text/charset.ts"
import { failing, load } from "./failure.ts"
import { makeWriter, type Writer } from "./writer.ts"

const fail = failing("page")

/** Elements of which nothing is read. */
const skipped = new Set([
  "script",
  "style",
  "noscript",
  "template",
  "svg",
  "math",
  "iframe",
  "object",
  "select",
  "canvas"
])

/** Elements that are paragraphs, or stand between them. */
const blocks = new Set(
  "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tbody tfoot thead title ul".split(
    " "
  )
)

const heading = /^h([1-6])$/

const linked = /^https?:\/\//i

const maxHref = 500

/** The depth from which a page is read as if its elements were closed, and the text that is parsed between two looks. */
const maxDepth = 1_000
const lookEvery = 4_096

/** Depth of a parser in elements. */
interface Depth {
  now: number
}

/** Input of a parser: elements and texts, which go to the writer. */
const handlerOf = (writer: Writer, depth: Depth): Partial<HtmlParser.Handler> => {
  let skip: string | undefined
  let skips = 0
  let pre = 0
  let prefix = ""
  let href: string | undefined
  /** The element whose attributes come, if they are of use. */
  let inside: "a" | "img" | undefined
  const end = () => {
    writer.paragraph(prefix)
    prefix = ""
  }
  return {
    // Attributes come one by one: together they would be held, however many there are.
    onopentagname: (name) => {
      inside = undefined
      depth.now++
      if (skip !== undefined) {
        if (name === skip) skips++
        return
      }
      if (skipped.has(name)) {
        skip = name
        skips = 1
        return
      }
      if (name === "br") return writer.text("\n")
      if (name === "tr") return writer.row.open()
      if (name === "td" || name === "th") return writer.cell.open()
      if (name === "a" || name === "img") {
        inside = name
        if (name === "a") href = undefined
        return
      }
      if (name === "pre") pre++
      if (!blocks.has(name)) return
      end()
      const level = heading.exec(name)?.[1]
      prefix =
        level === undefined ? (name === "li" ? "- " : name === "title" ? "# " : "") : `${"#".repeat(Number(level))} `
    },
    onattribute: (name, value) => {
      if (inside === "a" && name === "href") href = linked.test(value) && value.length <= maxHref ? value : undefined
      if (inside === "img" && name === "alt" && value.trim() !== "") writer.text(`[${value.trim()}]`)
    },
    ontext: (text) => {
      if (skip === undefined) writer.text(pre > 0 ? text : text.replaceAll(/[\s\u00a0]+/g, " "))
    },
    onclosetag: (name) => {
      depth.now--
      if (skip !== undefined) {
        if (name === skip && --skips === 0) skip = undefined
        return
      }
      if (name === "a") {
        if (href !== undefined) writer.text(` (${href})`)
        href = undefined
        return
      }
      if (name === "td" || name === "th") return writer.cell.close()
      if (name === "tr") return writer.row.close()
      if (name === "pre") pre = Math.max(0, pre - 1)
      if (blocks.has(name)) end()
    }
  }
}

/** The package that parses pages. */
export const parser: Effect.Effect<typeof HtmlParser, DocumentError> = load(
  fail,
  "htmlparser2",
  () => import("htmlparser2")
)

/** The pieces of a page that go to a writer, which is not ended with it. Books are in XHTML, where `<script/>` is closed. */
export const pieces = <E>(
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
      for (let at = 0; at < text.length; at += lookEvery) {
        parser.write(text.slice(at, at + lookEvery))
        // Each element costs the parser as much as there are around it, so a deep page would take for ever.
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

export const read = ({ bytes, mimeType }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.map(parser, (module) => {
      const writer = makeWriter()
      return pieces(module, textOf(bytes, mimeType), writer).pipe(
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
