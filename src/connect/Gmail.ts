/**
 * Gmail: searching and reading mail, drafts, sending.
 *
 * The account's scopes: `gmail.readonly`, and `gmail.compose` for drafts and sending.
 */
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Backend } from "../core/Backend.ts"
import { cut } from "../support/text/text.ts"
import {
  at,
  limitField,
  makeClient,
  makeTools,
  type Options,
  optionalText,
  plainOf,
  text
} from "./internal/connectors/client.ts"
import { refusal } from "./internal/connectors/google.ts"
import { failure } from "./internal/connectors/http.ts"

export type { Options }

const Header = Schema.Struct({ name: Schema.String, value: Schema.String })
const Body = Schema.Struct({
  attachmentId: Schema.optionalKey(Schema.String),
  size: Schema.optionalKey(Schema.Finite),
  data: Schema.optionalKey(Schema.String)
})

interface Part {
  readonly mimeType?: string
  readonly filename?: string
  readonly headers?: ReadonlyArray<typeof Header.Type>
  readonly body?: typeof Body.Type
  readonly parts?: ReadonlyArray<Part>
}

const Part: Schema.Codec<Part> = Schema.Struct({
  mimeType: Schema.optionalKey(Schema.String),
  filename: Schema.optionalKey(Schema.String),
  headers: Schema.optionalKey(Schema.Array(Header)),
  body: Schema.optionalKey(Body),
  parts: Schema.optionalKey(Schema.Array(Schema.suspend((): Schema.Codec<Part> => Part)))
})

const Wire = Schema.Struct({
  id: Schema.String,
  threadId: Schema.String,
  labelIds: Schema.optionalKey(Schema.Array(Schema.String)),
  snippet: Schema.optionalKey(Schema.String),
  payload: Schema.optionalKey(Part)
})

const Ids = Schema.Struct({
  messages: Schema.optionalKey(Schema.Array(Schema.Struct({ id: Schema.String, threadId: Schema.String }))),
  nextPageToken: Schema.optionalKey(Schema.String)
})

const Label = Schema.Struct({ id: Schema.String, name: Schema.String, type: Schema.optionalKey(Schema.String) })
const Sent = Schema.Struct({ id: Schema.String, threadId: Schema.optionalKey(Schema.String) })

/** A message as a reader sees it. */
export interface Message {
  readonly id: string
  readonly threadId: string
  readonly from: string
  readonly to: string
  readonly subject: string
  readonly date: string
  readonly labels: ReadonlyArray<string>
  readonly snippet: string
  readonly text: string
  readonly attachments: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly mimeType: string
    readonly size: number
  }>
}

/**
 * A message to be written. `threadId` makes it an answer in a thread, `inReplyTo` one to the message of this
 * `Message-ID`.
 */
export interface Draft {
  readonly to: ReadonlyArray<string>
  readonly subject: string
  readonly text: string
  readonly cc?: ReadonlyArray<string> | undefined
  readonly bcc?: ReadonlyArray<string> | undefined
  readonly threadId?: string | undefined
  readonly inReplyTo?: string | undefined
}

/** All parts of a message, from the outside in. */
const partsOf = (part: Part | undefined): ReadonlyArray<Part> =>
  part === undefined ? [] : [part, ...(part.parts ?? []).flatMap(partsOf)]

const textOf = (data: string | undefined): string =>
  Result.match(Base64Url.decode((data ?? "").replaceAll("=", "")), {
    onSuccess: (bytes) => new TextDecoder().decode(bytes),
    onFailure: () => ""
  })

const messageOf = ({ id, labelIds = [], payload, snippet = "", threadId }: typeof Wire.Type): Message => {
  const header = (name: string) =>
    payload?.headers?.find((one) => one.name.toLowerCase() === name)?.value.slice(0, 2_000) ?? ""
  const parts = partsOf(payload)
  const own = (type: string) =>
    parts.find(
      ({ body, filename, mimeType }) => mimeType === type && (filename ?? "") === "" && body?.data !== undefined
    )
  const plain = textOf(own("text/plain")?.body?.data)
  return {
    id,
    threadId,
    from: header("from"),
    to: header("to"),
    subject: header("subject"),
    date: header("date"),
    labels: labelIds,
    snippet: plainOf(snippet),
    text: plain === "" ? plainOf(textOf(own("text/html")?.body?.data)) : cut(plain, 20_000),
    attachments: parts.flatMap(({ body, filename = "", mimeType = "" }) =>
      body?.attachmentId === undefined
        ? []
        : [{ id: body.attachmentId, name: filename, mimeType, size: body.size ?? 0 }]
    )
  }
}

