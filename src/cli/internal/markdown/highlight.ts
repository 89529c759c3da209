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

type Colour = "blue" | "cyan" | "dim" | "green" | "magenta" | "red" | "yellow"

const all = (colour: Colour, ...names: ReadonlyArray<string>) => names.map((name) => [`hljs-${name}`, colour] as const)

/** The colours of the classes of `highlight.js`. */
const colours: ReadonlyMap<string, Colour> = new Map([
  ...all("magenta", "keyword", "built_in", "literal", "selector-tag", "tag", "name"),
  ...all("green", "string", "regexp", "addition", "attr"),
  ...all("cyan", "number", "symbol", "variable", "template-variable"),
  ...all("dim", "comment", "quote"),
  ...all("blue", "title", "section", "type"),
  ...all("red", "deletion"),
  ...all("yellow", "meta")
])

/** Ends colours at each line end: terminals and copies work by line. */
const perLine = (text: string, mark: (text: string) => string): string =>
  text
    .split("\n")
    .map((line) => (line === "" ? "" : mark(line)))
    .join("\n")

const write = (node: Node, style: Style): string => {
  const inner = node.value ?? (node.children ?? []).map((child) => write(child, style)).join("")
  const names = node.properties?.className
  const colour = Array.isArray(names) && typeof names[0] === "string" ? colours.get(names[0]) : undefined
  return colour === undefined ? inner : perLine(inner, style[colour])
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
