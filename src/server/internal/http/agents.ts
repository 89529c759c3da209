/** Chooses the agent of a request whose protocol may leave it out. */
import * as Effect from "effect/Effect"
import { didYouMean } from "../../../support/text/names.ts"
import { RunsError } from "../service.ts"
import type { TenantCall } from "./route.ts"

/** The agent that a request names, in its query or by `name`; else the first one of the server. */
export const chooseAgent = ({ door, query }: TenantCall, name?: string): Effect.Effect<string, RunsError> => {
  const names = door.runs.agents.map((agent) => agent.name)
  const wanted = query("agent") ?? name ?? names[0]
  return wanted !== undefined && names.includes(wanted)
    ? Effect.succeed(wanted)
    : Effect.fail(
        new RunsError({
          reason: "InvalidInput",
          threadId: "",
          problem: `there is no such agent.${didYouMean(wanted ?? "", names)} Take one of ${names.join(", ")}`
        })
      )
}
