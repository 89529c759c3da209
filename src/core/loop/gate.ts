/** Asks every gate about the calls of a round before one of them runs, and carries out what was decided. */
import * as Effect from "effect/Effect"
import { defined } from "../../support/json/defined.ts"
import { visible } from "../../support/text/untrusted.ts"
import type { Choice, Decision, Request } from "../Approval.ts"
import { choiceOf, mayDecide, problemOf, recorded } from "../Approval.ts"
import type { AiMessage } from "../Message.ts"
import { type AskingGate, refuse as refuseWith, type Suspend } from "../Middleware.ts"
import { decisionOn, lastRequestOn, requestFor, suspension, toGate, waitingCalls } from "../thread/suspension.ts"
import type { Prepared, Tool } from "../Tool.ts"
import { ToolError } from "../ToolError.ts"
import { answer, type Call, prepare, toPrepared } from "./calls.ts"
import { type Asked, type DecidedOn, gatekeepers, type Gatekeeper, isInTime, isPassed, voided } from "./gatekeepers.ts"
import { note, save } from "./journal.ts"
import type { Gating, Live } from "./live.ts"
import { emit } from "./report.ts"
import { digestOf } from "./toolset.ts"
import { waitingIn } from "./work.ts"

/** The number of times that the calls of a round go through the gates because somebody changed their arguments. */
const passLimit = 8

/** The word of all gates on calls: what waits, what was decided on before, and what was decided while the run waited. */
export interface Judged {
  readonly pending: ReadonlyArray<Request>
  readonly settled: ReadonlyArray<Request>
  readonly given: ReadonlyArray<Decision>
}

/** True for a gate that lets a call run. Notes whether a call of the turn is counted. */
const isAllowed = (live: Live, gate: AskingGate | undefined): boolean => {
  if (gate?._tag !== "Allow") return false
  if (gate.isCounted === true) live.round.isCounted = true
  return true
}

const freely: Effect.Effect<Judged> = Effect.succeed({ pending: [], settled: [], given: [] })

/** A call that will run if nobody objects. */
type Due = Call & { readonly tool: Tool<unknown>; readonly prepared: Prepared<unknown> }

const isDue = (call: Call): call is Due =>
  call.outcome === undefined && call.tool !== undefined && call.prepared !== undefined

/**
 * Asks the gates of middleware, in their order, until one has more to say than that a call may run: most never have, and
 * nothing is kept for that. Gives what they said, or nothing if all of them let all calls run.
 */
const objections = (
  live: Live,
  calls: ReadonlyArray<Call>
): Effect.Effect<ReadonlyArray<ReadonlyArray<AskingGate>> | undefined, unknown, unknown> => {
  const { gates } = live.compiled
  const asked = (calls.every(isDue) ? calls : calls.filter(isDue)).map((call) =>
    toPrepared(call, call.tool, call.prepared)
  )
  const ask = (index: number, said: ReadonlyArray<ReadonlyArray<AskingGate>>): ReturnType<typeof objections> => {
    const next = asked.length === 0 ? undefined : gates[index]
    if (next === undefined) return Effect.undefined
    return Effect.flatMap(next.gate(live.run, asked), (answers) =>
      asked.every((_, at) => isAllowed(live, answers[at]))
        ? ask(index + 1, [...said, answers])
        : Effect.succeed([...said, answers])
    )
  }
  return ask(0, [])
}

/**
 * Asks every gate about every call that would run; about one that a person edited, also those that were asked before.
 * Pending requests must be decided on first: if there is anything, none of the calls may run. A person's decision is worth
 * a step: the calls are stored before anybody can be asked.
 */
export const judge = (live: Live, calls: ReadonlyArray<Call>): Effect.Effect<Judged, unknown, unknown> => {
  const isPlain =
    !live.turn.toolset.asks && live.round.suspension === null && calls.every(({ left }) => left === undefined)
  const whole = (said: ReadonlyArray<ReadonlyArray<AskingGate>>) => judged(live, calls, said)
  return isPlain
    ? Effect.flatMap(objections(live, calls), (said) => (said === undefined ? freely : whole(said)))
    : Effect.suspend(() => whole([]))
}

