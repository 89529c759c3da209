/** Asks the questions of a running tool. The tool waits, or the run is suspended until somebody answers. */
import * as Effect from "effect/Effect"
import { defined } from "../../../support/json/defined.ts"
import { visible } from "../../../support/text/untrusted.ts"
import * as Approval from "../../Approval.ts"
import type { Json, JsonObject } from "../../Json.ts"
import type { Question } from "../../Question.ts"
import { decisionOn, requestFor } from "../../thread/suspension.ts"
import { ToolError } from "../../ToolError.ts"
import type { Attempt, Live } from "../live.ts"
import { park } from "../records/attempts.ts"
import * as Inside from "../records/inside.ts"
import { note, save } from "../records/journal.ts"
import { emit } from "../report.ts"
import { waitingIn } from "../work.ts"
import { isInTime } from "./gatekeepers.ts"
import { grant } from "./rehearse.ts"
import { isDeferred, isEnough, makeRequest, problemOn } from "./requests.ts"

/** A question in an attempt, with its place in the records. */
interface OpenQuestion<A> {
  readonly attempt: Attempt
  readonly place: string
  readonly question: Question<A>
}

const reject = (message: string): ToolError => new ToolError({ reason: "Rejected", message })

/** Reports whether all that a question is about is approved for good. */
const isCovered = ({ run }: Live, { covers = [] }: Partial<NonNullable<Question<unknown>["approval"]>> = {}) =>
  covers.length === 0
    ? Effect.succeed(false)
    : Effect.map(run.state.get(Approval.always), (approved) => covers.every((name) => approved.includes(name)))

const detailsOf = ({ approval, details, jsonSchema, text }: Question<unknown>): JsonObject =>
  approval === undefined ? { question: text, ...details, answer: jsonSchema } : details

export const askQuestion = Effect.fnUntraced(function* <A>(attempt: Attempt, question: Question<A>) {
  const { call, live } = attempt
  const { approval } = question
  if (yield* isCovered(live, approval)) return yield* decodeAnswer(question, null)
  const details = detailsOf(question)
  const place = Inside.claim(attempt, "ask", call.name, details)
  const asking: OpenQuestion<A> = { attempt, place, question }
  const saved = yield* Effect.fromResult(Inside.find(attempt, place, "Ask"))
  if (saved?.answer !== undefined) {
    grant(attempt, approval?.calls)
    return yield* decodeAnswer(question, saved.answer)
  }
  const id = saved?.id ?? Inside.freshId(attempt)
  const { suspension } = live.round
  const earlier = requestFor(suspension, live.run.path, id, details, undefined, isEnough(approval?.ask?.terms ?? {}))
  const pendingRequest = earlier !== undefined && isInTime(live, earlier) ? earlier : undefined
  const decision = pendingRequest === undefined ? undefined : decisionOn(suspension, pendingRequest)
  if (pendingRequest !== undefined && decision !== undefined)
    return yield* takeDecision(asking, pendingRequest, decision)
  const request = pendingRequest ?? requestOf(live, id, call.name, question, details)
  if (live.compiled.suspends && (yield* isDeferred(live, request))) {
    if (pendingRequest === undefined) yield* announce(live, request)
    Inside.keep(attempt, place, { _tag: "Ask", id })
    return yield* park(attempt, [request])
  }
  if (live.approvals === undefined) return yield* reject("Nobody is here to answer; do without it.")
  return yield* askNow(asking, request, live.approvals.decide)
})

/** Asks while the tool waits. An answer that does not fit is asked for once more. */
const askNow = Effect.fnUntraced(function* <A>(
  asking: OpenQuestion<A>,
  request: Approval.Request,
  decide: Approval.Approvals["Service"]["decide"]
) {
  const { attempt, question } = asking
  const { call, live } = attempt
  const askOnce = (request: Approval.Request) =>
    Effect.andThen(
      announce(live, request),
      Effect.onInterrupt(waitingIn(live, call, decide(request)), () => withdraw(live, request))
    )
  const first = yield* askOnce(request)
  const problem = first.id === request.id ? yield* problemOf(question, first) : undefined
  if (problem === undefined) return yield* takeOwnDecision(asking, request, first)
  yield* withdraw(live, request)
  const description = `${visible(question.text)}\n${explainMisfit(problem)}`
  const secondRequest = { ...requestOf(live, request.callId, call.name, question, request.arguments), description }
  return yield* takeOwnDecision(asking, secondRequest, yield* askOnce(secondRequest))
})

