/** Rules on the calls of a round before any of them runs, asks people, and applies their decisions. */
import * as Effect from "effect/Effect"
import { always, byTime, type Decision, type Request } from "../../Approval.ts"
import type { JsonObject } from "../../Json.ts"
import type { AiMessage } from "../../Message.ts"
import type { PreparedCall } from "../../Middleware.ts"
import { allow, type Ask, compose, type Ruling } from "../../Ruling.ts"
import { canonical } from "../../schema/jsonTree.ts"
import { decisionOn, requestFor, suspension, waitingCalls } from "../../thread/suspension.ts"
import type { PreparedWork, Tool } from "../../Tool.ts"
import { make as makeOutput } from "../../ToolOutput.ts"
import type { GatedTurn, Live } from "../live.ts"
import { save } from "../records/journal.ts"
import { waitingIn } from "../work.ts"
import { answer, type Call, prepare, toPrepared } from "./calls.ts"
import { announce, apply, keyOf, noteRequest, refuse, report, settleChanged, tooOften, undecided } from "./decisions.ts"
import { afterCrash, type RuledCall, isInTime, ownQuestion, rehearsed, voided } from "./gatekeepers.ts"
import { isDeferred, isEnough, problemOn, requestOf } from "./requests.ts"
import { type Rulings, rulingsOn } from "./rulings.ts"

/** The number of times that a call is ruled on because somebody changed its arguments. */
const passLimit = 8

/** The rulings on the calls of a round: open requests, requests that were decided, and decisions made meanwhile. */
export interface RoundRulings {
  readonly pending: ReadonlyArray<Request>
  readonly settled: ReadonlyArray<Request>
  readonly decisions: ReadonlyArray<Decision>
}

const freely: Effect.Effect<RoundRulings> = Effect.succeed({ pending: [], settled: [], decisions: [] })

/**
 * Rules on all calls that would run. Pending requests must be decided on first: if there is one, none of the calls may
 * run. The calls are stored before anybody is asked.
 */
export const judge = (
  live: Live,
  calls: ReadonlyArray<Call>,
  askSources: typeof rulingsOn = rulingsOn
): Effect.Effect<RoundRulings, unknown, unknown> => {
  const isPlain =
    !live.turn.toolset.asks && live.round.suspension === null && calls.every(({ trace }) => trace === undefined)
  if (!isPlain) return Effect.suspend(() => judged(live, calls, undefined, askSources))
  const rulings = Effect.flatMap(rewrite(live, openOf(calls)), (open) => askSources(live, open.map(toAsked)))
  return Effect.flatMap(rulings, (first) => (first.size === 0 ? freely : judged(live, calls, first, askSources)))
}

/** Gives calls the arguments that middleware puts in place of theirs. Gives the calls that still would run. */
const rewrite = Effect.fnUntraced(function* (live: Live, calls: ReadonlyArray<Due>) {
  let open = calls
  for (const rewriteAll of live.compiled.rewrites) {
    const newArguments = open.length === 0 ? [] : yield* rewriteAll(live.run, open.map(toAsked))
    for (const [index, call] of open.entries()) {
      const args = newArguments[index]
      if (args !== undefined) yield* prepare(call, call.tool, args)
    }
    open = openOf(open)
  }
  return open
})

/** A call that will run if nobody objects. */
type Due = Call & { readonly tool: Tool<unknown>; readonly prepared: PreparedWork<unknown> }

const isDue = (call: Call): call is Due =>
  call.outcome === undefined && call.tool !== undefined && call.prepared !== undefined

const openOf = (calls: ReadonlyArray<Call>): ReadonlyArray<Due> => (calls.every(isDue) ? calls : calls.filter(isDue))

const toAsked = (call: Due): PreparedCall => toPrepared(call, call.tool, call.prepared)

/** An edit by a person, with the sources that had asked: they need not ask about the new arguments again. */
interface EditedCall {
  readonly request: Request
  readonly decision: Decision
  readonly by: ReadonlySet<string>
  readonly arguments: JsonObject | undefined
}

