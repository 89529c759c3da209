/** Calls of tools by their names, for tests. */
import { Effect, Layer } from "effect"
import { Approval, type Json, Tool } from "effect-deepagents"
import type { ServiceError } from "effect-deepagents/connect"
import type { HttpClient } from "effect/http"

const nobody = Layer.succeed(Approval.Approvals, { decide: () => Effect.die("nobody is asked") })

/** Makes a function that runs one of the tools, and returns the details of its output, or the failure of the service. */
export const caller = (given: ReadonlyArray<unknown>) => {
  const tools = given as ReadonlyArray<Tool.Tool<HttpClient.HttpClient | Approval.Approvals>>
  return <A>(name: string, args: Json.JsonObject = {}) => {
    const tool = tools.find((one) => one.name === name)
    if (tool === undefined) return Effect.die(`no tool ${name}`)
    return Effect.provide(Tool.run(tool, args), nobody).pipe(
      Effect.map(({ details }) => details as A),
      Effect.mapError(({ cause }) => cause as ServiceError.ServiceError)
    )
  }
}

export type Ids = ReadonlyArray<{ readonly id: string }>
