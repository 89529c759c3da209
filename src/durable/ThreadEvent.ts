/** Events of a thread: stored entries, and live events of the current run. */
import * as Schema from "effect/Schema"
import { AgentEvent } from "../core/AgentEvent.ts"
import { Entry } from "../core/Journal.ts"

/**
 * An event of a thread. `Stored` is an entry: its `step` counts from 1 without gaps, and a client resumes behind it
 * (`after`). `Live` is an event of the current run. Slow readers may miss it, and it is not repeated. `at` is in
 * milliseconds since the epoch.
 */
export const ThreadEvent = Schema.Union([
  Schema.TaggedStruct("Stored", { step: Schema.Finite, id: Schema.String, at: Schema.Finite, entry: Entry }),
  Schema.TaggedStruct("Live", { event: AgentEvent })
])
/** A value of the schema {@link ThreadEvent}. */
export type ThreadEvent = typeof ThreadEvent.Type
