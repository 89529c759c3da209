import * as Effect from "effect/Effect"
import { visible } from "../../support/untrusted.ts"
import type { Choice, Decision, Request } from "../Approval.ts"
import { choiceOf } from "../Approval.ts"
import { unknownOutcome } from "../internal/history.ts"
import { decisionOn, requestFor, suspension, toGate } from "../internal/suspension.ts"
import { canonical, type JsonObject } from "../Json.ts"
import type { AiMessage } from "../Message.ts"
import {
  allow,
  answer as answerWith,
  type AskingGate,
  type PreparedCall,
  refuse as refuseWith,
  suspend,
  type Suspend
} from "../Middleware.ts"
import type { Tool } from "../Tool.ts"
import { describeArguments } from "../ToolCall.ts"
import { ToolError } from "../ToolError.ts"
import { answer, type Call, needsDecision, prepare, toPrepared } from "./calls.ts"
import { emit, type Live, note } from "./live.ts"
import { digestOf } from "./toolset.ts"

/** A call that a gate is asked about. */
interface Asked {
  readonly call: Call
  readonly tool: Tool<unknown>
  readonly prepared: PreparedCall
}

const every: ReadonlyArray<Choice> = ["approve", "edit", "reject", "respond"]

const forgotten = refuseWith("This call was not allowed.")

const refuse = (call: Call, message: string): void => {
  call.outcome = { error: new ToolError({ reason: "Rejected", message }) }
}

const undecided = "This call needs a decision that nobody here can give, so it was not executed."

const misdirected = "The decision that came was on another request, so this call was not executed."

const tooLate =
  "The decision came when it no longer counted, so this call was not executed. Call again to have it asked for."

const changedTool =
  "This tool changed while the call waited for a decision, so it was not executed. Look at the tool, and call it again to have it asked for."

const tooOften = "The arguments of this call were changed again and again, so it was not executed."

/** The request about a call: the one that was made before, unless it is about other arguments, or too old. */
const requestOf = Effect.fnUntraced(function* (
  live: Live,
  { prepared, tool }: Asked,
  gate: Suspend
): Effect.fn.Return<{ readonly request: Request; readonly isNew: boolean }> {
  const now = live.origin.clock.currentTimeMillisUnsafe()
  const known = requestFor(live.suspension, live.run.path, prepared.id, prepared.arguments)
  if (known !== undefined && (known.expiresAt === undefined || known.expiresAt > now)) {
    return { request: known, isNew: false }
  }
  const { allow, description, expiresAt } = gate
  return {
    isNew: true,
    request: {
      id: live.makeId(),
      runId: live.run.runId,
      callId: prepared.id,
      path: live.run.path,
      toolName: prepared.name,
      arguments: prepared.arguments,
      // Whoever wrote it may have put in what the model said.
      description: visible(description),
      allow: allow ?? every,
      at: now,
      ...(expiresAt === undefined ? {} : { expiresAt }),
      toolDigest: yield* digestOf(tool)
    }
  }
})

/** Whether a tool is what it was when somebody was asked about a call of it. Requests of earlier versions do not know. */
const isAsPromised = ({ toolDigest }: Request, tool: Tool<unknown>): Effect.Effect<boolean> =>
  toolDigest === undefined ? Effect.succeed(true) : Effect.map(digestOf(tool), (digest) => digest === toolDigest)

const announce = (live: Live, request: Request): Effect.Effect<void> => {
  note(live, { _tag: "Request", request })
  return emit(live, { _tag: "ApprovalRequested", ...request })
}

/** Says that a request waits no more, though nothing was decided on it. */
export const voided = (live: Live, { callId, id, toolName }: Request): Effect.Effect<void> =>
  emit(live, { _tag: "ApprovalResolved", id, callId, toolName, decision: "void" })

/** What keeps the answer of a service from being a decision on this request. */
const notOn = (live: Live, request: Request, decision: Decision): string | undefined => {
  if (decision.id !== request.id) return misdirected
  return request.expiresAt !== undefined && request.expiresAt <= live.origin.clock.currentTimeMillisUnsafe()
    ? tooLate
    : undefined
}

/** Does what was decided. A choice that was not offered refuses the call: nobody else is there to ask. */
const apply = Effect.fnUntraced(function* (
  live: Live,
  { call, tool }: Asked,
  gate: Suspend,
  request: Request,
  decision: Decision
) {
  const choice = choiceOf(decision)
  note(live, { _tag: "Decision", decision })
  yield* emit(live, {
    _tag: "ApprovalResolved",
    id: request.id,
    callId: call.id,
    toolName: call.name,
    decision: choice
  })
  if (!request.allow.includes(choice)) return refuse(call, undecided)
  if (gate.onDecision !== undefined) yield* gate.onDecision(decision)
  const meant = toGate(decision, call.left !== undefined)
  if (meant._tag === "Edit") yield* prepare(call, tool, meant.arguments)
  else if (meant._tag === "Answer") call.outcome = { output: meant.output }
})

