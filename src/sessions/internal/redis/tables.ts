/** The tables of threads in Redis. */
import * as Effect from "effect/Effect"
import type { Redis } from "effect/persistence/Redis"
import type { Problem } from "../../../support/store/problem.ts"
import { runnerOf } from "../../../support/store/redis.ts"
import type { Fault, Tables } from "../tables.ts"
import { movedTo, placeIn } from "../transfer/moving.ts"
import { makeChanges } from "./changes.ts"
import { makeReads } from "./reads.ts"
import type * as scripts from "./scripts.ts"
import { makeSearch } from "./search.ts"
import { makeWaits } from "./waits.ts"

const toFault = ({ cause, problem }: Problem): Fault => {
  const place = placeIn(problem)
  return place === undefined ? { reason: { _tag: "Unavailable", problem }, cause } : movedTo(place, cause)
}

/** Makes tables in Redis. All keys begin with the prefix. */
export const make = (redis: Redis["Service"], prefix: string): Tables => {
  const runScript = runnerOf(redis, prefix)
  const run: scripts.Run = (script, ...args) => Effect.mapError(runScript(script, ...args), toFault)
  const reads = makeReads(run)
  return {
    ...reads,
    ...makeWaits(run, reads.path),
    ...makeChanges(run, reads.find),
    search: makeSearch(run, reads.find)
  }
}
