/** The gate of an editor's session: the rules, the approvals for good and the mode of the user decide, or the person. */
import * as Effect from "effect/Effect"
import type * as AcpServer from "../../../acp/AcpServer.ts"
import * as Approval from "../../../core/Approval.ts"
import { automatic } from "../approvals/desk.ts"
import { describe, learn, type LearnedRules, likeOf } from "../approvals/learned.ts"
import type { Permits } from "../approvals/permits.ts"
import type { Mode } from "../chat/options.ts"

const modes: { readonly [name in Mode]: AcpServer.Mode } = {
  ask: { id: "ask", name: "Ask", description: "Asks before everything that changes something" },
  "auto-edit": { id: "auto-edit", name: "Auto-edit", description: "Changes files without asking" },
  plan: { id: "plan", name: "Plan", description: "Changes nothing: looks around, and answers with a plan" },
  yolo: { id: "yolo", name: "Yolo", description: "Asks about nothing" }
}

const isMode = (id: string): id is Mode => Object.hasOwn(modes, id)

/** A gate, with its mode and its approvals for good, for the agent. */
export interface Gate extends AcpServer.Gate {
  readonly now: () => Mode
  readonly learned: () => ReadonlyArray<LearnedRules>
}

/** Makes the gate of a session. An editor can't raise it to `yolo`: only the program begins so. */
export const makeGate = (options: {
  readonly mode: Mode
  readonly permits: () => Permits
  readonly isAllowed: (callId: string) => boolean
  /** Gets each request that a person has to decide. */
  readonly onWait: (request: Approval.Request) => void
}): Gate => {
  let mode = options.mode
  let learned: ReadonlyArray<LearnedRules> = options.permits().kept
  return {
    modes: [modes.ask, modes["auto-edit"], modes.plan, ...(options.mode === "yolo" ? [modes.yolo] : [])],
    mode: () => mode,
    now: () => mode,
    learned: () => learned,
    setMode: (id) => {
      if (isMode(id)) mode = id
    },
    decide: (request) =>
      Effect.sync(() => {
        const decision = automatic(request, mode, options.permits(), learned, options.isAllowed)
        if (decision === undefined) options.onWait(request)
        return decision
      }),
    always: (request) => {
      const permits = options.permits()
      const one = learn(request, likeOf(request, permits), "chat")
      return {
        covers: describe(one, permits),
        approve: Effect.sync(() => {
          learned = [...learned, one]
          return Approval.approve(request)
        })
      }
    }
  }
}