/** Whether a call of a round that was cut off can run again without asking. */
const isRepeatable = ({ annotations }: Tool<unknown>): boolean =>
  annotations.readOnly === true || annotations.idempotent === true

/** What a gate that is not a middleware says of a round that was cut off by a crash. */
const afterCrash = (live: Live, asked: ReadonlyArray<Asked>): Effect.Effect<ReadonlyArray<AskingGate>> =>
  Effect.forEach(asked, ({ call, prepared, tool }): Effect.Effect<AskingGate> => {
    const { unknownOutcome: look } = live
    if (isRepeatable(tool)) return Effect.succeed(allow)
    const wasAsked = requestFor(live.suspension, live.run.path, call.id, prepared.arguments) !== undefined
    if ((look === "ask" || wasAsked) && live.compiled.suspends) {
      return Effect.succeed(
        suspend(`"${prepared.name}" may have taken effect before the run was cut off. Run it again?`)
      )
    }
    return Effect.map(typeof look === "function" ? look(prepared) : Effect.undefined, (output) => {
      // It is told what came of it.
      call.left = undefined
      return output === undefined ? refuseWith(unknownOutcome) : answerWith(output)
    })
  })

/** One who is asked about calls: all of them, or those of which an earlier run left nobody knows what, once. */
interface Gatekeeper {
  readonly suspends: boolean
  readonly isAfterCrash: boolean
  readonly ask: (asked: ReadonlyArray<Asked>) => Effect.Effect<ReadonlyArray<AskingGate>, unknown, unknown>
  /** The arguments with which it let each call pass, or that it gave them. */
  readonly seen: Map<string, JsonObject>
}

/** The arguments with which a call was decided on, by its id. */
type DecidedOn = Map<string, JsonObject>

/** The questions of tools themselves, about arguments that nobody decided on yet. */
const toolQuestions =
  (live: Live, decidedOn: DecidedOn) =>
  (asked: ReadonlyArray<Asked>): Effect.Effect<ReadonlyArray<AskingGate>, never, unknown> =>
    Effect.forEach(asked, ({ call, prepared, tool }) => {
      const on = decidedOn.get(call.id)
      if (call.prepared === undefined || (on !== undefined && canonical(on) === canonical(prepared.arguments))) {
        return Effect.succeed(allow)
      }
      return Effect.map(needsDecision(live, call, tool, call.prepared), (needed): AskingGate =>
        needed ? suspend(`${prepared.name} ${describeArguments(prepared.arguments)}`) : allow
      )
    })

/** Those who are asked, in their order. Tools ask last, about the arguments that they would be given. */
const gatekeepers = (live: Live, calls: ReadonlyArray<Call>, decidedOn: DecidedOn): ReadonlyArray<Gatekeeper> => {
  const gates: Array<Gatekeeper> = live.compiled.gates.map(({ gate, suspends }) => ({
    suspends,
    isAfterCrash: false,
    ask: (asked: ReadonlyArray<Asked>) =>
      gate(
        live.run,
        asked.map((one) => one.prepared)
      ),
    seen: new Map<string, JsonObject>()
  }))
  if (live.toolset.asks) {
    const ask = toolQuestions(live, decidedOn)
    gates.push({ suspends: live.compiled.suspends, isAfterCrash: false, ask, seen: new Map() })
  }
  if (calls.every(({ left }) => left !== "unknown")) return gates
  const ask = (asked: ReadonlyArray<Asked>) => afterCrash(live, asked)
  return [{ suspends: true, isAfterCrash: true, ask, seen: new Map() }, ...gates]
}

/** Whether a gatekeeper has nothing to say of a call with these arguments. */
const isPassed = ({ isAfterCrash, seen }: Gatekeeper, call: Call, args: JsonObject): boolean => {
  if (isAfterCrash && call.left !== "unknown") return true
  const last = seen.get(call.id)
  return last !== undefined && (isAfterCrash || last === args || canonical(last) === canonical(args))
}

/** How often the calls of a round go through the gates because somebody changed their arguments. */
const passLimit = 8

/**
 * Asks every gate about every call that would run; about one that a person edited, also those that were asked before.
 * Gives what somebody must decide on first; then nothing may run.
 */
