/** The table of each provider's features, in docs/models.md, and the trials of its columns. */
import { readFileSync } from "node:fs"
import { Message } from "effect-deepagents"

const page = readFileSync(new URL("../../docs/models.md", import.meta.url), "utf8")

const cellsOf = (line: string): ReadonlyArray<string> =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim())

const [, table = ""] = /<!-- support -->\n([\s\S]*?)<!-- \/support -->/.exec(page) ?? []
const [header = [], , ...lines] = table.trim().split("\n").map(cellsOf)

/** The rows of the table, each with a column's entry. */
export const toldOf = (column: string): ReadonlyArray<readonly [row: string, cell: string]> => {
  const at = header.indexOf(column)
  return lines.map((cells) => [cells[0] ?? "", cells[at] ?? `no column ${column}`])
}

export const tick = (holds: boolean): string => (holds ? "✓" : "")

export const hello = [Message.human("hi")]

export const tools = ["charge", "search"].map((name) => ({
  name,
  description: "",
  parameters: { type: "object", properties: {} },
  annotations: {}
}))
