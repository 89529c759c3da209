/**
 * Gmail: searching and reading mail, drafts, sending.
 *
 * The account's scopes: `gmail.readonly`, and `gmail.compose` for drafts and sending.
 */
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Backend } from "../core/Backend.ts"
import { readOptions } from "../core/schema/invalid.ts"
import { check } from "../support/options/check.ts"
import { at, limitField, makeConnector, type Options, optionalText, text } from "./internal/connectors/client.ts"
import { refusal } from "./internal/connectors/google.ts"
import { failure } from "./internal/connectors/http.ts"
import { Body, messageOf, rawOf, Wire } from "./internal/connectors/mail.ts"
import * as shapes from "./internal/shapes.ts"

const Ids = Schema.Struct({
  messages: Schema.optionalKey(Schema.Array(Schema.Struct({ id: Schema.String, threadId: Schema.String }))),
  nextPageToken: Schema.optionalKey(Schema.String)
})

const Label = Schema.Struct({ id: Schema.String, name: Schema.String, type: Schema.optionalKey(Schema.String) })
const Sent = Schema.Struct({ id: Schema.String, threadId: Schema.optionalKey(Schema.String) })

/** Translates the short forms `unread` and `recent`. */
const queryOf = (query: string): string =>
  query === "unread" ? "is:unread" : query === "recent" ? "newer_than:3d" : query

const bodyOf = (draft: Parameters<typeof rawOf>[0] & { readonly threadId?: string | undefined }) => ({
  raw: rawOf(draft),
  ...(draft.threadId === undefined ? {} : { threadId: draft.threadId })
})

const draftFields = {
  to: Schema.Array(Schema.String).annotate({ description: "Addresses" }),
  subject: Schema.String,
  text: text("The message, as plain text"),
  cc: Schema.optionalKey(Schema.Array(Schema.String)),
  bcc: Schema.optionalKey(Schema.Array(Schema.String)),
  threadId: optionalText("The thread that it answers in"),
  inReplyTo: optionalText("The Message-ID that it answers")
}

const id = text("As gmail_search gave it")

const checkTools = check(shapes.gmailTools)

/** Makes the tools of Gmail. Attachments are saved to the run's `Backend`. */
export const tools = <R = never>(options: Options<R>) => {
  const [{ baseUrl = "https://gmail.googleapis.com", connection }, problem] = readOptions(checkTools, options)
  const service = "Gmail"
  const { change, listBy, read, readBy, request, stream } = makeConnector({
    problem,
    service,
    connection,
    refusal,
    baseUrl,
    root: "/gmail/v1/users/me"
  })
  return [
    listBy({
      name: "gmail_search",
      about: "Finds messages in Gmail, without their texts.",
      parameters: {
        query: text('Gmail\'s search words ("from:ada subject:report"), or "unread", or "recent"'),
        limit: limitField
      },
      items: ({ query }) =>
        stream(
          "search",
          Ids,
          (pageToken: string | undefined) => ({
            path: "/messages",
            query: { q: queryOf(query), maxResults: 100, pageToken }
          }),
          ({ messages = [], nextPageToken }) => ({ items: messages, next: nextPageToken })
        ).pipe(
          Stream.mapEffect(
            (message) => {
              const query = { format: "metadata", metadataHeaders: ["From", "To", "Subject", "Date"] }
              return Effect.map(
                request("read a message", Wire, { path: at`/messages/${message.id}`, query }),
                messageOf
              )
            },
            { concurrency: 4 }
          )
        )
    }),
    read({
      name: "gmail_read_message",
      about: "Reads one message of Gmail.",
      parameters: { id },
      ask: (args) => ({ path: at`/messages/${args.id}`, query: { format: "full" } }),
      answer: Wire,
      show: messageOf
    }),
    read({
      name: "gmail_read_thread",
      about: "Reads all messages of a thread of Gmail.",
      parameters: { id: text("Its threadId") },
      ask: (args) => ({ path: at`/threads/${args.id}`, query: { format: "full" } }),
      answer: Schema.Struct({ messages: Schema.Array(Wire) }),
      show: ({ messages }) => messages.map(messageOf)
    }),
    readBy({
      name: "gmail_get_attachment",
      about: "Saves an attachment of a message as a file of yours, to be read from there.",
      parameters: {
        messageId: id,
        attachmentId: text("As gmail_read_message gave it"),
        path: text("Where to save it")
      },
      work: ({ attachmentId, messageId, path }) =>
        Effect.gen(function* () {
          const wrong = (problem: string) =>
            failure({ service, operation: "save an attachment" }, "InvalidRequest", problem)
          const backend = yield* Effect.serviceOption(Backend)
          if (backend._tag === "None") return yield* wrong("there is no place for files here: provide a Backend")
          const operation = "read an attachment"
          const { data = "" } = yield* request(operation, Body, {
            path: at`/messages/${messageId}/attachments/${attachmentId}`
          })
          const content = yield* Effect.mapError(Effect.fromResult(Base64Url.decode(data.replaceAll("=", ""))), () =>
            failure({ service, operation }, "UnexpectedAnswer", "it is no base64")
          )
          const [saved] = yield* backend.value.upload([{ path, content }])
          if (saved?.ok !== true) return yield* wrong(saved?.error.message ?? "it was not saved")
          return { path: saved.value.path, bytes: content.length }
        })
    }),
    read({
      name: "gmail_list_labels",
      about: "Lists the labels of Gmail.",
      parameters: {},
      ask: () => ({ path: "/labels" }),
      answer: Schema.Struct({ labels: Schema.Array(Label) }),
      show: ({ labels }) => labels
    }),
    change({
      name: "gmail_create_draft",
      about: "Writes a draft in Gmail, which is not sent.",
      parameters: draftFields,
      ask: (draft) => ({ method: "POST", path: "/drafts", body: { message: bodyOf(draft) } }),
      answer: Schema.Struct({ id: Schema.String })
    }),
    change({
      name: "gmail_send_message",
      about: "Sends a message from Gmail.",
      parameters: draftFields,
      ask: (draft) => ({ method: "POST", path: "/messages/send", body: bodyOf(draft) }),
      answer: Sent
    })
  ] as const
}
