/** Commands behind rules. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as BackendError from "../../../core/BackendError.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"
import { backendOf } from "./backend.ts"
import type { Rules } from "./model.ts"
import { askAbout } from "./question.ts"

/** Puts rules before a sandbox whose commands are not refused. */
export const sandboxOf = (sandbox: Sandbox.Service, rules: Rules): Sandbox.Service => {
  const { commands } = rules

  const permit = Effect.fnUntraced(function* (command: string, options: Sandbox.ExecuteOptions | undefined) {
    if (commands._tag !== "Ask") return
    const answer = yield* askAbout({ operation: "execute", command, options }, [
      { operation: "execute", ruling: commands }
    ])
    if (answer._tag === "Allow") return
    const reason: BackendError.Reason = { _tag: "PermissionDenied" }
    return yield* Effect.fail(BackendError.make("execute", options?.cwd ?? "/", reason, { detail: answer.reason }))
  })

  return {
    ...backendOf(sandbox, rules),
    id: sandbox.id,
    reaches: sandbox.reaches,
    execute: (command, options) => Effect.andThen(permit(command, options), sandbox.execute(command, options)),
    executeStream: (command, options) =>
      Stream.unwrap(Effect.as(permit(command, options), sandbox.executeStream(command, options)))
  }
}
