/** Describes to a person the calls that an approval for good covers, where a rule and not the chat decides that. */
import type * as Approval from "../../../core/Approval.ts"
import * as Taint from "../../../middleware/Taint.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { isOwn } from "./own.ts"

export const describeAlways = (request: Approval.Request): string => {
  if (request.rule === Taint.name) return "whatever follows, until more text from outside comes in"
  return isOwn(request)
    ? "the same call with the same arguments; other rules may ask again"
    : `the calls that the rule "${cleanLine(request.rule ?? "")}" covers with it`
}