const judged = Effect.fnUntraced(function* (
  live: Live,
  calls: ReadonlyArray<Call>,
  first: Rulings | undefined,
  askSources: typeof rulingsOn
) {
  const pending: Array<Request> = []
  const settled = new Set<Request>()
  // Decisions that were made while the run waits, for the case that another call of the round suspends it.
  const decisions: Array<Decision> = []
  const edits = new Map<string, EditedCall>()
  if (live.round.suspension !== null) for (const call of calls) yield* settleChanged(live, call, settled)
  const crashed = first === undefined ? yield* afterCrash(live, yield* rewrite(live, openOf(calls))) : undefined

  const decided = Effect.fnUntraced(function* (
    subject: RuledCall,
    asks: ReadonlyArray<Ask>,
    request: Request,
    decision: Decision
  ) {
    const { call } = subject
    settled.add(request)
    yield* apply(live, subject, request, decision, asks)
    if (decision._tag === "Edit")
      edits.set(call.id, {
        request,
        decision,
        by: new Set(asks.map(({ by }) => by)),
        arguments: call.prepared?.arguments
      })
  })

  /** Suspends the call, or refuses it, or returns the wait for a person. */
  const askPerson = Effect.fnUntraced(function* (
    subject: RuledCall,
    asks: ReadonlyArray<Ask>,
    request: Request,
    isNew: boolean,
    isByTime: boolean
  ) {
    const { approvals } = live
    if (live.compiled.suspends && (isByTime || (yield* isDeferred(live, request)))) {
      pending.push(request)
      if (isNew) yield* announce(live, request)
      return undefined
    }
    if (approvals === undefined) {
      refuse(subject.call, undecided)
      return undefined
    }
    live.round.gating?.requests.push(request)
    if (isNew) noteRequest(live, request)
    const waiting = waitingIn(live, subject.call, approvals.decide(request))
    return Effect.flatMap(Effect.andThen(report(live, request), waiting), (answered): Effect.Effect<void> => {
      const problem = problemOn(live, request, answered)
      if (problem !== undefined) {
        refuse(subject.call, problem)
        return voided(live, request)
      }
      decisions.push(answered)
      live.round.gating?.decisions.push(answered)
      return decided(subject, asks, request, answered)
    })
  })

  /** Takes the last edit of a call. Middleware may have changed its arguments since: then nobody has decided on them. */
  const takeEdit = (call: Due): EditedCall | undefined => {
    const last = edits.get(call.id)
    edits.delete(call.id)
    if (last?.arguments === undefined) return undefined
    return canonical(last.arguments) === canonical(call.prepared.arguments) ? last : undefined
  }

  /** Composes the rulings on a call. `isCovered`: the last edit answers all questions. */
  const ruleOn = Effect.fnUntraced(function* (
    subject: RuledCall & { readonly call: Due },
    pass: number,
    approved: ReadonlyArray<string>,
    rulings: ReadonlyArray<Ruling> = []
  ) {
    const edit = takeEdit(subject.call)
    const standing = rulings.map((one) => standingRuling(one, subject.prepared, approved))
    const gateRulings = [pass === 0 ? crashed?.get(subject.call.id) : undefined, ...standing]
    const own = edit === undefined ? yield* ownQuestion(live, subject, gateRulings) : undefined
    const { ruling, rulings: all } = compose(gateRulings, own)
    const asks = all.filter((one) => one._tag === "Ask")
    const isCovered =
      (edit !== undefined && asks.every((one) => isCoveredBy(edit, one))) || isGranted(subject.call, asks)
    return { ruling, asks, isCovered }
  })

  const rulingsFor = (pass: number, prepared: ReadonlyArray<PreparedCall>) =>
    pass === 0 && first !== undefined ? Effect.succeed(first) : askSources(live, prepared)

  let due = openOf(calls)
  for (let pass = 0; due.length > 0; pass++) {
    if (pass === passLimit) {
      for (const call of due) refuse(call, tooOften)
      break
    }
    const prepared = due.map(toAsked)
    const rulings = yield* rulingsFor(pass, prepared)
    const approved = rulings.size === 0 ? [] : yield* live.run.state.get(always)
    const waiting: Array<Effect.Effect<void>> = []
    for (const [index, call] of due.entries()) {
      const { tool } = call
      const subject = { call, tool, prepared: prepared[index] ?? toAsked(call) }
      const { asks, isCovered, ruling } = yield* ruleOn(subject, pass, approved, rulings.get(call.id))
      if (ruling._tag === "Refuse") {
        call.outcome = { output: makeOutput(ruling.reason, { isError: true }) }
        continue
      }
      if (ruling._tag === "Allow" || isCovered) {
        yield* settleStanding(live, subject, settled, decided)
        continue
      }
      const { isNew, request } = requestOf(live, subject, ruling)
      const decision = isNew ? undefined : decisionOn(live.round.suspension, request)
      if (decision !== undefined) {
        yield* decided(subject, asks, request, decision)
        continue
      }
      // Nobody is asked about a call that can't succeed.
      const problem = isNew ? yield* rehearsed(live, call, calls.slice(0, calls.indexOf(call))) : undefined
      if (problem !== undefined) {
        call.outcome = { error: problem }
        continue
      }
      const answer = yield* askPerson(subject, asks, request, isNew, ruling.by === byTime)
      if (answer !== undefined) waiting.push(answer)
    }
    if (waiting.length > 0) yield* storeBeforeAsking(live)
    yield* Effect.all(waiting, { concurrency: "unbounded", discard: true })
    due = yield* rewrite(
      live,
      due.filter(({ id, outcome }) => outcome === undefined && edits.has(id))
    )
  }
  return { pending, settled: [...settled], decisions } satisfies RoundRulings
})

