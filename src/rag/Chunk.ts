/**
 * Documents, and the chunks of their text that are searched.
 *
 * The text of a chunk is always `document.text.slice(chunk.start, chunk.end)`, so a citation can point at it.
 *
 * ```ts
 * import { Chunker, type Chunk } from "effect-deepagents/rag"
 *
 * const document: Chunk.Document = { id: "/ulm.md", title: "Ulm", text: "# River\nUlm lies on the Danube." }
 * const chunks = Chunker.chunk(document, { split: Chunker.markdown })
 * ```
 */
import * as Schema from "effect/Schema"
import { JsonObject } from "../core/Json.ts"

/** A page, sheet or slide of a document: its label, and where it starts in the text. */
const Part = Schema.Struct({ start: Schema.Int, label: Schema.String })

/**
 * A text to index. `id` is stable, at most 1,024 characters, and unique in its namespace: the path of a file, for
 * example. `source` groups documents (a folder, a site), `at` is their time in milliseconds since the epoch, and
 * `metadata` has values to filter by.
 */
export const Document = Schema.Struct({
  id: Schema.String,
  text: Schema.String,
  title: Schema.optionalKey(Schema.String),
  source: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  at: Schema.optionalKey(Schema.Finite),
  metadata: Schema.optionalKey(JsonObject),
  parts: Schema.optionalKey(Schema.Array(Part))
})
export interface Document extends Schema.Schema.Type<typeof Document> {}

/**
 * A passage of a document. `index` counts the chunks of a document from 0, and `id` is the document's id with it.
 * `headings` are the titles of the sections around it, the outermost first, and `label` names its page, sheet or slide.
 */
export const Chunk = Schema.Struct({
  id: Schema.String,
  document: Schema.String,
  index: Schema.Int,
  start: Schema.Int,
  end: Schema.Int,
  text: Schema.String,
  headings: Schema.Array(Schema.String),
  label: Schema.String
})
export interface Chunk extends Schema.Schema.Type<typeof Chunk> {}

/** The id of a chunk. */
export const idOf = (document: string, index: number): string => `${document}::${index}`

/** Reads the document and the place from the id of a chunk; `undefined` for other texts. */
export const parseId = (id: string): { readonly document: string; readonly index: number } | undefined => {
  const at = id.lastIndexOf("::")
  const digits = id.slice(at + 2)
  return at < 1 || !/^\d{1,9}$/.test(digits) ? undefined : { document: id.slice(0, at), index: Number(digits) }
}

/** The titles around a chunk: of its document, its sections and its page. */
export const trailOf = (title: string | undefined, chunk: Pick<Chunk, "headings" | "label">): string => {
  const [first, ...others] = chunk.headings
  // The first heading of a page is often its title.
  const headings = first === undefined || first === title ? others : [first, ...others]
  return [title ?? "", ...headings, chunk.label].filter((one) => one !== "").join(" › ")
}

/** The text that is embedded and matched by words: a chunk below the titles around it. */
export const inContext = (title: string | undefined, chunk: Chunk): string => {
  const trail = trailOf(title, chunk).slice(0, 200)
  return trail === "" ? chunk.text : `${trail}\n${chunk.text}`
}