export const gate = Effect.fnUntraced(function* (live: Live, message: AiMessage, calls: ReadonlyArray<Call>) {
  const pending: Array<Request> = []
  const settled: Array<Request> = []
  // What was decided while the run waits: kept for the case that another call of the round suspends it.
  const given: Array<Decision> = []
  const suspended = new Set<string>()
  const decidedOn: DecidedOn = new Map()
  const gates = gatekeepers(live, calls, decidedOn)

  const ask = Effect.fnUntraced(function* (keeper: Gatekeeper, asked: ReadonlyArray<Asked>, edited: Set<Call>) {
    const { seen, suspends } = keeper
    const changed = ({ id, prepared }: Call): void => {
      if (prepared !== undefined) seen.set(id, prepared.arguments)
    }
    const isDecided = ({ id, prepared }: Call): void => {
      if (prepared !== undefined) decidedOn.set(id, prepared.arguments)
    }
    const decided = (one: Asked, meant: Suspend, request: Request, decision: Decision) =>
      Effect.map(apply(live, one, meant, request, decision), () => {
        settled.push(request)
        isDecided(one.call)
        if (decision._tag !== "Edit") return
        changed(one.call)
        edited.add(one.call)
      })
    const gates: ReadonlyArray<AskingGate> = yield* keeper.ask(asked)
    const waiting: Array<Effect.Effect<void>> = []
    for (const [index, one] of asked.entries()) {
      // A gate that forgot a call has not allowed it.
      const meant: AskingGate = gates[index] ?? forgotten
      const { call, tool } = one
      if (meant._tag === "Edit") {
        yield* prepare(call, tool, meant.arguments)
        changed(call)
      } else if (meant._tag === "Answer") call.outcome = { output: meant.output }
      else if (meant._tag === "Allow") {
        if (meant.decided === true) isDecided(call)
      } else {
        const { isNew, request } = yield* requestOf(live, one, meant)
        const decision = isNew ? undefined : decisionOn(live.suspension, request)
        const { approvals } = live
        if (decision !== undefined && !(yield* isAsPromised(request, tool))) {
          refuse(call, changedTool)
          yield* voided(live, request)
          yield* live.run.warn(
            "tool-changed",
            `The tool "${tool.name}" changed while a call of it waited: it was not executed.`
          )
        } else if (decision !== undefined) yield* decided(one, meant, request, decision)
        else if (suspends) {
          suspended.add(call.id)
          pending.push(request)
          if (isNew) yield* announce(live, request)
        } else if (approvals === undefined) refuse(call, undecided)
        else {
          waiting.push(
            Effect.flatMap(Effect.andThen(announce(live, request), approvals.decide(request)), (answered) => {
              const problem = notOn(live, request, answered)
              if (problem !== undefined) {
                refuse(call, problem)
                return voided(live, request)
              }
              given.push(answered)
              return decided(one, meant, request, answered)
            })
          )
        }
      }
    }
    yield* Effect.all(waiting, { concurrency: "unbounded", discard: true })
  })

  let due = calls
  for (let pass = 0; due.length > 0; pass++) {
    const edited = new Set<Call>()
    for (const keeper of gates) {
      const asked: Array<Asked> = []
      for (const call of due) {
        const { outcome, prepared, tool } = call
        if (outcome !== undefined || suspended.has(call.id) || tool === undefined || prepared === undefined) continue
        if (isPassed(keeper, call, prepared.arguments)) continue
        keeper.seen.set(call.id, prepared.arguments)
        if (pass === passLimit) refuse(call, tooOften)
        else asked.push({ call, tool, prepared: toPrepared(call, tool, prepared) })
      }
      if (asked.length > 0) yield* ask(keeper, asked, edited)
    }
    due = [...edited]
  }
  if (pending.length > 0) {
    const before = live.suspension
    // A decision is kept as such, and done again.
    const decided = ({ id }: Call) => settled.some((request) => request.callId === id)
    yield* live.run.state.set(suspension, {
      messageId: message.id,
      requests: [...settled, ...pending],
      decisions: [...(before?.decisions ?? []), ...given].filter((decision) =>
        settled.some((request) => request.id === decision.id)
      ),
      children: before?.messageId === message.id ? before.children : {},
      // What was refused stays refused, whatever is offered when the run goes on.
      answers: calls.flatMap((call) => (call.outcome === undefined || decided(call) ? [] : [answer(live, call)])),
      unknown: calls.flatMap((call) => (call.left === "unknown" ? [call.id] : []))
    })
  }
  return pending
})
