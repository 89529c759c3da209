/**
 * The index of a directory in a key-value store: its names and their kinds, in pages.
 *
 * A small directory is one page. A page that grows too long is split into sixteen, by a hash of the names, so that a
 * new file costs a page and not a directory.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { BackendError } from "../../../core/BackendError.ts"

/** `size` in bytes, `modifiedAt` in milliseconds since the epoch. */
export type Entry =
  | { readonly kind: "directory" }
  | { readonly kind: "file"; readonly size: number; readonly modifiedAt: number }

type Entries = ReadonlyMap<string, Entry>

/** Entries, or `"parted"`: they are in the pages below. A page without entries is not saved. */
export type Page = "parted" | Entries

type Failing<A> = Effect.Effect<A, BackendError>

/**
 * The key under which a page of a directory is kept; `place` is empty for the first page, and else the digits that lead
 * to it.
 */
export interface Pages {
  readonly get: (folder: string, place: string) => Failing<Page>
  readonly set: (folder: string, place: string, page: Page) => Failing<void>
}

/** The most entries of a page. */
const longest = 128

const digits = Array.from("0123456789abcdef")

/** Eight digits. Names made to have the same make long pages, and nothing worse. */
const hashOf = (name: string): string => {
  let hash = 0x811c9dc5
  for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b)
  return ((hash ^ (hash >>> 13)) >>> 0).toString(16).padStart(8, "0")
}

/** The page that a name is in, or would be. */
const pageOf = (
  pages: Pages,
  folder: string,
  name: string
): Failing<{ readonly place: string; readonly entries: Entries }> =>
  Effect.gen(function* () {
    const hash = hashOf(name)
    for (let depth = 0; ; depth++) {
      const place = hash.slice(0, depth)
      const page = yield* pages.get(folder, place)
      if (page !== "parted") return { place, entries: page }
    }
  })

export const find = (pages: Pages, folder: string, name: string): Failing<Entry | undefined> =>
  Effect.map(pageOf(pages, folder, name), ({ entries }) => entries.get(name))

/** All that is in a directory. */
export const all = (pages: Pages, folder: string, place = ""): Failing<ReadonlyArray<readonly [string, Entry]>> =>
  Effect.flatMap(pages.get(folder, place), (page) =>
    page === "parted"
      ? Effect.map(
          Effect.forEach(digits, (digit) => all(pages, folder, place + digit)),
          (parts) => parts.flat()
        )
      : Effect.succeed(Array.from(page))
  )

/** Tells whether a directory has nothing in it, as far as its first page says. */
export const isEmpty = (pages: Pages, folder: string): Failing<boolean> =>
  Effect.map(pages.get(folder, ""), (page) => page !== "parted" && page.size === 0)

/** Writes the entries of a page. Child pages are written first: the old page is valid until the last step. */
const save = (pages: Pages, folder: string, place: string, entries: Entries): Failing<void> =>
  Effect.gen(function* () {
    if (entries.size <= longest || place.length === 8) return yield* pages.set(folder, place, entries)
    for (const digit of digits) {
      const below = place + digit
      yield* save(pages, folder, below, new Map(Array.from(entries).filter(([name]) => hashOf(name).startsWith(below))))
    }
    return yield* pages.set(folder, place, "parted")
  })

export const putEntry = (pages: Pages, folder: string, name: string, entry: Entry): Failing<void> =>
  Effect.flatMap(pageOf(pages, folder, name), ({ entries, place }) =>
    save(pages, folder, place, new Map(entries).set(name, entry))
  )

/** Takes a name out, and the pages that it leaves empty. */
export const drop = (pages: Pages, folder: string, name: string): Failing<void> =>
  Effect.gen(function* () {
    const { entries, place } = yield* pageOf(pages, folder, name)
    const remaining = new Map(entries)
    if (!remaining.delete(name)) return
    yield* pages.set(folder, place, remaining)
    for (let at = place; at !== "" && remaining.size === 0; at = at.slice(0, -1)) {
      const above = at.slice(0, -1)
      for (const digit of digits) {
        const page = yield* pages.get(folder, above + digit)
        if (page === "parted" || page.size > 0) return
      }
      yield* pages.set(folder, above, new Map())
    }
  })

/** A valid name in a path, so that other writers of the store can't lead out of the directory. */
const Name = Schema.String.check(
  Schema.makeFilter((name) => name !== "" && name !== "." && name !== ".." && !/[/\\\0]/.test(name))
)

/** Rows, not an object: `__proto__` is a name too. */
const Saved = Schema.fromJsonString(
  Schema.Union([
    Schema.Literal("parted"),
    Schema.Array(Schema.Union([Schema.Tuple([Name, Schema.Finite, Schema.Finite]), Schema.Tuple([Name])]))
  ])
)

const decode = Schema.decodeUnknownOption(Saved)

/** Decodes a page: empty if it is missing, `undefined` if it is invalid. */
export const decodePage = (json: string | undefined): Page | undefined => {
  if (json === undefined) return new Map()
  const saved = Option.getOrUndefined(decode(json))
  if (saved === undefined || saved === "parted") return saved
  return new Map(
    saved.map((row): readonly [string, Entry] =>
      row.length === 1 ? [row[0], { kind: "directory" }] : [row[0], { kind: "file", size: row[1], modifiedAt: row[2] }]
    )
  )
}

export const encodePage = (page: Page): string =>
  JSON.stringify(
    page === "parted"
      ? page
      : Array.from(page, ([name, entry]) =>
          entry.kind === "directory" ? [name] : [name, entry.size, entry.modifiedAt]
        )
  )
