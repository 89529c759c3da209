/** The source of ids: of runs, of messages that the loop makes, and of calls without one. */
import * as Context from "effect/Context"
import { makeId } from "./Message.ts"

/** Makes ids; random UUIDs by default. Replace it where ids must be predictable. */
export const IdGenerator = Context.Reference<() => string>("effect-deepagents/IdGenerator", {
  defaultValue: () => makeId
})
