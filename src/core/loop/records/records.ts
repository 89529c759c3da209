/** The stored records of work inside open calls. */
import * as Schema from "effect/Schema"
import { Json, JsonObject } from "../../Json.ts"
import { StopReason } from "../../StopReason.ts"
import { Stored } from "../../thread/storedOutput.ts"
import { ToolError } from "../../ToolError.ts"
import { Spent, Usage } from "../../Usage.ts"

/** One answer of a sub-agent: the digest of its input, the range of its messages, and its usage until then. */
const End = Schema.Struct({
  input: Schema.String,
  from: Schema.Finite,
  to: Schema.Finite,
  stopReason: StopReason,
  text: Schema.String,
  usage: Usage,
  rounds: Schema.Finite
})
export type End = typeof End.Type

/**
 * One thing that was done, or is being done. A `Call` is `asked` about before it is `begun`, and `waiting` while something
 * in it waits; `settled` are the requests by which it was let begin, for that once. A `Child` has the digest of the input that it
 * works on. An `Ask` without an answer waits for it.
 */
export const DoneRecord = Schema.Union([
  Schema.TaggedStruct("Call", {
    id: Schema.String,
    arguments: JsonObject,
    status: Schema.Literals(["asked", "begun", "waiting", "done"]),
    settled: Schema.Array(Schema.String),
    outcome: Schema.optionalKey(Schema.Union([Stored, Schema.TaggedStruct("Failed", { error: ToolError })]))
  }),
  Schema.TaggedStruct("Child", {
    agent: Schema.String,
    open: Schema.optionalKey(Schema.String),
    ends: Schema.Array(End)
  }),
  Schema.TaggedStruct("Step", { value: Json }),
  Schema.TaggedStruct("Ask", { id: Schema.String, answer: Schema.optionalKey(Json) })
])
export type DoneRecord = typeof DoneRecord.Type
export type DoneOf<Tag extends DoneRecord["_tag"]> = Extract<DoneRecord, { readonly _tag: Tag }>

export const encodeDone = Schema.encodeSync(DoneRecord)
export const decodeDone = Schema.decodeUnknownResult(DoneRecord)

/** Usage, rounds and work of a sub-agent. Records of earlier versions have no work. */
const Progress = Schema.Struct({ usage: Usage, rounds: Schema.Finite, spent: Schema.optionalKey(Spent) })
export const decodeProgress = Schema.decodeUnknownResult(Progress)
