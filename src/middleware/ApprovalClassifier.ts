/**
 * Lets a classifier (a model, or an Effect of yours) decide on calls in a person's place. The person decides on the rest.
 *
 * ```ts
 * import { Layer } from "effect"
 * import type { Approval, ChatModel } from "effect-deepagents"
 * import { ApprovalClassifier } from "effect-deepagents/middleware"
 *
 * declare const person: Layer.Layer<Approval.Approvals>
 * declare const small: Layer.Layer<ChatModel.ChatModel>
 *
 * const approvals = ApprovalClassifier.layer({
 *   classify: ApprovalClassifier.byModel({ rules: "Commands that only read may run. Commands that delete files may not." })
 * }).pipe(Layer.provide([person, small]))
 * ```
 */
import type { AiError } from "effect/ai/AiError"
import type { DecisionModel } from "effect/ai/DecisionModel"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { AgentError } from "../core/AgentError.ts"
import * as Approval from "../core/Approval.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type { ModelError } from "../core/ModelError.ts"
import { CurrentRun, type Run } from "../core/Run.ts"
import { decisionModel, providedModel } from "../support/decisions/service.ts"
import { makeEffectCheck, makeLayerCheck } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import {
  approve,
  estimateEach,
  judgeByDecisions,
  judgeByText,
  person,
  refuse,
  type Verdict
} from "./internal/judges.ts"
import * as shapes from "./internal/shapes.ts"

export { approve, person, refuse, type Verdict }

/** The principal whose name its decisions have. */
const classifier: Approval.Principal = { id: "classifier" }

/** Refusals, and failures, of a classifier in one tree of runs before the person decides on the rest. */
export const most = { refusals: 3, failures: 2 } as const

/** The requests that are judged at once, at most. */
const batchSize = 20

/** The time that a classifier has. */
const patience = "1 minute"

/** Deeds of a classifier in one tree of runs. */
interface Tally {
  refusals: number
  failures: number
}

const isSpent = ({ failures, refusals }: Tally): boolean => refusals >= most.refusals || failures >= most.failures

interface Classification {
  readonly verdict: Verdict
  readonly problem?: string
}

interface WaitingRequest {
  readonly request: Approval.Request
  readonly tally: Tally
  readonly settled: Deferred.Deferred<Classification>
  isGone: boolean
}

/**
 * Reports whether a program may decide. Only a gate knows the digest of the tool. Requests of a tool in the middle of
 * its work (a question, a file under a rule) are for a person.
 */
const isOpen = (request: Approval.Request, by: Approval.Principal): boolean =>
  request.byPerson !== true &&
  request.answer === undefined &&
  request.toolDigest !== undefined &&
  request.allow.includes("approve") &&
  request.allow.includes("reject") &&
  Approval.mayDecide(request, by)

const chunks = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / batchSize) }, (_, index) =>
    all.slice(index * batchSize, (index + 1) * batchSize)
  )

/** Counts a verdict, in the order of the requests. After too many refusals the person decides. */
const countVerdict = ({ tally }: WaitingRequest, verdict: Verdict): Verdict => {
  if (isSpent(tally)) return person
  if (verdict._tag === "Refuse") tally.refusals++
  return verdict
}

const refuseByModel = makeEffectCheck("ApprovalClassifier.byModel", shapes.approvalClassifierByModel)
const refuseLayer = makeLayerCheck("ApprovalClassifier.layer", shapes.approvalClassifierLayer)

/**
 * Puts a classifier before the `Approvals` of the context, a person's. It judges the requests of all runs within
 * `window` (20 seconds from the first) together, at most 20 at a time. Verdicts follow the order of the requests. The
 * person decides on a request without a verdict.
 *
 * The person alone decides, immediately, on:
 *
 * - requests with `byPerson`: the `ask` of a `Policy`, and the questions of `Taint` and `FanOut`
 * - questions and files that a tool asks about during its work
 * - requests whose `deciders` exclude the classifier
 * - requests that would expire within the window
 *
 * After three refusals, or two failures (the Effect fails, or gives no answer for a minute), the person decides on the
 * rest of the run and its sub-agents. A `Warning` (`approval-classifier`) reports that. Decisions are `by` the principal `classifier`, or yours.
 */
