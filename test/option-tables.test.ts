/** The tables of options in the pages: written between their markers, and nowhere by hand. */
import { describe, expect, it } from "@effect/vitest"
import { findHandwritten, writeTables } from "../scripts/options/tables.ts"

const start = "<!-- options:Budget.make:start -->"
const end = "<!-- options:Budget.make:end -->"
const table = "| option | default | meaning |\n| -- | -- | -- |\n| `tokens` | none | Tokens |"
const tableOf = (module: string, name: string) => (`${module}.${name}` === "Budget.make" ? table : undefined)
const whole = `# Budgets\n\n${start}\n\n${table}\n\n${end}\n\nMore.\n`

describe("tables of options", () => {
  it("are written between their markers, once", () => {
    expect(writeTables(`# Budgets\n\n${start}\n${end}\n\nMore.\n`, tableOf)).toBe(whole)
    expect(writeTables(whole, tableOf)).toBe(whole)
    expect(writeTables(whole.replace("Tokens", "Something else"), tableOf)).toBe(whole)
    // The formatter pads cells.
    const padded = whole.replace("| `tokens` | none |", "| `tokens`  | none      |").replace("| -- |", "| ------ |")
    expect(writeTables(padded, tableOf)).toBe(padded)
  })

  it("are found if they are written by hand", () => {
    const known = new Map([["Budget.make", new Set(["tokens", "cost", "time", "rounds"])]])
    const byHand = (page: string) => findHandwritten(page, known)
    expect(byHand(whole)).toEqual([])
    expect(byHand(`${whole}\n| option | meaning |\n| -- | -- |\n| \`any\` | A word |\n`)).toEqual([
      "a table that begins with `any`"
    ])
    const fields = "| field | meaning |\n| -- | -- |\n| `tokens` | t |\n| `cost` | c |\n| `time` | t |\n"
    expect(byHand(fields)).toEqual(["the options of Budget.make"])
    expect(byHand(fields.replace("`time`", "`space`"))).toEqual([])
    expect(byHand(fields.replace("field", "hook"))).toEqual([])
  })
})
