/** Colours of listings, by a highlighter that is loaded when the first one comes. */
import type { Style } from "../render/style.ts"

/** A piece of a listing and what it is, such as `keyword`; a tree as `lowlight` makes it. */
interface Node {
  readonly type: string
  readonly value?: string
  readonly properties?: { readonly className?: unknown }
  readonly children?: ReadonlyArray<Node>
}

/** Colours a listing in a language; `undefined` where the language is not known. */
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

/** Colours end with their line: a terminal, and who copies, take lines. */
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

/** The longest listing that is coloured, in characters. */
const longest = 50_000

/** Loads the highlighter: `lowlight` with a dozen languages. */
export const load = async (): Promise<Highlight> => {
  const [{ createLowlight }, ...modules] = await Promise.all([
    import("lowlight"),
    import("highlight.js/lib/languages/bash"),
    import("highlight.js/lib/languages/css"),
    import("highlight.js/lib/languages/diff"),
    import("highlight.js/lib/languages/go"),
    import("highlight.js/lib/languages/java"),
    import("highlight.js/lib/languages/json"),
    import("highlight.js/lib/languages/python"),
    import("highlight.js/lib/languages/rust"),
    import("highlight.js/lib/languages/sql"),
    import("highlight.js/lib/languages/typescript"),
    import("highlight.js/lib/languages/xml"),
    import("highlight.js/lib/languages/yaml")
  ])
  const names = ["bash", "css", "diff", "go", "java", "json", "python", "rust", "sql", "typescript", "xml", "yaml"]
  const lowlight = createLowlight(Object.fromEntries(modules.map((one, index) => [names[index] ?? "", one.default])))
  lowlight.registerAlias({
    typescript: ["javascript", "js", "jsx", "tsx", "mjs", "cjs", "javascriptreact", "typescriptreact"],
    bash: ["shell", "console"]
  })
  return (code, language, style) => {
    const name = language.toLowerCase()
    if (code.length > longest || !lowlight.registered(name)) return undefined
    const tree: Node = lowlight.highlight(name, code)
    return write(tree, style)
  }
}