export const layer = <E, R>(options: {
  /** Judges requests, and gives the verdicts in their order. A missing verdict leaves the request to the person. */
  readonly classify: (
    requests: ReadonlyArray<Approval.Request>
  ) => Effect.Effect<ReadonlyArray<Verdict | undefined>, E, R>
  /** The time in which requests of all runs are collected, from the first one. Default: 20 seconds. */
  readonly window?: Duration.Input | undefined
  /** The principal of the decisions. Default: `classifier`. */
  readonly by?: Approval.Principal | undefined
}): Layer.Layer<Approval.Approvals, never, Approval.Approvals | Exclude<R, Scope.Scope>> =>
  refuseLayer(options) ?? Layer.effect(Approval.Approvals, build(options))

/**
 * Judges requests immediately, 20 at a time, with the rules of {@link layer}, and returns the decisions. Requests for a
 * person get none. `Inbox.classify` of `effect-deepagents/rules` uses it for suspended runs. Fails as `classify` does,
 * and with a `TimeoutError` after a minute without an answer.
 */
export const decisionsOn = <E, R>(
  requests: ReadonlyArray<Approval.Request>,
  { by = classifier, classify }: Pick<Parameters<typeof layer<E, R>>[0], "classify" | "by">
): Effect.Effect<ReadonlyArray<Approval.Decision>, E | Cause.TimeoutError, R> =>
  Effect.map(
    Effect.forEach(chunks(requests.filter((request) => isOpen(request, by))), (batch) =>
      Effect.map(Effect.timeout(classify(batch), patience), (verdicts) =>
        batch.flatMap((request, index) => decisionOf(request, verdicts[index] ?? person, by))
      )
    ),
    (decided) => decided.flat()
  )

const decisionOf = (
  request: Approval.Request,
  verdict: Verdict,
  by: Approval.Principal
): ReadonlyArray<Approval.Decision> => {
  if (verdict._tag === "Person") return []
  const decision = verdict._tag === "Approve" ? Approval.approve(request) : Approval.reject(request, verdict.reason)
  return [{ ...Approval.decidedBy(decision, request, { by }), byProgram: true }]
}

const build = Effect.fnUntraced(function* <E, R>(options: Parameters<typeof layer<E, R>>[0]) {
  const { by = classifier, classify } = options
  const window = Duration.fromInputUnsafe(options.window ?? "20 seconds")
  const human = yield* Approval.Approvals
  const scope = yield* Effect.scope
  const queue = yield* Queue.unbounded<WaitingRequest>()
  const waiting = new Set<WaitingRequest>()
  const tallies = new WeakMap<object, Tally>()
  const outside = {}

  const tallyOf = (run: Run | undefined): Tally => {
    const key = run?.state.shared ?? outside
    const tally = tallies.get(key) ?? { refusals: 0, failures: 0 }
    tallies.set(key, tally)
    return tally
  }

  const settle = (one: WaitingRequest, settled: Classification): Effect.Effect<unknown> => {
    waiting.delete(one)
    return Deferred.succeed(one.settled, settled)
  }

  const judge = Effect.fnUntraced(function* (all: ReadonlyArray<WaitingRequest>) {
    const here = all.filter(({ isGone, tally }) => !isGone && !isSpent(tally))
    for (const one of all) if (!here.includes(one)) yield* settle(one, { verdict: person })
    if (here.length === 0) return
    const exit = yield* Effect.exit(
      Effect.timeout(
        Effect.suspend(() => classify(here.map(({ request }) => request))),
        patience
      )
    )
    if (Exit.isSuccess(exit)) {
      for (const [index, one] of here.entries()) {
        yield* settle(one, { verdict: countVerdict(one, exit.value[index] ?? person) })
      }
      return
    }
    const problem = cut(oneLine(Cause.prettyErrors(exit.cause)[0]?.message ?? "it was interrupted"), 500)
    for (const tally of new Set(here.map((one) => one.tally))) tally.failures++
    for (const one of here) yield* settle(one, { verdict: person, problem })
  })

  const collect = Effect.gen(function* () {
    const first = yield* Queue.take(queue)
    yield* Effect.sleep(window)
    const rest = yield* Queue.clear(queue)
    for (const batch of chunks([first, ...rest])) yield* Effect.forkIn(judge(batch), scope)
  })

  // Waiting calls end when the layer closes.
  yield* Effect.addFinalizer(() => Effect.forEach([...waiting], (one) => settle(one, { verdict: person })))
  yield* Effect.forkScoped(Effect.forever(collect))

  const judged = Effect.fnUntraced(function* (request: Approval.Request, tally: Tally) {
    const one: WaitingRequest = { request, tally, settled: yield* Deferred.make<Classification>(), isGone: false }
    waiting.add(one)
    yield* Queue.offer(queue, one)
    return yield* Effect.onInterrupt(Deferred.await(one.settled), () =>
      Effect.sync(() => {
        one.isGone = true
        waiting.delete(one)
      })
    )
  })

  return {
    decide: Effect.fnUntraced(function* (request: Approval.Request) {
      const run = yield* CurrentRun
      const tally = tallyOf(run)
      const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(window)
      const isLate = request.expiresAt !== undefined && request.expiresAt <= until
      if (!isOpen(request, by) || isLate || isSpent(tally)) return yield* human.decide(request)
      const { problem, verdict } = yield* judged(request, tally)
      if (problem !== undefined && run !== undefined) {
        yield* run.warn("approval-classifier", `The classifier could not decide, so a person is asked: ${problem}`)
      }
      const [decision] = decisionOf(request, verdict, by)
      return decision ?? (yield* human.decide(request))
    })
  }
})

