/**
 * Google Drive: finding files, and reading them as text.
 *
 * The account's scope: `drive.readonly`.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { cut } from "../support/text/text.ts"
import { at, limitField, makeClient, makeTools, type Options, text } from "./internal/connectors/client.ts"
import { refusal } from "./internal/connectors/google.ts"
import { failure, textOf } from "./internal/connectors/http.ts"

export type { Options }

/** Schema of a file, as far as it is read. */
export const File = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  mimeType: Schema.String,
  modifiedTime: Schema.optionalKey(Schema.String),
  webViewLink: Schema.optionalKey(Schema.String),
  size: Schema.optionalKey(Schema.String),
  owners: Schema.optionalKey(Schema.Array(Schema.Struct({ emailAddress: Schema.optionalKey(Schema.String) })))
})
export interface File extends Schema.Schema.Type<typeof File> {}

const fields = "id,name,mimeType,modifiedTime,webViewLink,size,owners(emailAddress)"

const Page = Schema.Struct({
  files: Schema.optionalKey(Schema.Array(File)),
  nextPageToken: Schema.optionalKey(Schema.String)
})

/** Words as a query of Drive's; its own quotes can't be closed from inside. */
const queryOf = (words: string): string => {
  const quoted = `'${words.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`
  return `(name contains ${quoted} or fullText contains ${quoted}) and trashed = false`
}

const exported: { readonly [mimeType: string]: string } = {
  "application/vnd.google-apps.document": "text/markdown",
  "application/vnd.google-apps.spreadsheet": "text/csv",
  "application/vnd.google-apps.presentation": "text/plain"
}

/** Makes a client of Google Drive for one account. */
export const make = <R = never>({ baseUrl = "https://www.googleapis.com", connection }: Options<R>) => {
  const service = "Google Drive"
  const http = makeClient({ service, connection, refusal, baseUrl, root: "/drive/v3" })
  return {
    /** Files by words of their name or their text; all without words, those that were changed last first. */
    search: (words: string) =>
      http.list(
        "search files",
        "/files",
        Page,
        "pageToken",
        {
          q: words.trim() === "" ? "trashed = false" : queryOf(words),
          fields: `nextPageToken,files(${fields})`,
          pageSize: 100,
          // Drive orders a search for words by itself.
          orderBy: words.trim() === "" ? "modifiedTime desc" : undefined,
          supportsAllDrives: true,
          includeItemsFromAllDrives: true
        },
        ({ files = [], nextPageToken }) => ({ items: files, next: nextPageToken })
      ),
    /** The text of a file: documents as Markdown, tables as CSV. Of what is no text, it fails. */
    read: (id: string) =>
      Effect.gen(function* () {
        const file = yield* http.get("read a file", at`/files/${id}`, File, { fields, supportsAllDrives: true })
        const format = exported[file.mimeType]
        if (format === undefined && !/^text\/|json|xml|yaml|javascript/.test(file.mimeType)) {
          const known = { service, operation: "read a file" }
          return yield* failure(known, "InvalidRequest", `${file.name} is ${file.mimeType}, of which there is no text`)
        }
        const answer = yield* format === undefined
          ? http.raw("read a file", "GET", at`/files/${id}`, { query: { alt: "media", supportsAllDrives: true } })
          : http.raw("read a file", "GET", at`/files/${id}/export`, { query: { mimeType: format } })
        return { file, text: textOf(answer) }
      })
  }
}

/** Makes the tools of Google Drive. */
export const tools = <R = never>(options: Options<R>) => {
  const drive = make(options)
  const { listing, reading } = makeTools("Google Drive")
  return [
    listing(
      "google_drive_search_files",
      "Finds files in Google Drive by words of their name or text; without words, the latest.",
      { words: Schema.String, limit: limitField },
      ({ words }) => drive.search(words)
    ),
    reading(
      "google_drive_read_file",
      "Reads a file of Google Drive as text.",
      { id: text("As google_drive_search_files gave it") },
      ({ id }) => Effect.map(drive.read(id), (read) => ({ ...read, text: cut(read.text, 25_000) }))
    )
  ] as const
}
