/** Tells whether the program's own approvals ask, or the tool itself: a question of a hook or a guardrail stays one. */
import type * as Approval from "../../../core/Approval.ts"
import * as HumanInTheLoop from "../../../middleware/HumanInTheLoop.ts"

export const isOwn = ({ rule }: Approval.Request): boolean =>
  rule === undefined || rule === HumanInTheLoop.name || rule === "needsApproval"
