import * as Effect from "effect/Effect"
import type { Choice, Decision, Request } from "../Approval.ts"
import { choiceOf } from "../Approval.ts"
import { type AiMessage, tool, type ToolMessage } from "../Message.ts"
import type { Gate, PreparedCall } from "../Middleware.ts"
import type { Tool } from "../Tool.ts"
import { ToolError } from "../ToolError.ts"
import * as ToolOutput from "../ToolOutput.ts"
import { type Call, prepare, toPrepared } from "./calls.ts"
import { emit, type Live, note } from "./live.ts"
import { decisionOn, requestFor, suspension, toGate } from "./suspension.ts"

type Suspend = Extract<Gate, { readonly _tag: "Suspend" }>

/** A call that a gate is asked about. */
interface Asked {
  readonly call: Call
  readonly tool: Tool<unknown>
  readonly prepared: PreparedCall
}

const every: ReadonlyArray<Choice> = ["approve", "edit", "reject", "respond"]

const forgotten: Gate = {
  _tag: "Answer",
  output: ToolOutput.make("This call was not allowed.", { isError: true })
}

const refuse = (call: Call, message: string): void => {
  call.outcome = { error: new ToolError({ reason: "Rejected", message }) }
}

const undecided = "This call needs a decision that nobody here can give, so it was not executed."

/** The request about a call: the one that was made before, unless it is about other arguments, or too old. */
const requestOf = (
  live: Live,
  { prepared }: Asked,
  gate: Suspend
): { readonly request: Request; readonly isNew: boolean } => {
  const now = live.clock.currentTimeMillisUnsafe()
  const known = requestFor(live.suspension, live.path, prepared.id, prepared.arguments)
  if (known !== undefined && (known.expiresAt === undefined || known.expiresAt > now)) {
    return { request: known, isNew: false }
  }
  const { allow, description, expiresAt } = gate
  return {
    isNew: true,
    request: {
      id: live.makeId(),
      callId: prepared.id,
      path: live.path,
      toolName: prepared.name,
      arguments: prepared.arguments,
      description,
      allow: allow ?? every,
      at: now,
      ...(expiresAt === undefined ? {} : { expiresAt })
    }
  }
}

const announce = (live: Live, request: Request): Effect.Effect<void> => {
  const { arguments: args, callId, description, toolName } = request
  note(live, { _tag: "Request", request })
  return emit(live, { _tag: "ApprovalRequested", callId, toolName, arguments: args, description })
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
  yield* emit(live, { _tag: "ApprovalResolved", callId: call.id, toolName: call.name, decision: choice })
  if (!request.allow.includes(choice)) return refuse(call, undecided)
  if (gate.onDecision !== undefined) yield* gate.onDecision(decision)
  const meant = toGate(decision)
  if (meant._tag === "Edit") prepare(call, tool, meant.arguments)
  else if (meant._tag === "Answer") call.outcome = { output: meant.output }
})

/** Whether a call of a round that was cut off can run again without asking. */
const isRepeatable = ({ annotations }: Tool<unknown>): boolean =>
  annotations.readOnly === true || annotations.idempotent === true

const unknownOutcome =
  "This call was begun before the run was cut off. Whether it took effect is not known: look before you repeat it."

/** What a gate that is not a middleware says of a round that was cut off by a crash. */
const afterCrash = (live: Live, asked: ReadonlyArray<Asked>): Effect.Effect<ReadonlyArray<Gate>> =>
  Effect.forEach(asked, ({ prepared, tool }): Effect.Effect<Gate> => {
    const { unknownOutcome: look } = live
    if (isRepeatable(tool)) return Effect.succeed({ _tag: "Allow" })
    if (look === "ask" && live.compiled.suspends) {
      return Effect.succeed({
        _tag: "Suspend",
        description: `"${prepared.name}" was begun before the run was cut off, and may have taken effect. Run it again?`
      })
    }
    return Effect.map(typeof look === "function" ? look(prepared) : Effect.undefined, (output) => ({
      _tag: "Answer",
      output: output ?? ToolOutput.make(unknownOutcome, { isError: true })
    }))
  })

