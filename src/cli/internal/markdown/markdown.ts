/** Renders Markdown for a terminal, block by block. */
import { lexer, type Token, type Tokens } from "marked"
import { valueAt } from "../../../support/json/valueAt.ts"
import { fit, type Style, widthOf, wrap } from "../render/style.ts"
import type { Highlight } from "./highlight.ts"

/** The target of rendering. Prose wraps at `columns`; listings never wrap. */
export interface Surface {
  readonly columns: number
  readonly style: Style
  readonly highlight: Highlight | undefined
}

const entities: { readonly [name: string]: string } = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: " " }

const plain = (text: string): string =>
  text.replaceAll(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name: string) => valueAt(entities, name) ?? "")

/** Extensions add kinds of tokens, so the type of the lexer is open. */
const toGeneric = (token: Token): Tokens.Generic => token

const inline = (tokens: ReadonlyArray<Token> | undefined, surface: Surface): string =>
  (tokens ?? []).map((token) => inlineOne(toGeneric(token), surface)).join("")

const inlineOne = (token: Tokens.Generic, surface: Surface): string => {
  const { style } = surface
  switch (token.type) {
    case "strong":
      return style.bold(inline(token.tokens, surface))
    case "em":
      return style.italic(inline(token.tokens, surface))
    case "del":
      return style.dim(inline(token.tokens, surface))
    case "codespan":
      return style.cyan(plain(String(token["text"])))
    case "br":
      return "\n"
    case "link": {
      const url = String(token["href"])
      const label = inline(token.tokens, surface)
      const bare = label === url || `mailto:${label}` === url
      return bare
        ? style.link(style.underline(label), url)
        : `${style.link(style.underline(label), url)} ${style.dim(`(${url})`)}`
    }
    case "image":
      return `${style.dim("[image]")} ${String(token["text"])} ${style.dim(`(${String(token["href"])})`)}`
    case "text":
    case "escape":
      return token.tokens === undefined ? plain(String(token["text"])) : inline(token.tokens, surface)
    default:
      return String(token.raw)
  }
}

const broken = (text: string, columns: number): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => wrap(line, columns))

/** Indents lines behind a mark on the first one. */
const indentBehind = (lines: ReadonlyArray<string>, first: string, rest: string): ReadonlyArray<string> =>
  lines.map((line, index) => (line === "" ? line : `${index === 0 ? first : rest}${line}`))

const narrower = (surface: Surface, by: number): Surface => ({
  ...surface,
  columns: Math.max(10, surface.columns - by)
})

/** Renders a listing without wrapping or indenting, so that a copy is exact. */
export const listing = (code: string, language: string, { highlight, style }: Surface): ReadonlyArray<string> =>
  (highlight?.(code, language, style) ?? code).split("\n")

const list = (token: Tokens.Generic, surface: Surface): ReadonlyArray<string> => {
  const items: ReadonlyArray<Tokens.ListItem> = Array.isArray(token["items"]) ? token["items"] : []
  const start = Number(token["start"])
  return items.flatMap((item, index) => {
    const box = item.task ? (item.checked === true ? "[x] " : "[ ] ") : ""
    const mark = token["ordered"] === true ? `${(Number.isFinite(start) ? start : 1) + index}. ` : "• "
    const first = `${mark}${box}`
    const inner = blocks(
      item.tokens.filter(({ type }) => type !== "checkbox"),
      narrower(surface, first.length),
      !item.loose
    )
    return indentBehind(inner.length === 0 ? [" "] : inner, surface.style.dim(mark) + box, " ".repeat(mark.length))
  })
}

