/** Reads feeds (RSS, Atom) and sitemaps as text. */
import * as Effect from "effect/Effect"
import * as Xml from "effect/encoding/Xml"
import * as Stream from "effect/Stream"
import { textOf } from "./plain.ts"

interface Entry {
  readonly name: string
  readonly fields: Map<string, string>
}

const maxEntries = 500

const localName = (name: string): string => name.slice(name.indexOf(":") + 1).toLowerCase()

/** Reads elements with these names, and the texts of their children. Entries before a syntax error are kept. */
const readEntries = (xml: string, names: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Entry>> => {
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
          const name = localName(event.name)
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
          if (names.includes(localName(event.name))) entry = head
          field = undefined
        } else if (event._tag === "Text" && field !== undefined) add(field, event.text)
      })
    ),
    Effect.ignore,
    Effect.map(() => [head, ...entries])
  )
}

const cleanText = (text: string | undefined): string =>
  textOf(textOf(text ?? ""))
    .replaceAll(/\s+/g, " ")
    .trim()

const readField = (entry: Entry, names: ReadonlyArray<string>): string =>
  names.map((name) => cleanText(entry.fields.get(name))).find((text) => text !== "") ?? ""

/** Reads the entries of a feed: title, date, link and the start of the text. */
export const readFeed = (xml: string): Effect.Effect<{ readonly title: string | undefined; readonly text: string }> =>
  Effect.map(readEntries(xml, ["item", "entry"]), ([head, ...entries]) => ({
    title: head === undefined ? undefined : readField(head, ["title"]) || undefined,
    text: entries
      .map((entry) =>
        [
          `- ${readField(entry, ["title"]) || "(no title)"}`,
          readField(entry, ["pubdate", "published", "updated", "date"]),
          readField(entry, ["link", "id", "guid"]),
          readField(entry, ["summary", "description", "content", "encoded"]).slice(0, 500)
        ]
          .filter((part) => part !== "")
          .join("\n  ")
      )
      .join("\n")
  }))

/** Reads the addresses of a sitemap, with the date of their last change. */
export const readSitemap = (xml: string): Effect.Effect<string> =>
  Effect.map(readEntries(xml, ["url", "sitemap"]), ([, ...entries]) =>
    entries
      .map(
        (entry) =>
          `- ${readField(entry, ["loc"])}${entry.fields.has("lastmod") ? ` (${readField(entry, ["lastmod"])})` : ""}`
      )
      .join("\n")
  )
