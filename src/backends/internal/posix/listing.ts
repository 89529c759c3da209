/**
 * The entries of a directory of a remote shell: names from the shell, which are exact, and sizes from `ls -l`, whose
 * names are not, put together by their order.
 */
import type { Entry, Listing } from "../../../core/Backend.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { compareText } from "../../../support/text/text.ts"
import * as Path from "../files/path.ts"
import type { Reader } from "./shell.ts"

const kinds: { readonly [mark: string]: Entry["kind"] } = { d: "directory", f: "file", l: "link" }

interface NamedEntry {
  readonly name: string
  readonly kind: Entry["kind"]
  /** The kind that `ls -l` must say it is, if its size is to be believed. */
  readonly mark: string
  readonly size: number | undefined
}

const parseName = (kind: string, name: string): NamedEntry => {
  const link = kind.startsWith("@")
  const mark = link ? kind.charAt(1) : kind
  const size = link && mark === "f" ? Number.parseInt(kind.slice(2), 10) : undefined
  return {
    name,
    kind: valueAt(kinds, mark) ?? "link",
    mark: link ? "l" : mark,
    size: Number.isNaN(size) ? undefined : size
  }
}

/** `-rw-r--r-- 1 0 0 12 Nov …` */
const line = /^(.)\S*\s+\d+\s+\d+\s+\d+\s+(\d+)\s/

const isSame = (mark: string, lineMark: string): boolean => (mark === "f" ? lineMark === "-" : mark === lineMark)

/** Reads the entries of a directory, by name. They have no sizes if the two outputs do not fit together. */
export const listingOf = (folder: string, records: Reader): Listing => {
  const items: Array<NamedEntry> = []
  let isWhole = false
  while (!records.isEmpty() && !isWhole) {
    const kind = records.text()
    if (kind === "") isWhole = true
    else items.push(parseName(kind, records.text()))
  }
  // The last name may have been cut.
  if (!isWhole) items.pop()
  const lines = new TextDecoder()
    .decode(records.rest())
    .split("\n")
    .flatMap((text) => {
      const [, mark, size] = line.exec(text) ?? []
      return mark === undefined || mark === "t" ? [] : [{ mark, size: Number(size) }]
    })
  const fits = lines.length === items.length
  const entries = items
    .toSorted((left, right) => compareText(left.name, right.name))
    .map(({ kind, mark, name, size }, index): Entry => {
      const row = fits ? lines[index] : undefined
      const own = row !== undefined && mark === "f" && isSame(mark, row.mark) ? row.size : size
      const path = Path.join(folder, name)
      return kind === "file" && own !== undefined ? { path, kind, size: own } : { path, kind }
    })
    .sort((left, right) => Path.compare(left.path, right.path))
  return isWhole ? { entries } : { entries, truncated: "limit" }
}