/** Replaces a question that was approved for good by an allowance. */
const standingRuling = (ruling: Ruling, call: PreparedCall, approved: ReadonlyArray<string>): Ruling => {
  if (ruling._tag !== "Ask" || ruling.terms.likeness === undefined) return ruling
  const { likeness, settles } = ruling.terms
  return approved.includes(keyOf(ruling, call, likeness)) ? allow(ruling.by, { settles }) : ruling
}

/** Reports whether the edit of a person answers a question about the arguments that it gave. */
const isCoveredBy = (edit: EditedCall, { by, terms }: Ask): boolean =>
  edit.by.has(by) && isEnough(terms)(edit.request, edit.decision)

/** Reports whether a person allowed a call in a rehearsal, and was asked by the same rules on the same terms. */
const isGranted = ({ granted, prepared }: Due, asks: ReadonlyArray<Ask>): boolean =>
  granted !== undefined &&
  canonical(granted.arguments) === canonical(prepared.arguments) &&
  asks.every(({ by, terms }) =>
    granted.asks.some(
      (known) =>
        known.by === by &&
        canonical([...(known.deciders ?? [])]) === canonical([...(terms.deciders ?? [])]) &&
        (terms.byPerson !== true || known.byPerson === true)
    )
  )

/** Rules on a call that is rehearsed, and returns the questions about it. A refusal is its outcome. */
export const ruleInRehearsal = Effect.fnUntraced(function* (live: Live, call: Call, askSources: typeof rulingsOn) {
  const [due] = yield* rewrite(live, openOf([call]))
  if (due === undefined) return []
  const prepared = toAsked(due)
  const answers = yield* askSources(live, [prepared])
  const approved = answers.size === 0 ? [] : yield* live.run.state.get(always)
  const standing = (answers.get(due.id) ?? []).map((one) => standingRuling(one, prepared, approved))
  const own = yield* ownQuestion(live, { call: due, tool: due.tool, prepared }, standing)
  const { ruling, rulings } = compose(standing, own)
  if (ruling._tag !== "Refuse") return rulings.filter((one) => one._tag === "Ask")
  call.outcome = { output: makeOutput(ruling.reason, { isError: true }) }
  return []
})

/**
 * Applies the decision on a request that no source makes any more, even if all sources allow the call. A request
 * without a decision is void.
 */
