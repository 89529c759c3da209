/** Describes to a person how far an approval for good goes, where a rule and not the chat decides that. */
import type * as Approval from "../../../core/Approval.ts"
import * as Taint from "../../../middleware/Taint.ts"

export const describeAlways = ({ rule }: Approval.Request): string =>
  rule === Taint.name
    ? "whatever follows, until more text from outside comes in"
    : "as far as the rule that asks allows it"