/** `unread` and `recent` as Gmail says them. */
const queryOf = (query: string): string =>
  query === "unread" ? "is:unread" : query === "recent" ? "newer_than:3d" : query

const encoded = (value: string): string => Base64.encode(new TextEncoder().encode(value))

/** The bytes that one word of a header holds (RFC 2047: 75 characters, with what stands around them). */
const wordLength = 45

/** A text as words of a header, in ASCII; no character is parted. */
const wordsOf = (text: string): string => {
  const words: Array<string> = []
  let word = ""
  let length = 0
  for (const character of text) {
    const size = new TextEncoder().encode(character).length
    if (length + size > wordLength) {
      words.push(word)
      word = ""
      length = 0
    }
    word += character
    length += size
  }
  return [...words, word].map((one) => `=?UTF-8?B?${encoded(one)}?=`).join("\r\n ")
}

/** The longest text of a header that is written as it is: a line has 998 characters at most. */
const plainLength = 900

const isPlain = (text: string): boolean => text.length <= plainLength && /^[\x20-\x7e]*$/.test(text)

/** A text on one line: a line break in it would begin another header. */
const lineOf = (value: string): string => value.replaceAll(/[\r\n\0]+/g, " ").trim()

const headerOf = (name: string, value: string): string => {
  const line = lineOf(value)
  return `${name}: ${isPlain(line) ? line : wordsOf(line)}`
}

/** An address, the name before it in ASCII. */
const addressOf = (value: string): string => {
  const line = lineOf(value)
  const at = line.lastIndexOf("<")
  const name = line.slice(0, Math.max(0, at)).trim()
  return isPlain(name) ? line : `${wordsOf(name.replaceAll(/^"|"$/g, ""))} ${line.slice(at)}`
}

const rawOf = (draft: Draft): string => {
  const { bcc = [], cc = [], inReplyTo, subject, text: body, to } = draft
  const addresses = (name: string, all: ReadonlyArray<string>) =>
    all.length === 0 ? [] : [`${name}: ${all.map(addressOf).join(",\r\n ")}`]
  const lines = [
    ...addresses("To", to),
    ...addresses("Cc", cc),
    ...addresses("Bcc", bcc),
    headerOf("Subject", subject),
    ...(inReplyTo === undefined ? [] : [headerOf("In-Reply-To", inReplyTo), headerOf("References", inReplyTo)]),
    "MIME-Version: 1.0",
    'Content-Type: text/plain; charset="UTF-8"',
    "Content-Transfer-Encoding: base64",
    "",
    encoded(body).replaceAll(/.{76}/g, "$&\r\n")
  ]
  return Base64Url.encode(new TextEncoder().encode(lines.join("\r\n")))
}

