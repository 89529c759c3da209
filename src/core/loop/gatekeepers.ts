/** The gates that the calls of a round pass, in their order: after a crash, those of middleware, those of tools. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Request } from "../Approval.ts"
import { type JsonObject } from "../Json.ts"
import { allow, answer, type AskingGate, type PreparedCall, refuse, suspend } from "../Middleware.ts"
import { canonical } from "../schema/jsonTree.ts"
import { unknownOutcome } from "../thread/history.ts"
import { decisionOn, requestFor } from "../thread/suspension.ts"
import { type Reconciled, type Tool, unknown } from "../Tool.ts"
import { describeArguments } from "../ToolCall.ts"
import { ToolError } from "../ToolError.ts"
import { type Call, inContext, needsDecision } from "./calls.ts"
import type { Live } from "./live.ts"
import { emit } from "./report.ts"

/** A call that a gate is asked about. */
export interface Asked {
  readonly call: Call
  readonly tool: Tool<unknown>
  readonly prepared: PreparedCall
}

/** A call that can run again without asking, though its round was cut off. */
export const isRepeatable = ({ annotations }: Tool<unknown>): boolean =>
  annotations.readOnly === true || annotations.idempotent === true || annotations.resumable === true

/** The gate before all others in a round that was cut off by a crash. */
const afterCrash = (
  live: Live,
  asked: ReadonlyArray<Asked>
): Effect.Effect<ReadonlyArray<AskingGate>, never, unknown> =>
  Effect.forEach(asked, (one) =>
    isRepeatable(one.tool)
      ? Effect.succeed(allow)
      : Effect.flatMap(reconciled(live, one.call), (word) => {
          if (word._tag === "Unknown") return ofUnknownOutcome(live, one)
          if (word._tag !== "Repeatable") one.call.left = undefined
          return Effect.succeed(word._tag === "Completed" ? answer(word.output) : allow)
        })
  )

