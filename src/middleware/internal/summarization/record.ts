/** Decisions about the history of a thread, as a slot of the state. */
import * as Schema from "effect/Schema"
import * as AgentState from "../../../core/AgentState.ts"

/** A reference to a message. The index is its former place, a hint that the id must confirm. */
export const Ref = Schema.Struct({ id: Schema.String, index: Schema.Finite })
export type Ref = typeof Ref.Type

/** A message that stays in front of the summary; with `limit`, shortened to that many characters. */
const Pin = Schema.Struct({ ...Ref.fields, limit: Schema.optionalKey(Schema.Finite) })
export type Pin = typeof Pin.Type

/**
 * A summary in place of everything up to `through`. Its text is `head`, `body` (by a model) and `rest`; `id` is the id
 * of its message.
 */
const Fold = Schema.Struct({
  through: Ref,
  pins: Schema.Array(Pin),
  id: Schema.String,
  head: Schema.String,
  body: Schema.String,
  rest: Schema.String
})
export type Fold = typeof Fold.Type

/** Up to `through`, long arguments are cut, and `results` are cleared too; `folder` has them in full. */
const Trim = Schema.Struct({ through: Ref, results: Schema.Boolean, folder: Schema.optionalKey(Schema.String) })
export type Trim = typeof Trim.Type

/** Up to `through`, arguments and results of tools are cut to `limit` characters; with `all`, every text. */
const Clip = Schema.Struct({ through: Ref, limit: Schema.Finite, all: Schema.Boolean })
export type Clip = typeof Clip.Type

/** The messages in the backend: everything up to `through`, in these files of a folder, the oldest first. */
const Offload = Schema.Struct({
  folder: Schema.String,
  through: Schema.optionalKey(Ref),
  files: Schema.Array(Schema.String)
})
export type Offload = typeof Offload.Type

export const Record = Schema.Struct({
  compactions: Schema.Finite,
  requested: Schema.Boolean,
  ratio: Schema.Finite,
  files: Schema.Array(Schema.String),
  fold: Schema.optionalKey(Fold),
  trim: Schema.optionalKey(Trim),
  clip: Schema.optionalKey(Clip),
  offload: Schema.optionalKey(Offload),
  window: Schema.optionalKey(Schema.Struct({ model: Schema.String, tokens: Schema.Finite }))
})
export type Record = typeof Record.Type

export const record = AgentState.slot("summarization", {
  schema: Record,
  initial: { compactions: 0, requested: false, ratio: 1, files: [] }
})