const explainMisfit = (problem: string): string => `The answer does not fit:\n${problem}`

const decodeAnswer = <A>(question: Question<A>, answer: Json): Effect.Effect<A, ToolError> =>
  Effect.mapError(question.decode(answer), (problem) => reject(explainMisfit(problem)))

const requestOf = (
  live: Live,
  callId: string,
  toolName: string,
  { approval, jsonSchema, text }: Question<unknown>,
  details: JsonObject
): Approval.Request => {
  const editsFiles = live.turn.toolset.tools.get(toolName)?.annotations.editsFiles || undefined
  const subject = { callId, toolName, arguments: details, description: text }
  return approval === undefined
    ? { ...makeRequest(live, undefined, ["respond", "reject"], subject), answer: jsonSchema }
    : makeRequest(live, approval.ask, ["approve", "reject"], { ...subject, ...defined({ editsFiles }) })
}

const announce = (live: Live, request: Approval.Request): Effect.Effect<void> =>
  Effect.suspend(() => {
    note(live.records, { _tag: "Request", request })
    return emit(live, { _tag: "ApprovalRequested", ...request })
  })

const reportDecision = (
  live: Live,
  { callId, id, toolName }: Approval.Request,
  decision: Approval.Choice | "void"
): Effect.Effect<void> => emit(live, { _tag: "ApprovalResolved", id, callId, toolName, decision })

/** Reports that nobody waits for an answer any more. */
const withdraw = (live: Live, request: Approval.Request): Effect.Effect<void> => reportDecision(live, request, "void")

const problemOf = (question: Question<unknown>, decision: Approval.Decision): Effect.Effect<string | undefined> =>
  decision._tag === "Respond"
    ? Effect.match(question.decode(Approval.answerOf(decision)), {
        onSuccess: () => undefined,
        onFailure: (problem) => problem
      })
    : Effect.undefined

/** The answer in a decision; `undefined` for a refusal. */
const answerOf = (question: Question<unknown>, decision: Approval.Decision): Json | undefined => {
  if (decision._tag === "Respond") return question.approval === undefined ? Approval.answerOf(decision) : undefined
  return question.approval !== undefined && decision._tag === "Approve"
    ? { always: decision.always === true }
    : undefined
}

const takeOwnDecision = <A>(asking: OpenQuestion<A>, request: Approval.Request, decision: Approval.Decision) => {
  const { attempt, question } = asking
  if (decision.id !== request.id) return Effect.fail(reject("The decision was on another request."))
  const problem = question.approval === undefined ? undefined : problemOn(attempt.live, request, decision)
  return problem === undefined
    ? takeDecision(asking, request, decision)
    : Effect.andThen(withdraw(attempt.live, request), Effect.fail(reject(problem)))
}

/** Records a decision, and decodes the answer in it. */
const takeDecision = Effect.fnUntraced(function* <A>(
  { attempt, place, question }: OpenQuestion<A>,
  request: Approval.Request,
  decision: Approval.Decision
) {
  const { live } = attempt
  const recorded = Approval.recorded(request, decision, live.origin.clock.currentTimeMillisUnsafe())
  note(live.records, { _tag: "Decision", decision: recorded })
  yield* reportDecision(live, request, Approval.choiceOf(decision))
  const answer = answerOf(question, decision)
  if (answer === undefined) {
    const reason = decision._tag === "Reject" ? decision.reason : undefined
    const what = question.approval === undefined ? "The question was not answered" : "This was not approved"
    return yield* reject(reason === undefined ? `${what}.` : `${what}: ${reason}`)
  }
  const value = yield* decodeAnswer(question, answer)
  grant(attempt, question.approval?.calls)
  Inside.keep(attempt, place, { _tag: "Ask", id: request.callId, answer })
  const covers = question.approval?.covers ?? []
  if (covers.length > 0 && decision._tag === "Approve" && decision.always === true) {
    yield* live.run.state.set(Approval.always, covers)
  }
  yield* save(live)
  return value
})
