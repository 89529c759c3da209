/** Carries out decisions on calls, and refuses calls without a decision. */
import * as Effect from "effect/Effect"
import { defined } from "../../../support/json/defined.ts"
import { always, choiceOf, type Decision, recorded, type Request } from "../../Approval.ts"
import type { PreparedCall } from "../../Middleware.ts"
import type { Ask, Ruling } from "../../Ruling.ts"
import { decisionOn, lastRequestOn } from "../../thread/suspension.ts"
import { ToolError } from "../../ToolError.ts"
import { make as makeOutput } from "../../ToolOutput.ts"
import type { Live } from "../live.ts"
import { note } from "../records/journal.ts"
import { emit } from "../report.ts"
import { type Call, prepare } from "./calls.ts"
import { isInTime, voided } from "./gatekeepers.ts"
import { isAsPromised } from "./requests.ts"

/** The key of the calls that an approval for good covers. It holds as long as the tool promises the same. */
export const keyOf = ({ by }: Ruling, call: PreparedCall, likeness: string): string =>
  JSON.stringify([by, call.name, call.toolDigest(), likeness])

/** Refuses a call on which nobody decided. */
export const refuse = (call: Call, message: string): void => {
  call.outcome = { error: new ToolError({ reason: "Rejected", message }) }
}

export const undecided = "This call needs a decision that nobody here can give, so it was not executed."

const changedTool =
  "This tool changed while the call waited for a decision, so it was not executed. Look at the tool, and call it again to have it asked for."

const goneHint = "It was there when this call was asked about: the call waited for a decision, and was not executed."

export const tooOften = "The arguments of this call were changed again and again, so it was not executed."

/**
 * Answers a call that was asked about, if its tool is gone, or another one now. A person's answer in its place, or a
 * refusal, holds all the same; nothing else that was decided can be carried out.
 */
export const settleChanged = Effect.fnUntraced(function* (live: Live, call: Call, settled: Set<Request>) {
  const { tool } = call
  const request =
    call.wasDone === true ? undefined : lastRequestOn(live.round.suspension, live.run.path, call.id, call.settled)
  if (request === undefined || (tool !== undefined && isAsPromised(request, tool))) return
  const counts = isInTime(live, request)
  // It is asked about anew.
  if (!counts && tool !== undefined) return
  const decision = counts ? decisionOn(live.round.suspension, request) : undefined
  if (decision?._tag === "Reject" || decision?._tag === "Respond") {
    settled.add(request)
    return yield* apply(live, { call, tool }, request, decision)
  }
  yield* voided(live, request)
  if (tool !== undefined) {
    refuse(call, changedTool)
    const message = `The tool "${tool.name}" changed while a call of it waited: it was not executed.`
    yield* live.run.warn("tool-changed", message)
  } else if (call.trace === undefined && call.outcome !== undefined && "error" in call.outcome) {
    const { error } = call.outcome
    call.outcome = { error: new ToolError({ ...error, message: `${error.message} ${goneHint}` }) }
  }
})

/** Notes a request in the journal. */
export const noteRequest = (live: Live, request: Request): void => note(live.records, { _tag: "Request", request })

/** Reports a request. */
export const report = (live: Live, request: Request): Effect.Effect<void> =>
  emit(live, { _tag: "ApprovalRequested", ...request })

/** Notes a request, and reports it. */
export const announce = (live: Live, request: Request): Effect.Effect<void> => {
  noteRequest(live, request)
  return report(live, request)
}

/** Carries a decision out. A choice that was not offered refuses the call: nobody else is there to ask. */
export const apply = Effect.fnUntraced(function* (
  live: Live,
  { call, prepared, tool }: Pick<Call, "tool"> & { readonly call: Call; readonly prepared?: PreparedCall },
  request: Request,
  decision: Decision,
  asks: ReadonlyArray<Ask> = []
) {
  const choice = choiceOf(decision)
  const storedDecision = recorded(request, decision, live.origin.clock.currentTimeMillisUnsafe())
  note(live.records, { _tag: "Decision", decision: storedDecision })
  yield* emit(live, {
    _tag: "ApprovalResolved",
    id: request.id,
    callId: call.id,
    toolName: call.name,
    decision: choice,
    ...defined({ by: storedDecision.by?.id, rule: storedDecision.rule })
  })
  if (!request.allow.includes(choice)) return refuse(call, undecided)
  if (prepared !== undefined && decision._tag === "Approve" && decision.always === true) {
    const keys = asks.flatMap((one) =>
      one.terms.likeness === undefined ? [] : [keyOf(one, prepared, one.terms.likeness)]
    )
    if (keys.length > 0) yield* live.run.state.set(always, keys)
  }
  for (const { terms } of asks) if (terms.onDecision !== undefined) yield* terms.onDecision(decision)
  if (decision._tag === "Edit") {
    if (tool !== undefined) yield* prepare(call, tool, decision.arguments)
  } else if (decision._tag === "Reject") {
    const reason = decision.reason === undefined ? "." : `: ${decision.reason}`
    const text = `This call was refused${call.trace === undefined ? " and not executed" : ""}${reason}`
    call.outcome = { output: makeOutput(text, { isError: true }) }
  } else if (decision._tag === "Respond") call.outcome = { output: makeOutput(decision.text) }
})
