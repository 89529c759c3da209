/**
 * What somebody sees who watches a thread: what is stored, and what happens at this moment.
 */
import * as Schema from "effect/Schema"
import { AgentEvent } from "../core/AgentEvent.ts"
import { Entry } from "../core/Journal.ts"

/**
 * `Stored` is an entry of the thread with its place: `step` counts from 1, without gaps, and is where to begin again
 * (`after`). `Live` is an event of the run that goes on: it is told to who is there, may be left out for who reads slowly,
 * and is not told again. `at` is in milliseconds since the epoch.
 */
export const ThreadEvent = Schema.Union([
  Schema.TaggedStruct("Stored", { step: Schema.Finite, id: Schema.String, at: Schema.Finite, entry: Entry }),
  Schema.TaggedStruct("Live", { event: AgentEvent })
])
export type ThreadEvent = typeof ThreadEvent.Type
