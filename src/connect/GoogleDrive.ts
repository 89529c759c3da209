/**
 * Google Drive: finding files, and reading them as text.
 *
 * The account's scope: `drive.readonly`.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { readOptions } from "../core/schema/invalid.ts"
import { valueAt } from "../support/json/valueAt.ts"
import { check } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { at, limitField, makeConnector, type Options, text } from "./internal/connectors/client.ts"
import { refusal } from "./internal/connectors/google.ts"
import { failure, textOf } from "./internal/connectors/http.ts"
import * as shapes from "./internal/shapes.ts"

const File = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  mimeType: Schema.String,
  modifiedTime: Schema.optionalKey(Schema.String),
  webViewLink: Schema.optionalKey(Schema.String),
  size: Schema.optionalKey(Schema.String),
  owners: Schema.optionalKey(Schema.Array(Schema.Struct({ emailAddress: Schema.optionalKey(Schema.String) })))
})

const fields = "id,name,mimeType,modifiedTime,webViewLink,size,owners(emailAddress)"

const Page = Schema.Struct({
  files: Schema.optionalKey(Schema.Array(File)),
  nextPageToken: Schema.optionalKey(Schema.String)
})

/** Quotes words for a query of Drive. */
const queryOf = (words: string): string => {
  const quoted = `'${words.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`
  return `(name contains ${quoted} or fullText contains ${quoted}) and trashed = false`
}

const exported: { readonly [mimeType: string]: string } = {
  "application/vnd.google-apps.document": "text/markdown",
  "application/vnd.google-apps.spreadsheet": "text/csv",
  "application/vnd.google-apps.presentation": "text/plain"
}

const checkTools = check(shapes.googleDriveTools)

/** Makes the tools of Google Drive. */
export const tools = <R = never>(options: Options<R>) => {
  const [{ baseUrl = "https://www.googleapis.com", connection }, problem] = readOptions(checkTools, options)
  const service = "Google Drive"
  const { list, readBy, request, sendRaw } = makeConnector({
    problem,
    service,
    connection,
    refusal,
    baseUrl,
    root: "/drive/v3"
  })
  return [
    list({
      name: "google_drive_search_files",
      about: "Finds files in Google Drive by words of their name or text; without words, the latest.",
      parameters: { words: Schema.String, limit: limitField },
      ask: ({ words }, pageToken) => ({
        path: "/files",
        query: {
          q: words.trim() === "" ? "trashed = false" : queryOf(words),
          fields: `nextPageToken,files(${fields})`,
          pageSize: 100,
          // Drive refuses an order for a search by words.
          orderBy: words.trim() === "" ? "modifiedTime desc" : undefined,
          supportsAllDrives: true,
          includeItemsFromAllDrives: true,
          pageToken
        }
      }),
      answer: Page,
      page: ({ files = [], nextPageToken }) => ({ items: files, next: nextPageToken })
    }),
    readBy({
      name: "google_drive_read_file",
      about: "Reads a file of Google Drive as text.",
      parameters: { id: text("As google_drive_search_files gave it") },
      work: ({ id }) =>
        Effect.gen(function* () {
          const operation = "read a file"
          const path = at`/files/${id}`
          const file = yield* request(operation, File, { path, query: { fields, supportsAllDrives: true } })
          const format = valueAt(exported, file.mimeType)
          if (format === undefined && !/^text\/|json|xml|yaml|javascript/.test(file.mimeType)) {
            const problem = `${file.name} is ${file.mimeType}, of which there is no text`
            return yield* failure({ service, operation }, "InvalidRequest", problem)
          }
          const answer = yield* sendRaw(
            operation,
            format === undefined
              ? { path, query: { alt: "media", supportsAllDrives: true } }
              : { path: `${path}/export`, query: { mimeType: format } }
          )
          return { file, text: cut(textOf(answer), 25_000) }
        })
    })
  ] as const
}