/** Asks a tool what came of a call of its own. One that can't say, or breaks down, does not know. */
const reconciled = (live: Live, call: Call): Effect.Effect<Reconciled, never, unknown> => {
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

/** The gate of a call whose outcome nobody knows. */
const ofUnknownOutcome = (live: Live, { call, prepared }: Asked): Effect.Effect<AskingGate> => {
  const { unknownOutcome: look } = live
  const request = requestFor(live.round.suspension, live.run.path, call.id, prepared.arguments, call.settled)
  if (isDecided(live, request) || ((look === "ask" || request !== undefined) && live.compiled.suspends)) {
    return Effect.succeed(suspend(`"${prepared.name}" may have taken effect before the run was cut off. Run it again?`))
  }
  return Effect.map(typeof look === "function" ? look(prepared) : Effect.undefined, (output) => {
    // The model is told its outcome.
    call.left = undefined
    if (output === undefined && call.outer !== undefined) {
      call.outcome = { error: unknownInnerOutcome(call.name) }
      return allow
    }
    return output === undefined ? refuse(unknownOutcome) : answer(output)
  })
}

/** The failure of a call inside of another, of which nobody knows whether it took effect. */
export const unknownInnerOutcome = (name: string): ToolError =>
  new ToolError({
    reason: "UnknownOutcome",
    message: `A call of "${name}" was begun when an earlier run was cut off. Whether it took effect is not known: look before you repeat it.`
  })

/** A gate, with what it let pass. The one after a crash is asked once, about calls whose outcome is not known. */
export interface Gatekeeper {
  readonly suspends: boolean
  readonly isAfterCrash: boolean
  readonly ask: (asked: ReadonlyArray<Asked>) => Effect.Effect<ReadonlyArray<AskingGate>, unknown, unknown>
  /** The arguments with which it let each call pass, or that it gave them. */
  readonly seen: Map<string, JsonObject>
}

/** The arguments with which a call was decided on, by its id. */
export type DecidedOn = Map<string, JsonObject>

/** The questions that tools ask themselves, about arguments that nobody decided on yet. */
const toolQuestions =
  (live: Live, decidedOn: DecidedOn) =>
  (asked: ReadonlyArray<Asked>): Effect.Effect<ReadonlyArray<AskingGate>, never, unknown> =>
    Effect.forEach(asked, ({ call, prepared, tool }) => {
      const on = decidedOn.get(call.id)
      if (call.prepared === undefined || (on !== undefined && canonical(on) === canonical(prepared.arguments))) {
        return Effect.succeed(allow)
      }
      return Effect.map(needsDecision(live, call, tool, call.prepared), (needed): AskingGate =>
        needed ? suspend(prepared.describe?.() ?? `${prepared.name} ${describeArguments(prepared.arguments)}`) : allow
      )
    })

/** Reports that a request no longer waits, though nothing was decided on it. */
export const voided = (live: Live, { callId, id, toolName }: Request): Effect.Effect<void> =>
  emit(live, { _tag: "ApprovalResolved", id, callId, toolName, decision: "void" })

/**
 * Requests of earlier that no gate asks now: what was decided and not carried out yet holds, also where a gate allows;
 * nobody need decide on the rest any more.
 */
const standing =
  (live: Live, settled: ReadonlySet<Request>) =>
  (asked: ReadonlyArray<Asked>): Effect.Effect<ReadonlyArray<AskingGate>> =>
    Effect.forEach(asked, ({ call, prepared }): Effect.Effect<AskingGate> => {
      const request = requestFor(live.round.suspension, live.run.path, call.id, prepared.arguments, call.settled)
      if (request === undefined || settled.has(request)) return Effect.succeed(allow)
      return isDecided(live, request)
        ? Effect.succeed(suspend(request.description, { allow: request.allow }))
        : Effect.as(voided(live, request), allow)
    })

/**
 * The gates of a round, in their order. Tools ask last, about the arguments that they would be given; behind them are the
 * decisions that nobody asked for again. `settled` are the requests that were carried out, `said` is what the first gates
 * have said already.
 */
export const gatekeepers = (
  live: Live,
  calls: ReadonlyArray<Call>,
  decidedOn: DecidedOn,
  settled: ReadonlySet<Request>,
  said: ReadonlyArray<ReadonlyArray<AskingGate>>
): ReadonlyArray<Gatekeeper> => {
  const gates: Array<Gatekeeper> = live.compiled.gates.map(({ gate, suspends }, index) => {
    let known = said[index]
    return {
      suspends,
      isAfterCrash: false,
      ask: (asked: ReadonlyArray<Asked>) => {
        const before = known
        known = undefined
        if (before !== undefined) return Effect.succeed(before)
        return gate(
          live.run,
          asked.map((one) => one.prepared)
        )
      },
      seen: new Map<string, JsonObject>()
    }
  })
  if (live.turn.toolset.asks) {
    const ask = toolQuestions(live, decidedOn)
    gates.push({ suspends: live.compiled.suspends, isAfterCrash: false, ask, seen: new Map() })
  }
  if (live.round.suspension !== null) {
    gates.push({ suspends: true, isAfterCrash: false, ask: standing(live, settled), seen: new Map() })
  }
  if (calls.every(({ left }) => left !== "unknown")) return gates
  const ask = (asked: ReadonlyArray<Asked>) => afterCrash(live, asked)
  return [{ suspends: true, isAfterCrash: true, ask, seen: new Map() }, ...gates]
}

/** Says that a gate need not be asked about a call with these arguments (again). */
export const isPassed = ({ isAfterCrash, seen }: Gatekeeper, call: Call, args: JsonObject): boolean => {
  if (isAfterCrash && call.left !== "unknown") return true
  const last = seen.get(call.id)
  return last !== undefined && (isAfterCrash || last === args || canonical(last) === canonical(args))
}