const settleStanding = Effect.fnUntraced(function* (
  live: Live,
  subject: RuledCall,
  settled: ReadonlySet<Request>,
  decided: (asked: RuledCall, asks: [], request: Request, decision: Decision) => Effect.Effect<void>
) {
  if (live.round.suspension === null) return
  const { call, prepared } = subject
  const request = requestFor(live.round.suspension, live.run.path, call.id, prepared.arguments, call.settled)
  if (request === undefined || settled.has(request)) return
  const decision = isInTime(live, request) ? decisionOn(live.round.suspension, request) : undefined
  yield* decision === undefined ? voided(live, request) : decided(subject, [], request, decision)
})

/** Stores a turn with the fact that none of its calls has begun, before a person is asked while the run waits. */
const storeBeforeAsking = (live: Live): Effect.Effect<void, unknown, unknown> => {
  const { gating } = live.round
  return gating === undefined || !live.records.isJournaled
    ? save(live)
    : Effect.andThen(markGated(live, gating), save(live))
}

/** Notes that no call of a turn has begun: they wait for their gates. */
export const markGated = (live: Live, { calls, decisions, message, requests }: GatedTurn): Effect.Effect<void> => {
  const before = live.round.suspension?.messageId === message.id ? live.round.suspension : undefined
  const knownIds = new Set(before?.requests.map(({ id }) => id))
  live.round.isMarked = true
  return live.run.state.set(suspension, {
    messageId: message.id,
    requests: [...(before?.requests ?? []), ...requests.filter(({ id }) => !knownIds.has(id))],
    decisions: [...(before?.decisions ?? []), ...decisions],
    waiting: before === undefined ? [] : waitingCalls(before),
    answers: before?.answers ?? [],
    unknown: before?.unknown ?? calls.flatMap((call) => (call.trace === "unknown" ? [call.id] : []))
  })
}

/** Asks the gates about the calls of a turn. If something waits, the run is suspended: nothing of the turn may run. */
export const gate = (
  live: Live,
  message: AiMessage,
  calls: ReadonlyArray<Call>
): Effect.Effect<ReadonlyArray<Request>, unknown, unknown> =>
  Effect.suspend(() => {
    live.round.gating = { message, calls, requests: [], decisions: [] }
    return Effect.flatMap(judge(live, calls), (judged) => {
      live.round.gating = undefined
      return judged.pending.length === 0
        ? Effect.succeed(judged.pending)
        : Effect.as(suspend(live, message, calls, judged), judged.pending)
    })
  })

/** Stores the pending requests and the decisions of the meantime in the state. */
const suspend = (
  live: Live,
  message: AiMessage,
  calls: ReadonlyArray<Call>,
  { decisions, pending, settled }: RoundRulings
) => {
  const before = live.round.suspension?.messageId === message.id ? live.round.suspension : undefined
  const decided = new Set(settled.map(({ id }) => id))
  // A decision is kept as such, and done again.
  const decidedCalls = new Set(settled.map(({ callId }) => callId))
  const ids = new Set(calls.map(({ id }) => id))
  // Requests from inside a call stay as they are: it is not run either.
  const inside = before?.requests.filter((request) => !isOn(live, ids, request)) ?? []
  const requestIds = new Set([...decided, ...inside.map(({ id }) => id)])
  return live.run.state.set(suspension, {
    messageId: message.id,
    requests: [...settled, ...inside, ...pending],
    decisions: [...(live.round.suspension?.decisions ?? []), ...decisions].filter(({ id }) => requestIds.has(id)),
    waiting: before === undefined ? [] : waitingCalls(before),
    // A refusal stays a refusal, even if the resumed run offers the tool.
    answers: calls.flatMap((call) =>
      call.outcome === undefined || decidedCalls.has(call.id) ? [] : [answer(live, call)]
    ),
    unknown: calls.flatMap((call) => (call.trace === "unknown" ? [call.id] : []))
  })
}

/** True for a request about one of these calls of a run itself. */
export const isOn = (live: Live, calls: ReadonlySet<string>, { callId, path }: Request): boolean =>
  path.length === live.run.path.length && calls.has(callId)