const refuseEstimate = makeEffectCheck("ApprovalClassifier.estimate", shapes.approvalClassifierEstimate)

/**
 * Asks the decision model of the context for the probability that each request may run by the rules. A request of more
 * than 8,000 characters, and one without an answer, has none. `Decisions.labelled` of `effect-deepagents/rules` uses it.
 */
export const estimate = (
  requests: ReadonlyArray<Approval.Request>,
  options: {
    /** The rules in words. */
    readonly rules: string
    /** Requests to the model at once. Default: 8. */
    readonly concurrency?: number | undefined
  }
): Effect.Effect<ReadonlyArray<number | undefined>, AiError, DecisionModel> =>
  refuseEstimate(options) ??
  Effect.flatMap(decisionModel, (model) => estimateEach(model, options.rules, requests, options.concurrency))

/**
 * Classifies by `rules` in words: by the `DecisionModel` of `effect/ai` if the context has one, else by its `ChatModel`.
 * Either is asked outside of the asking run's budget. A request of more than 8,000 characters is left to the person.
 *
 * - The chat model runs as an agent of its own (`approval-classifier`). The requests are quoted, and the answer is decoded
 *   by a schema. A request that the answer omits or names twice is left to the person.
 * - The decision model is asked about each request alone. Without `settle` it chooses between approving, refusing and
 *   leaving the request to the person; a choice that is not more probable than the others together is left to the person.
 *   With `settle` it gives a probability. Without a decision model, `settle` leaves all requests to the person.
 */
export const byModel = (options: {
  /** The rules in words, by which the model judges. */
  readonly rules: string
  /**
   * Settles the probability of a decision model that a request may run: `settle` of a calibration, see `Decisions` of
   * `effect-deepagents/rules`. Default: the model chooses.
   */
  readonly settle?: ((probability: number) => "yes" | "no" | "person") | undefined
}) => {
  const refused = refuseByModel(options)
  if (refused !== undefined) return () => refused
  const { rules, settle } = options
  const byText = judgeByText(rules)
  return (
    requests: ReadonlyArray<Approval.Request>
  ): Effect.Effect<ReadonlyArray<Verdict>, ModelError | AgentError, ChatModel> =>
    Effect.flatMap(
      providedModel,
      (model): Effect.Effect<ReadonlyArray<Verdict>, ModelError | AgentError, ChatModel> => {
        if (Option.isSome(model)) return judgeByDecisions(model.value, { rules, settle }, requests)
        return settle === undefined ? byText(requests) : Effect.succeed(requests.map(() => person))
      }
    )
}