/** Renders a table. A table that is too wide becomes one record a row. */
const table = (token: Tokens.Generic, surface: Surface): ReadonlyArray<string> => {
  const { style } = surface
  const cell = (one: Tokens.TableCell): string => inline(one.tokens, surface).replaceAll("\n", " ")
  const named: ReadonlyArray<Tokens.TableCell> = token["header"]
  const records: ReadonlyArray<ReadonlyArray<Tokens.TableCell>> = token["rows"]
  const header = named.map(cell)
  const rows = records.map((row) => row.map(cell))
  const widths = header.map((name, column) => Math.max(widthOf(name), ...rows.map((row) => widthOf(row[column] ?? ""))))
  const whole = widths.reduce((sum, width) => sum + width + 3, -3)
  if (whole > surface.columns) {
    return rows.flatMap((row, index) => [
      ...(index === 0 ? [] : [""]),
      ...row.flatMap((text, column) => broken(`${style.bold(header[column] ?? "")}: ${text}`, surface.columns))
    ])
  }
  const line = (cells: ReadonlyArray<string>): string =>
    cells
      .map((text, column) =>
        column === cells.length - 1 ? text : text + " ".repeat(Math.max(0, (widths[column] ?? 0) - widthOf(text)))
      )
      .join(style.dim(" │ "))
  return [
    line(header.map(style.bold)),
    style.dim(widths.map((width) => "─".repeat(width)).join("─┼─")),
    ...rows.map(line)
  ]
}

const block = (token: Tokens.Generic, surface: Surface): ReadonlyArray<string> => {
  const { columns, style } = surface
  switch (token.type) {
    case "heading":
      return broken(
        style.bold(
          token["depth"] === 1 ? style.underline(inline(token.tokens, surface)) : inline(token.tokens, surface)
        ),
        columns
      )
    case "code":
      return listing(String(token["text"]), String(token["lang"] ?? ""), surface)
    case "blockquote":
      return blocks(token.tokens ?? [], narrower(surface, 2), false).map((line) => `${style.dim("▏")} ${line}`)
    case "list":
      return list(token, surface)
    case "table":
      return table(token, surface)
    case "def":
      return [
        fit(
          `${style.dim(`[${String(token["tag"])}]:`)} ${style.link(String(token["href"]), String(token["href"]))}`,
          columns
        )
      ]
    case "hr":
      return [style.dim("───")]
    case "html":
      return broken(style.dim(String(token.raw).trimEnd()), columns)
    default:
      return broken(
        token.tokens === undefined ? plain(String(token["text"] ?? token.raw)) : inline(token.tokens, surface),
        columns
      )
  }
}

/** Shows definitions of links whose text is in another block: a person must see where a link leads. */
const isShown = (tokens: ReadonlyArray<Token>): ((token: Token) => boolean) => {
  const texts = tokens.flatMap(({ raw, type }) => (type === "def" ? [] : [...raw.matchAll(/\[([^[\]]{1,200})\]/g)]))
  const used = new Set(texts.map(([, label = ""]) => label.toLowerCase()))
  return (token) => token.type !== "space" && (token.type !== "def" || !used.has(String(toGeneric(token)["tag"])))
}

const blocks = (tokens: ReadonlyArray<Token>, surface: Surface, isTight: boolean): ReadonlyArray<string> =>
  tokens.filter(isShown(tokens)).flatMap((token, index, all) => {
    const isClose = index === 0 || isTight || (token.type === "def" && all[index - 1]?.type === "def")
    return [...(isClose ? [] : [""]), ...block(toGeneric(token), surface)]
  })

/** The longest source and the longest line that are read as Markdown, in characters. */
const longest = { source: 20_000, line: 4_000 } as const

/** Deeply nested quotes and lists. The lexer reads each level again for each outer level. */
const tooDeep = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))){32}/m

const isProse = (source: string): boolean =>
  source.length <= longest.source &&
  source.split("\n").every(({ length }) => length <= longest.line) &&
  !tooDeep.test(source)

/** Renders Markdown. No line of prose is wider than `columns`. */
export const render = (source: string, surface: Surface): ReadonlyArray<string> =>
  isProse(source) ? blocks(lexer(source, { gfm: true }), surface, false) : broken(source, surface.columns)

/** Renders Markdown for the live area. No line is wider than `columns`. */
export const renderLive = (source: string, surface: Surface): ReadonlyArray<string> =>
  render(source, surface).map((line) => fit(line, surface.columns))
