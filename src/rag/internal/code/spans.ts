/** Parts of code: definitions by their syntax, or lines, joined to about the size of a chunk. */
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { Span } from "../splitters.ts"

/** A node of a syntax tree. Places count units of UTF-16. */
export interface SyntaxNode {
  readonly type: string
  readonly startIndex: number
  readonly endIndex: number
  readonly isExtra: boolean
  readonly text: string
  readonly namedChildren: ReadonlyArray<SyntaxNode | null>
  readonly childForFieldName: (name: string) => SyntaxNode | null
}

/** A part that is not divided: it ends here, and is in these definitions, the outermost first. Parts of a group may join. */
export interface Atom {
  readonly end: number
  readonly names: ReadonlyArray<string>
  readonly group: number
}

/** The characters of a part up to which it stays whole, and up to which small parts are joined. */
const size = 1_500

/** The definitions in each other that are divided. Deeper ones stay whole. */
const deepest = 12

const nameOf = (node: SyntaxNode): string | undefined => {
  // A declaration of variables has its names in its declarators, and an export has a declaration.
  const inner = node.childForFieldName("declaration") ?? node.childForFieldName("definition") ?? node
  const name =
    inner.childForFieldName("name") ??
    inner.childForFieldName("type") ??
    inner.namedChildren[0]?.childForFieldName("name")
  return name === null || name === undefined || name.endIndex - name.startIndex > 200
    ? undefined
    : cut(oneLine(name.text), 100)
}

const divide = (node: SyntaxNode, names: ReadonlyArray<string>, depth: number, atoms: Array<Atom>): void => {
  const children = node.namedChildren.filter((child) => child !== null)
  // The place of an atom is a number that no other group has.
  let group = atoms.length
  for (const [index, child] of children.entries()) {
    // A comment belongs to the definition below it.
    if (child.isExtra && index < children.length - 1) continue
    const name = nameOf(child)
    const own = name === undefined || name === names.at(-1) ? names : [...names, name]
    if (child.endIndex - child.startIndex <= size || depth >= deepest) {
      atoms.push({ end: child.endIndex, names: own, group })
      continue
    }
    divide(child, own, depth + 1, atoms)
    atoms.push({ end: child.endIndex, names: own, group: atoms.at(-1)?.group ?? group })
    group = atoms.length
  }
}

/** The definitions of a file. Large ones are divided into their parts. */
export const syntaxOf = (root: SyntaxNode): ReadonlyArray<Atom> => {
  const atoms: Array<Atom> = []
  divide(root, [], 0, atoms)
  return atoms
}

/** The lines of a text. */
export const linesOf = (text: string): ReadonlyArray<Atom> =>
  Array.from(text.matchAll(/\n|$/g), ({ index }) => ({ end: Math.min(index + 1, text.length), names: [], group: 0 }))

const commonOf = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<string> => {
  const different = left.findIndex((name, index) => name !== right[index])
  return different === -1 ? left : left.slice(0, different)
}

/** Makes spans of neighbours that are small together, and labels them with their lines. */
export const joinAtoms = (text: string, atoms: ReadonlyArray<Atom>): ReadonlyArray<Span> => {
  const spans: Array<Span> = []
  let start = 0
  let line = 1
  let open: Atom | undefined
  const close = (end: number, names: ReadonlyArray<string>) => {
    const part = text.slice(start, end)
    const [blank = ""] = /^\s*/.exec(part) ?? []
    const first = line + (blank.split("\n").length - 1)
    const last = line + (part.trimEnd().split("\n").length - 1)
    if (part.trim() !== "") {
      spans.push({ start, end, headings: names, label: first === last ? `line ${first}` : `lines ${first}–${last}` })
    }
    line += part.split("\n").length - 1
    start = end
  }
  for (const { end: atomEnd, group, names } of atoms) {
    // The rest of a line, such as a semicolon, belongs to the part before it.
    const rest = /^[^\S\n]*[;,)\]}]*[^\S\n]*(?:\n|$)/.exec(text.slice(atomEnd, atomEnd + 200))?.[0] ?? ""
    const end = Math.min(text.length, atomEnd + rest.length)
    if (end <= start) continue
    if (open !== undefined && (open.group !== group || end - start > size)) {
      if (open.end > start) close(open.end, open.names)
      open = undefined
    }
    open = { end, group, names: open === undefined ? names : commonOf(open.names, names) }
  }
  if (open !== undefined || start < text.length) close(text.length, open?.names ?? [])
  return spans
}
