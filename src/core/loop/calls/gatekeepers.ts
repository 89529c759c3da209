/** Rulings that the loop itself gives: on calls that a crash cut off, and the questions of tools. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Request } from "../../Approval.ts"
import type { PreparedCall } from "../../Middleware.ts"
import { type Ask, ask, type Ruling } from "../../Ruling.ts"
import { unknownOutcome } from "../../thread/history.ts"
import { decisionOn, requestFor } from "../../thread/suspension.ts"
import { type PreparedWork, type Reconciliation, type Tool, unknown } from "../../Tool.ts"
import { ToolError } from "../../ToolError.ts"
import { make as makeOutput } from "../../ToolOutput.ts"
import type { Live } from "../live.ts"
import { emit } from "../report.ts"
import { type Call, inContext, needsDecision, toPrepared } from "./calls.ts"

/** A call that is ruled on. */
export interface RuledCall {
  readonly call: Call
  readonly tool: Tool<unknown>
  readonly prepared: PreparedCall
}

/** A call that can run again without asking, though its round was cut off. */
export const isRepeatable = ({ annotations }: Tool<unknown>): boolean =>
  annotations.readOnly === true || annotations.idempotent === true || annotations.resumable === true

/**
 * Settles calls that a crash cut off and that can't be repeated: by what their tools know of them, else as their run
 * says. Gives the questions about those on which a person decides, by the id of the call.
 */
export const afterCrash = Effect.fnUntraced(function* (
  live: Live,
  calls: ReadonlyArray<Call & { readonly tool: Tool<unknown>; readonly prepared: PreparedWork<unknown> }>
) {
  const questions = new Map<string, Ask>()
  for (const call of calls) {
    const { trace, prepared, tool } = call
    if (trace !== "unknown" || isRepeatable(tool)) continue
    const word = yield* reconciled(live, call)
    if (word._tag === "Unknown") {
      const question = yield* settleUnknown(live, { call, tool, prepared: toPrepared(call, tool, prepared) })
      if (question !== undefined) questions.set(call.id, question)
    } else if (word._tag === "Completed") {
      call.trace = undefined
      call.outcome = { output: word.output }
    }
  }
  return questions
})

/**
 * Asks a tool about the outcome of an interrupted call. A tool that can't tell, or fails, leaves the outcome unknown.
 */
const reconciled = (live: Live, call: Call): Effect.Effect<Reconciliation, never, unknown> => {
  const reconcile = call.prepared?.reconcile
  if (reconcile === undefined) return Effect.succeed(unknown)
  return Effect.catchCause(inContext(live, call, reconcile), (cause) =>
    Cause.hasInterrupts(cause)
      ? Effect.interrupt
      : Effect.as(
          Effect.logError(
            `reconcile of the tool "${call.name}" failed, so the outcome of its call is not known`,
            cause
          ),
          unknown
        )
  )
}

/** True while decisions on a request count. */
export const isInTime = ({ origin }: Live, { expiresAt }: Request): boolean =>
  expiresAt === undefined || expiresAt > origin.clock.currentTimeMillisUnsafe()

const isDecided = (live: Live, request: Request | undefined): boolean =>
  request !== undefined && isInTime(live, request) && decisionOn(live.round.suspension, request) !== undefined

/** Answers a call whose outcome nobody knows, or gives the question about it. */
const settleUnknown = Effect.fnUntraced(function* (live: Live, { call, prepared }: RuledCall) {
  const { unknownOutcome: look } = live
  const request = requestFor(live.round.suspension, live.run.path, call.id, prepared.arguments, call.settled)
  const canAsk = live.compiled.suspends || live.approvals !== undefined
  if (isDecided(live, request) || ((look === "ask" || request !== undefined) && canAsk)) {
    const description = `"${prepared.name}" may have taken effect before the run was cut off. Run it again?`
    return ask("unknownOutcome", { description })
  }
  const output = typeof look === "function" ? yield* look(prepared) : undefined
  // The model is told its outcome.
  call.trace = undefined
  if (output !== undefined) call.outcome = { output: typeof output === "string" ? makeOutput(output) : output }
  else if (call.outer !== undefined) call.outcome = { error: unknownInnerOutcome(call.name) }
  else call.outcome = { output: makeOutput(unknownOutcome, { isError: true }) }
  return undefined
})

/** The failure of a call inside of another, of which nobody knows whether it took effect. */
export const unknownInnerOutcome = (name: string): ToolError =>
  new ToolError({
    reason: "UnknownOutcome",
    message: `A call of "${name}" was begun when an earlier run was cut off. Whether it took effect is not known: look before you repeat it.`
  })

/** The question of a tool itself, unless a source settled it or refuses the call. */
export const ownQuestion = (
  live: Live,
  { call, tool }: RuledCall,
  rulings: ReadonlyArray<Ruling | undefined>
): Effect.Effect<Ask | undefined, never, unknown> => {
  const isSettled = rulings.some((one) => one?._tag === "Refuse" || (one?._tag === "Allow" && one.settles === true))
  if (isSettled || tool.needsApproval !== true || call.prepared === undefined) return Effect.undefined
  return Effect.map(needsDecision(live, call, tool, call.prepared), (isNeeded) =>
    isNeeded ? ask("needsApproval") : undefined
  )
}

/** Reports that a request no longer waits, though nothing was decided on it. */
export const voided = (live: Live, { callId, id, toolName }: Request): Effect.Effect<void> =>
  emit(live, { _tag: "ApprovalResolved", id, callId, toolName, decision: "void" })

/** Reports why a call can't succeed. A tool that can't tell leaves it to the call. */
export const rehearsed = (
  live: Live,
  call: Call,
  earlier: ReadonlyArray<Call>
): Effect.Effect<ToolError | undefined, never, unknown> => {
  const rehearse = call.prepared?.rehearse
  if (rehearse === undefined || call.trace !== undefined) return Effect.undefined
  const before = earlier.flatMap(({ outcome, prepared }) =>
    prepared === undefined || outcome !== undefined ? [] : [prepared.arguments]
  )
  return Effect.matchCauseEffect(inContext(live, call, rehearse(before)), {
    onSuccess: () => Effect.undefined,
    onFailure: (cause) =>
      Cause.hasInterrupts(cause) ? Effect.interrupt : Effect.succeed(Result.getOrUndefined(Cause.findError(cause)))
  })
}
