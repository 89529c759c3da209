/** Commands behind rules. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as BackendError from "../../../core/BackendError.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"
import { Approver } from "./approval.ts"
import { backendOf } from "./backend.ts"
import type { Policy } from "./model.ts"

/** Puts rules before a sandbox whose commands are not denied. */
export const sandboxOf = (sandbox: Sandbox.Service, policy: Policy): Sandbox.Service => {
  const { mode, rule } = policy.commands

  const permit = Effect.fnUntraced(function* (command: string, options: Sandbox.ExecuteOptions | undefined) {
    if (mode !== "ask" || rule === undefined) return
    const approver = yield* Approver
    const answer = yield* approver.ask({
      action: { operation: "execute", command, options },
      accesses: [{ operation: "execute", rule }]
    })
    if (answer._tag === "Approved") return
    const reason: BackendError.Reason = { _tag: "PermissionDenied" }
    return yield* Effect.fail(BackendError.make("execute", options?.cwd ?? "/", reason, { detail: answer.message }))
  })

  return {
    ...backendOf(sandbox, policy),
    id: sandbox.id,
    reaches: sandbox.reaches,
    execute: (command, options) => Effect.andThen(permit(command, options), sandbox.execute(command, options)),
    executeStream: (command, options) =>
      Stream.unwrap(Effect.as(permit(command, options), sandbox.executeStream(command, options)))
  }
}
