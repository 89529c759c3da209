/** A turn that a provider makes in the background: a run after a crash goes on with it, and pays it once. */
import * as Schema from "effect/Schema"
import * as AgentState from "../AgentState.ts"
import { JsonObject } from "../Json.ts"

/** `after` is the last message of the request. `resume` is what the model's adapter finds the turn by. */
const Accepted = Schema.Struct({ after: Schema.String, resume: JsonObject })

/** The slot of the turn that is under way, an agent's own. */
export const accepted = AgentState.slot("turn-accepted", { schema: Schema.NullOr(Accepted), initial: null })
