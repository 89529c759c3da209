/** Feeds (RSS, Atom) and sitemaps as text. */
import * as Effect from "effect/Effect"
import * as Xml from "effect/encoding/Xml"
import * as Stream from "effect/Stream"
import { textOf } from "./plain.ts"

interface Entry {
  readonly name: string
  readonly fields: Map<string, string>
}

const maxEntries = 500

const local = (name: string): string => name.slice(name.indexOf(":") + 1).toLowerCase()

/** The entries of a document: elements of these names, and the text of what is in them, as far as it can be read. */
const entriesOf = (xml: string, names: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Entry>> => {
  const entries: Array<Entry> = []
  const head: Entry = { name: "", fields: new Map() }
  let entry = head
  let field: string | undefined
  const add = (name: string, text: string) => entry.fields.set(name, (entry.fields.get(name) ?? "") + text)
  return Stream.fromIterable([xml]).pipe(
    Stream.pipeThroughChannel(Xml.decodeString({ maxDepth: 64 })),
    Stream.takeUntil(() => entries.length >= maxEntries),
    Stream.runForEach((event) =>
      Effect.sync(() => {
        if (event._tag === "StartElement") {
          const name = local(event.name)
          if (names.includes(name)) {
            entry = { name, fields: new Map() }
            entries.push(entry)
            field = undefined
          } else {
            field = name
            const href = event.attributes["href"]
            const rel = event.attributes["rel"] ?? "alternate"
            if (name === "link" && href !== undefined && rel === "alternate") add("link", href)
          }
        } else if (event._tag === "EndElement") {
          if (names.includes(local(event.name))) entry = head
          field = undefined
        } else if (event._tag === "Text" && field !== undefined) add(field, event.text)
      })
    ),
    // Entries before the fault are of use all the same.
    Effect.ignore,
    Effect.map(() => [head, ...entries])
  )
}

const line = (text: string | undefined): string =>
  textOf(textOf(text ?? ""))
    .replaceAll(/\s+/g, " ")
    .trim()

const first = (entry: Entry, names: ReadonlyArray<string>): string =>
  names.map((name) => line(entry.fields.get(name))).find((text) => text !== "") ?? ""

/** The entries of a feed: title, date, link and the beginning of the text. */
export const feed = (xml: string): Effect.Effect<{ readonly title: string | undefined; readonly text: string }> =>
  Effect.map(entriesOf(xml, ["item", "entry"]), ([head, ...entries]) => ({
    title: head === undefined ? undefined : first(head, ["title"]) || undefined,
    text: entries
      .map((entry) =>
        [
          `- ${first(entry, ["title"]) || "(no title)"}`,
          first(entry, ["pubdate", "published", "updated", "date"]),
          first(entry, ["link", "id", "guid"]),
          first(entry, ["summary", "description", "content", "encoded"]).slice(0, 500)
        ]
          .filter((part) => part !== "")
          .join("\n  ")
      )
      .join("\n")
  }))

/** The addresses of a sitemap, with the day of their last change. */
export const sitemap = (xml: string): Effect.Effect<string> =>
  Effect.map(entriesOf(xml, ["url", "sitemap"]), ([, ...entries]) =>
    entries
      .map(
        (entry) => `- ${first(entry, ["loc"])}${entry.fields.has("lastmod") ? ` (${first(entry, ["lastmod"])})` : ""}`
      )
      .join("\n")
  )
