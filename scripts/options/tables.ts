/**
 * The tables of options in the pages: those between markers are written from the types, and no other table lists options.
 */

/** Compares tables without the padding of their cells. */
const removePadding = (table: string) => table.replaceAll(/ {2,}/g, " ").replaceAll(/-{2,}/g, "--").trim()

const generated = /(<!-- options:(\w+)\.(\w+):start -->\n)([^]*?)(\n?<!-- options:\2\.\3:end -->)/g

/** Writes the tables of a page. `tableOf` gives the table of a constructor. */
export const writeTables = (page: string, tableOf: (module: string, name: string) => string | undefined): string =>
  page.replaceAll(generated, (whole, start: string, module: string, name: string, table: string) => {
    const written = tableOf(module, name)
    if (written === undefined || removePadding(written) === removePadding(table)) return whole
    return `${start}\n${written}\n\n<!-- options:${module}.${name}:end -->`
  })

/** The cells of a row's first column: names in code, or a text. */
const firstCell = (row: string): string => row.split("|")[1]?.trim() ?? ""

interface Table {
  readonly head: string
  readonly rows: ReadonlyArray<string>
}

const tablesOf = (page: string): ReadonlyArray<Table> =>
  [...page.replaceAll(generated, "").matchAll(/(?:^\|.*\n)+/gm)].map(([text]) => {
    const [head = "", , ...rows] = text.trim().split("\n").map(firstCell)
    return { head, rows }
  })

/**
 * Finds the tables of a page that list options by hand: their head says so, or most of their names are options of one
 * constructor and all of it. `constructors` has the names of each constructor's options.
 */
export const findHandwritten = (
  page: string,
  constructors: ReadonlyMap<string, ReadonlySet<string>>
): ReadonlyArray<string> =>
  tablesOf(page).flatMap(({ head, rows }) => {
    if (/^options?$/i.test(head)) return [`a table that begins with ${rows[0] ?? "nothing"}`]
    const names = rows.flatMap((row) => /^`([a-z]\w*)\??`$/.exec(row)?.[1] ?? [])
    // Hooks, events and files have tables of their own.
    if (!/^(?:|field|name|property|setting|key|parameter)s?$/.test(head) || names.length < 3) return []
    if (names.length < 0.8 * rows.length) return []
    const [constructor] = [...constructors].find(([, options]) => names.every((name) => options.has(name))) ?? []
    return constructor === undefined ? [] : [`the options of ${constructor}`]
  })
