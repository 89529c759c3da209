/** The notification of a request, and its lines for a person. */
import * as Schema from "effect/Schema"
import { cut } from "../../support/text/text.ts"
import { escaped } from "../../support/text/untrusted.ts"

/** Urgency of a notice. */
export const Severity = Schema.Literals(["low", "normal", "high"])
export type Severity = typeof Severity.Type

/** The kind of a request: an approval of a call, or a question of a tool. */
export const Kind = Schema.Literals(["approval", "question"])
export type Kind = typeof Kind.Type

/** A notification. Its `id` is the request's, so that a receiver can drop repetitions. `text` may quote a model. */
export const Notification = Schema.Struct({
  id: Schema.String,
  kind: Kind,
  severity: Severity,
  title: Schema.String,
  text: Schema.String,
  threadId: Schema.optionalKey(Schema.String),
  at: Schema.Finite
})
export interface Notification extends Schema.Schema.Type<typeof Notification> {}

/** The lines of a notification, safe for a terminal or a chat: with invisible characters escaped, and long texts cut. */
export const lines = ({ severity, text, threadId, title }: Notification): ReadonlyArray<string> => [
  `${severity === "high" ? "[!] " : ""}${escaped(cut(title, 200))}`,
  ...cut(text, 2000).split("\n").map(escaped),
  ...(threadId === undefined ? [] : [`thread ${escaped(cut(threadId, 200))}`])
]