const judged = Effect.fnUntraced(function* (
  live: Live,
  calls: ReadonlyArray<Call>,
  said: ReadonlyArray<ReadonlyArray<AskingGate>>
) {
  const pending: Array<Request> = []
  const settled = new Set<Request>()
  // Decisions that were made while the run waits, for the case that another call of the round suspends it.
  const given: Array<Decision> = []
  const suspended = new Set<string>()
  const decidedOn: DecidedOn = new Map()
  const gates = gatekeepers(live, calls, decidedOn, settled, said)
  if (live.round.suspension !== null) for (const call of calls) yield* settleChanged(live, call, settled)

  const ask = Effect.fnUntraced(function* (keeper: Gatekeeper, asked: ReadonlyArray<Asked>, edited: Set<Call>) {
    const { seen, suspends } = keeper
    const changed = ({ id, prepared }: Call): void => {
      if (prepared !== undefined) seen.set(id, prepared.arguments)
    }
    const isDecided = ({ id, prepared }: Call): void => {
      if (prepared !== undefined) decidedOn.set(id, prepared.arguments)
    }
    const decided = (one: Asked, meant: Suspend, request: Request, decision: Decision) =>
      Effect.map(apply(live, one, request, decision, meant), () => {
        settled.add(request)
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
        if (meant.isCounted === true) live.round.isCounted = true
      } else {
        const { isNew, request } = requestOf(live, one, meant)
        const decision = isNew ? undefined : decisionOn(live.round.suspension, request)
        const { approvals } = live
        if (decision !== undefined) yield* decided(one, meant, request, decision)
        else if (suspends) {
          suspended.add(call.id)
          pending.push(request)
          if (isNew) yield* announce(live, request)
        } else if (approvals === undefined) refuse(call, undecided)
        else {
          live.round.gating?.requests.push(request)
          if (isNew) noteRequest(live, request)
          waiting.push(
            Effect.flatMap(
              Effect.andThen(report(live, request), waitingIn(live, call, approvals.decide(request))),
              (answered) => {
                const problem = notOn(live, request, answered)
                if (problem !== undefined) {
                  refuse(call, problem)
                  return voided(live, request)
                }
                given.push(answered)
                live.round.gating?.decisions.push(answered)
                return decided(one, meant, request, answered)
              }
            )
          )
        }
      }
    }
    if (waiting.length > 0) yield* storeBeforeAsking(live)
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
  return { pending, settled: [...settled], given } satisfies Judged
})

/** Stores a turn with the fact that none of its calls has begun, before a person is asked while the run waits. */
const storeBeforeAsking = (live: Live): Effect.Effect<void, unknown, unknown> => {
  const { gating } = live.round
  return gating === undefined || !live.records.isJournaled
    ? save(live)
    : Effect.andThen(markGated(live, gating), save(live))
}

/** Notes that no call of a turn has begun: they wait for their gates. */
export const markGated = (live: Live, { calls, decisions, message, requests }: Gating): Effect.Effect<void> => {
  const before = live.round.suspension?.messageId === message.id ? live.round.suspension : undefined
  const known = new Set(before?.requests.map(({ id }) => id))
  live.round.isMarked = true
  return live.run.state.set(suspension, {
    messageId: message.id,
    requests: [...(before?.requests ?? []), ...requests.filter(({ id }) => !known.has(id))],
    decisions: [...(before?.decisions ?? []), ...decisions],
    waiting: before === undefined ? [] : waitingCalls(before),
    answers: before?.answers ?? [],
    unknown: before?.unknown ?? calls.flatMap((call) => (call.left === "unknown" ? [call.id] : []))
  })
}

/** Asks the gates about the calls of a turn. If something waits, the run is suspended: nothing of the turn may run. */
export const gate = (
  live: Live,
  message: AiMessage,
  calls: ReadonlyArray<Call>
): Effect.Effect<ReadonlyArray<Request>, unknown, unknown> =>
  Effect.suspend(() => {
    live.round.isCounted = false
    live.round.gating = { message, calls, requests: [], decisions: [] }
    return Effect.flatMap(judge(live, calls), (judged) => {
      live.round.gating = undefined
      return judged.pending.length === 0
        ? Effect.succeed(judged.pending)
        : Effect.as(suspend(live, message, calls, judged), judged.pending)
    })
  })

/** Keeps what waits, and what was decided on meanwhile, in the state. */
const suspend = (live: Live, message: AiMessage, calls: ReadonlyArray<Call>, { given, pending, settled }: Judged) => {
  const before = live.round.suspension?.messageId === message.id ? live.round.suspension : undefined
  const decided = new Set(settled.map(({ id }) => id))
  // A decision is kept as such, and done again.
  const decidedCalls = new Set(settled.map(({ callId }) => callId))
  const asked = new Set(calls.map(({ id }) => id))
  // Requests of what waits inside of a call stay as they are: it is not run either.
  const inside = before?.requests.filter((request) => !isOn(live, asked, request)) ?? []
  const kept = new Set([...decided, ...inside.map(({ id }) => id)])
  return live.run.state.set(suspension, {
    messageId: message.id,
    requests: [...settled, ...inside, ...pending],
    decisions: [...(live.round.suspension?.decisions ?? []), ...given].filter(({ id }) => kept.has(id)),
    waiting: before === undefined ? [] : waitingCalls(before),
    // A refusal stays one, whatever is offered when the run is resumed.
    answers: calls.flatMap((call) =>
      call.outcome === undefined || decidedCalls.has(call.id) ? [] : [answer(live, call)]
    ),
    unknown: calls.flatMap((call) => (call.left === "unknown" ? [call.id] : []))
  })
}

/** True for a request about one of these calls of a run itself. */
export const isOn = (live: Live, calls: ReadonlySet<string>, { callId, path }: Request): boolean =>
  path.length === live.run.path.length && calls.has(callId)

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

const gone = "It was there when this call was asked about: the call waited for a decision, and was not executed."

const tooOften = "The arguments of this call were changed again and again, so it was not executed."

/** Tells whether a request that another gate made, and what was decided on it, is as strict as this one asks for. */
const isEnough =
  ({ byPerson, deciders }: Suspend) =>
  (request: Request, decision: Decision | undefined): boolean =>
    decision === undefined
      ? (deciders === undefined || request.deciders?.every((one) => deciders.includes(one)) === true) &&
        (byPerson !== true || request.byPerson === true)
      : mayDecide({ deciders }, decision.by) && (byPerson !== true || decision.byProgram !== true)

/** The request about a call: the one that was made before, unless it is about other arguments, too old, or not enough. */
const requestOf = (
  live: Live,
  { call, prepared, tool }: Asked,
  gate: Suspend
): { readonly request: Request; readonly isNew: boolean } => {
  const known = requestFor(
    live.round.suspension,
    live.run.path,
    prepared.id,
    prepared.arguments,
    call.settled,
    isEnough(gate)
  )
  if (known !== undefined && isInTime(live, known)) return { request: known, isNew: false }
  const { allow, byPerson, deciders, description, expiresAt, rule } = gate
  return {
    isNew: true,
    request: {
      id: live.makeId(),
      runId: live.run.runId,
      callId: prepared.id,
      path: live.run.path,
      toolName: prepared.name,
      arguments: prepared.arguments,
      // It may quote the model.
      description: visible(description),
      allow: allow ?? every,
      at: live.origin.clock.currentTimeMillisUnsafe(),
      toolDigest: digestOf(tool),
      ...defined({ expiresAt, rule, deciders, byPerson })
    }
  }
}

/** Checks that a tool is what it was when somebody was asked about a call of it. Old requests do not know. */
const isAsPromised = ({ toolDigest }: Request, tool: Tool<unknown>): boolean =>
  toolDigest === undefined || digestOf(tool) === toolDigest

/**
 * Answers a call that was asked about, if its tool is gone, or another one now. What somebody said in its place, or
 * against it, holds all the same; nothing else that was decided can be carried out.
 */
const settleChanged = Effect.fnUntraced(function* (live: Live, call: Call, settled: Set<Request>) {
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
  } else if (call.left === undefined && call.outcome !== undefined && "error" in call.outcome) {
    const { error } = call.outcome
    call.outcome = { error: new ToolError({ ...error, message: `${error.message} ${gone}` }) }
  }
})

const noteRequest = (live: Live, request: Request): void => note(live.records, { _tag: "Request", request })

const report = (live: Live, request: Request): Effect.Effect<void> =>
  emit(live, { _tag: "ApprovalRequested", ...request })

const announce = (live: Live, request: Request): Effect.Effect<void> => {
  noteRequest(live, request)
  return report(live, request)
}

/** The reason why the answer of a service is no decision on this request. */
const notOn = (live: Live, request: Request, decision: Decision): string | undefined => {
  if (decision.id !== request.id) return misdirected
  if (!isInTime(live, request)) return tooLate
  const problem = request.allow.includes(choiceOf(decision)) ? problemOf(request, decision) : undefined
  return problem === undefined ? undefined : `${problem}. This call was not executed.`
}

/** Carries a decision out. A choice that was not offered refuses the call: nobody else is there to ask. */
const apply = Effect.fnUntraced(function* (
  live: Live,
  { call, tool }: Pick<Call, "tool"> & { readonly call: Call },
  request: Request,
  decision: Decision,
  gate?: Suspend
) {
  const choice = choiceOf(decision)
  const known = recorded(request, decision, live.origin.clock.currentTimeMillisUnsafe())
  note(live.records, { _tag: "Decision", decision: known })
  yield* emit(live, {
    _tag: "ApprovalResolved",
    id: request.id,
    callId: call.id,
    toolName: call.name,
    decision: choice,
    ...defined({ by: known.by?.id, rule: known.rule })
  })
  if (!request.allow.includes(choice)) return refuse(call, undecided)
  if (gate?.onDecision !== undefined) yield* gate.onDecision(decision)
  const meant = toGate(decision, call.left !== undefined)
  if (meant._tag === "Edit" && tool !== undefined) yield* prepare(call, tool, meant.arguments)
  else if (meant._tag === "Answer") call.outcome = { output: meant.output }
})
