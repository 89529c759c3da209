export interface CodeBlock {
  /** The heading above it, without the number signs. */
  readonly heading: string
  /** Line of the page on which the code starts, counted from 1. */
  readonly line: number
  readonly code: string
  /** Marked ```ts run: it is a program that ends by itself, without a key. */
  readonly runs: boolean
}

/** The ```ts blocks of a page. */
export const codeBlocks = (markdown: string): ReadonlyArray<CodeBlock> => {
  const blocks: Array<CodeBlock> = []
  let heading = ""
  let fence:
    | { readonly marker: string; readonly language: string; readonly runs: boolean; readonly line: number }
    | undefined
  let code: Array<string> = []
  for (const [index, line] of markdown.split("\n").entries()) {
    const [, marker = "", language = "", flag = ""] = /^\s*(`{3,}|~{3,})\s*(\S*)\s*(\S*)/.exec(line) ?? []
    if (fence === undefined) {
      if (marker !== "") {
        fence = { marker, language, runs: flag === "run", line: index + 2 }
        code = []
      } else if (line.startsWith("#")) {
        heading = line.replace(/^#+\s*/, "").trim()
      }
    } else if (marker.startsWith(fence.marker) && language === "") {
      if (fence.language === "ts") {
        blocks.push({ heading, line: fence.line, code: code.join("\n") + "\n", runs: fence.runs })
      }
      fence = undefined
    } else {
      code.push(line)
    }
  }
  if (fence !== undefined) throw new Error(`The code block of line ${fence.line - 1} is not closed.`)
  return blocks
}