const asks = (live: Live, message: AiMessage) => {
  const gates = live.compiled.gates.map(({ gate, suspends }) => ({
    suspends,
    ask: (asked: ReadonlyArray<Asked>) =>
      gate(
        live,
        asked.map((one) => one.prepared)
      )
  }))
  const isCut = live.resumed === message && live.suspension?.messageId !== message.id
  return isCut ? [{ suspends: true, ask: (asked: ReadonlyArray<Asked>) => afterCrash(live, asked) }, ...gates] : gates
}

/** The message that answers a call which has an outcome. */
const answerTo = (live: Live, { id, name, outcome }: Call): ToolMessage => {
  const options = { id: live.makeId(), toolCallId: id, toolName: name }
  if (outcome !== undefined && "output" in outcome) {
    return tool(outcome.output.content, { ...options, isError: outcome.output.isError })
  }
  return tool(outcome?.error.message ?? undecided, { ...options, isError: true })
}

/** Asks every gate about every call that would run. Gives what somebody must decide on first; then nothing may run. */
export const gate = Effect.fnUntraced(function* (live: Live, message: AiMessage, calls: ReadonlyArray<Call>) {
  const pending: Array<Request> = []
  const settled: Array<Request> = []
  // What was decided while the run waits: kept for the case that another call of the round suspends it.
  const given: Array<Decision> = []
  const suspended = new Set<string>()
  for (const { ask, suspends } of asks(live, message)) {
    const asked: Array<Asked> = []
    for (const call of calls) {
      const { outcome, prepared, tool } = call
      if (outcome !== undefined || suspended.has(call.id) || tool === undefined || prepared === undefined) continue
      asked.push({ call, tool, prepared: toPrepared(call, tool, prepared) })
    }
    if (asked.length === 0) break
    const gates: ReadonlyArray<Gate> = yield* ask(asked)
    const waiting: Array<Effect.Effect<void>> = []
    for (const [index, one] of asked.entries()) {
      // A gate that forgot a call has not allowed it.
      const meant: Gate = gates[index] ?? forgotten
      const { call, tool } = one
      if (meant._tag === "Edit") prepare(call, tool, meant.arguments)
      else if (meant._tag === "Answer") call.outcome = { output: meant.output }
      else if (meant._tag === "Suspend") {
        const { isNew, request } = requestOf(live, one, meant)
        const decision = isNew ? undefined : decisionOn(live.suspension, request)
        const { approvals } = live
        if (decision !== undefined) {
          settled.push(request)
          yield* apply(live, one, meant, request, decision)
        } else if (suspends) {
          suspended.add(call.id)
          pending.push(request)
          if (isNew) yield* announce(live, request)
        } else if (approvals === undefined) refuse(call, undecided)
        else {
          waiting.push(
            Effect.flatMap(Effect.andThen(announce(live, request), approvals.decide(request)), (answered) => {
              settled.push(request)
              given.push(answered)
              return apply(live, one, meant, request, answered)
            })
          )
        }
      }
    }
    yield* Effect.all(waiting, { concurrency: "unbounded", discard: true })
  }
  if (pending.length > 0) {
    const before = live.suspension
    // A decision is kept as such, and done again.
    const decided = ({ id }: Call) => settled.some((request) => request.callId === id)
    yield* live.state.set(suspension, {
      messageId: message.id,
      requests: [...settled, ...pending],
      decisions: [...(before?.decisions ?? []), ...given].filter((decision) =>
        settled.some((request) => request.id === decision.id)
      ),
      children: before?.messageId === message.id ? before.children : {},
      // What was refused stays refused, whatever is offered when the run goes on.
      answers: calls.flatMap((call) => (call.outcome === undefined || decided(call) ? [] : [answerTo(live, call)]))
    })
  }
  return pending
})
