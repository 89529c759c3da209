/** Events of a thread for whoever watches it: what is stored, and what happens at this moment. */
import * as Schema from "effect/Schema"
import { AgentEvent } from "../core/AgentEvent.ts"
import { Entry } from "../core/Journal.ts"

/**
 * `Stored` is an entry of the thread with its place: `step` counts from 1, without gaps, and is where to begin again
 * (`after`). `Live` is an event of the current run: it is emitted to whoever is there, may be left out for whoever
 * reads slowly, and is not emitted again. `at` is in milliseconds since the epoch.
 */
export const ThreadEvent = Schema.Union([
  Schema.TaggedStruct("Stored", { step: Schema.Finite, id: Schema.String, at: Schema.Finite, entry: Entry }),
  Schema.TaggedStruct("Live", { event: AgentEvent })
])
/** A value of the schema {@link ThreadEvent}. */
export type ThreadEvent = typeof ThreadEvent.Type
