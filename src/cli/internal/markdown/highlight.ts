/** Colours listings. The highlighter loads with the first listing. */
import type { Style } from "../render/style.ts"

/** A node of the tree that `lowlight` makes: a text, or a class such as `keyword` with children. */
interface Node {
  readonly type: string
  readonly value?: string
  readonly properties?: { readonly className?: unknown }
  readonly children?: ReadonlyArray<Node>
}

/** Colours a listing. Returns `undefined` for an unknown language. */
export type Highlight = (code: string, language: string, style: Style) => string | undefined

const markOf = (style: Style, name: string): ((text: string) => string) | undefined => {
  switch (name.replace(/^hljs-/, "")) {
    case "keyword":
    case "built_in":
    case "literal":
    case "selector-tag":
    case "tag":
    case "name":
      return style.magenta
    case "string":
    case "regexp":
    case "addition":
    case "attr":
      return style.green
    case "number":
    case "symbol":
    case "variable":
    case "template-variable":
      return style.cyan
    case "comment":
    case "quote":
      return style.dim
    case "title":
    case "section":
    case "type":
    case "class_":
    case "function_":
      return style.blue
    case "deletion":
      return style.red
    case "meta":
      return style.yellow
    default:
      return undefined
  }
}

/** Ends colours at each line end: terminals and copies work by line. */
const perLine = (text: string, mark: (text: string) => string): string =>
  text
    .split("\n")
    .map((line) => (line === "" ? "" : mark(line)))
    .join("\n")

const write = (node: Node, style: Style): string => {
  const inner = node.value ?? (node.children ?? []).map((child) => write(child, style)).join("")
  const names = node.properties?.className
  const mark = Array.isArray(names) && typeof names[0] === "string" ? markOf(style, names[0]) : undefined
  return mark === undefined ? inner : perLine(inner, mark)
}

/**
 * The longest listing that is coloured, the longest piece per call, and the longest line, in characters. Grammars look
 * ahead, so twice the length can take four times as long.
 */
const longest = { listing: 50_000, piece: 4_000, line: 400 } as const

/** Groups lines into pieces below a number of characters. */
const pieces = (code: string): ReadonlyArray<string> => {
  const all: Array<string> = []
  let piece: Array<string> = []
  let length = 0
  for (const line of code.split("\n")) {
    if (piece.length > 0 && length + line.length > longest.piece) {
      all.push(piece.join("\n"))
      piece = []
      length = 0
    }
    piece.push(line)
    length += line.length + 1
  }
  return [...all, piece.join("\n")]
}

const isReadable = (piece: string): boolean => piece.split("\n").every(({ length }) => length <= longest.line)

/** Loads the highlighter. */
export const load = async (): Promise<Highlight> => {
  const { lowlight } = await import("./languages.ts")
  const coloured = (piece: string, name: string, style: Style): string => {
    if (!isReadable(piece)) return piece
    const tree: Node = lowlight.highlight(name, piece)
    return write(tree, style)
  }
  return (code, language, style) => {
    const name = language.toLowerCase()
    if (code.length > longest.listing || !lowlight.registered(name)) return undefined
    return pieces(code)
      .map((piece) => coloured(piece, name, style))
      .join("\n")
  }
}