/** Makes a client of Gmail for one account. */
export const make = <R = never>({ baseUrl = "https://gmail.googleapis.com", connection }: Options<R>) => {
  const http = makeClient({ service: "Gmail", connection, refusal, baseUrl, root: "/gmail/v1/users/me" })
  const one = (id: string, query: { readonly format: string; readonly metadataHeaders?: ReadonlyArray<string> }) =>
    Effect.map(http.get("read a message", at`/messages/${id}`, Wire, query), messageOf)
  const written = (draft: Draft) => ({
    raw: rawOf(draft),
    ...(draft.threadId === undefined ? {} : { threadId: draft.threadId })
  })
  return {
    /** Messages by Gmail's own search words, without their texts, the latest first. */
    search: (query: string) =>
      http
        .list(
          "search",
          "/messages",
          Ids,
          "pageToken",
          { q: queryOf(query), maxResults: 100 },
          ({ messages = [], nextPageToken }) => ({ items: messages, next: nextPageToken })
        )
        .pipe(
          Stream.mapEffect(
            ({ id }) => one(id, { format: "metadata", metadataHeaders: ["From", "To", "Subject", "Date"] }),
            { concurrency: 4 }
          )
        ),
    readMessage: (id: string) => one(id, { format: "full" }),
    readThread: (id: string) =>
      Effect.map(
        http.get("read a thread", at`/threads/${id}`, Schema.Struct({ messages: Schema.Array(Wire) }), {
          format: "full"
        }),
        ({ messages }) => messages.map(messageOf)
      ),
    /** The bytes of an attachment. */
    attachment: (messageId: string, id: string) =>
      Effect.flatMap(
        http.get("read an attachment", at`/messages/${messageId}/attachments/${id}`, Body),
        ({ data = "" }) =>
          Effect.mapError(Effect.fromResult(Base64Url.decode(data.replaceAll("=", ""))), () =>
            failure({ service: "Gmail", operation: "read an attachment" }, "UnexpectedAnswer", "it is no base64")
          )
      ),
    labels: Effect.map(
      http.get("list labels", "/labels", Schema.Struct({ labels: Schema.Array(Label) })),
      ({ labels }) => labels
    ),
    createDraft: (draft: Draft) =>
      http.post("create a draft", "/drafts", Schema.Struct({ id: Schema.String }), { message: written(draft) }),
    send: (draft: Draft) => http.post("send a message", "/messages/send", Sent, written(draft))
  }
}

const draftFields = {
  to: Schema.Array(Schema.String).annotate({ description: "Addresses" }),
  subject: Schema.String,
  text: text("The message, as plain text"),
  cc: Schema.optionalKey(Schema.Array(Schema.String)),
  bcc: Schema.optionalKey(Schema.Array(Schema.String)),
  threadId: optionalText("The thread that it answers in"),
  inReplyTo: optionalText("The Message-ID that it answers")
}

/** Makes the tools of Gmail. Attachments are saved to the run's `Backend`. */
export const tools = <R = never>(options: Options<R>) => {
  const gmail = make(options)
  const { listing, reading, writing } = makeTools("Gmail")
  const id = text("As gmail_search gave it")
  return [
    listing(
      "gmail_search",
      "Finds messages in Gmail, without their texts.",
      { query: text('Gmail\'s search words ("from:ada subject:report"), or "unread", or "recent"'), limit: limitField },
      ({ query }) => gmail.search(query)
    ),
    reading("gmail_read_message", "Reads one message of Gmail.", { id }, (args) => gmail.readMessage(args.id)),
    reading("gmail_read_thread", "Reads all messages of a thread of Gmail.", { id: text("Its threadId") }, (args) =>
      gmail.readThread(args.id)
    ),
    reading(
      "gmail_get_attachment",
      "Saves an attachment of a message as a file of yours, to be read from there.",
      { messageId: id, attachmentId: text("As gmail_read_message gave it"), path: text("Where to save it") },
      ({ attachmentId, messageId, path }) =>
        Effect.gen(function* () {
          const wrong = (problem: string) =>
            failure({ service: "Gmail", operation: "save an attachment" }, "InvalidRequest", problem)
          const backend = yield* Effect.serviceOption(Backend)
          if (backend._tag === "None") return yield* wrong("there is no place for files here: provide a Backend")
          const content = yield* gmail.attachment(messageId, attachmentId)
          const [saved] = yield* backend.value.upload([{ path, content }])
          if (saved?.ok !== true) return yield* wrong(saved?.error.message ?? "it was not saved")
          return { path: saved.value.path, bytes: content.length }
        })
    ),
    reading("gmail_list_labels", "Lists the labels of Gmail.", {}, () => gmail.labels),
    writing("gmail_create_draft", "Writes a draft in Gmail, which is not sent.", draftFields, gmail.createDraft),
    writing("gmail_send_message", "Sends a message from Gmail.", draftFields, gmail.send)
  ] as const
}
