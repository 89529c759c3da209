/** Reasons for which an OAuth request fails. */
import * as Schema from "effect/Schema"
import { cut } from "../text/text.ts"
import { oneLine } from "../text/untrusted.ts"

/**
 * - `NotConnected`: nobody has signed in, or the token is no longer valid
 * - `Declined`: the person said no, in the program or at the server
 * - `Expired`: the sign-in was not finished in time
 * - `Refused`: the server refused, with an error of OAuth
 * - `InvalidResponse`: the response belongs to another sign-in, or violates the protocol: it was not used
 * - `Unavailable`: the server was not reached, or failed; try again later
 * - `Unsupported`: the server, or this installation, lacks the feature
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("NotConnected", { problem: Schema.String }),
  Schema.TaggedStruct("Declined", {}),
  Schema.TaggedStruct("Expired", { seconds: Schema.Finite }),
  Schema.TaggedStruct("Refused", { error: Schema.String, description: Schema.optionalKey(Schema.String) }),
  Schema.TaggedStruct("InvalidResponse", { problem: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String }),
  Schema.TaggedStruct("Unsupported", { problem: Schema.String })
])
export type Reason = typeof Reason.Type

/** Bounds a server's text to one line. */
export const bounded = (text: string): string => cut(oneLine(text), 300)

export const unsupported = (problem: string): Reason => ({ _tag: "Unsupported", problem })
export const invalid = (problem: string): Reason => ({ _tag: "InvalidResponse", problem })
export const unavailable = (problem: string): Reason => ({ _tag: "Unavailable", problem })
export const expired = (seconds: number): Reason => ({ _tag: "Expired", seconds })
