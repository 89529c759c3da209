/**
 * Makes the calls, steps and questions of a tool that is at work: each is kept in a record, and given again when the
 * tool is run again.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { tunnel } from "../../support/effect/tunnel.ts"
import { cut } from "../../support/text/text.ts"
import { visible } from "../../support/text/untrusted.ts"
import { AgentError } from "../AgentError.ts"
import * as Approval from "../Approval.ts"
import { Json, type JsonObject } from "../Json.ts"
import type { Question } from "../Question.ts"
import { canonical } from "../schema/jsonTree.ts"
import { union } from "../sourceList.ts"
import { type Cited } from "../Sources.ts"
import { fromStored, toStored } from "../thread/storedOutput.ts"
import { decisionOn, requestFor } from "../thread/suspension.ts"
import type { Tool } from "../Tool.ts"
import { ToolError } from "../ToolError.ts"
import { type ToolOutput } from "../ToolOutput.ts"
import { type Call, resolve } from "./calls.ts"
import { execute } from "./execute.ts"
import { judge } from "./gate.ts"
import { isRepeatable, unknownInnerOutcome } from "./gatekeepers.ts"
import * as Inside from "./inside.ts"
import { type Attempt, countWork, type Doors, emit, type Live, note, type OpenCall, save, waitingIn } from "./live.ts"
import type { DoneOf } from "./records.ts"
import { register } from "./sources.ts"
import { resolveName } from "./toolset.ts"

const rejected = (message: string): ToolError => new ToolError({ reason: "Rejected", message })

const closed = rejected("Other tools can't be called, and nobody can be asked, before the call itself has begun.")

/** A failure that ends the run goes past the tool: its type knows of its own failures only. */
const past = <A, E>(work: Effect.Effect<A, E, unknown>): Effect.Effect<A, ToolError, unknown> =>
  Effect.catch(work, (error) => (error instanceof ToolError ? Effect.fail(error) : Effect.die(tunnel(error))))

/** The context of the whole run has what tools and middleware need: the agent's type saw to that. */
const inRun = <A, E>(work: Effect.Effect<A, E, unknown>): Effect.Effect<A, E> => work as Effect.Effect<A, E>

/** Calls another tool of the run: through the door that the model's calls go through. */
export const call: Doors["call"] = (attempt, target, args) =>
  attempt === undefined ? Effect.fail(closed) : inRun(past(Inside.working(attempt, made(attempt, target, args))))

const made = Effect.fnUntraced(function* (attempt: Attempt, target: string | Tool<unknown>, args: JsonObject) {
  const { live } = attempt
  const asked = typeof target === "string" ? target : target.name
  const name = resolveName(live.toolset, asked) ?? asked
  const place = Inside.isKept(live) ? Inside.claim(attempt, "call", name, args) : undefined
  const found = place === undefined ? undefined : yield* Effect.fromResult(Inside.find(attempt, place, "Call"))
  // The digest in a place is a key, and no proof.
  const saved = found !== undefined && canonical(found.arguments) === canonical(args) ? found : undefined
  if (saved?.outcome !== undefined) {
    if (saved.outcome._tag !== "Failed") credit(attempt.call, saved.outcome.sources)
    return yield* again(saved.outcome)
  }
  const id = saved?.id ?? Inside.freshId(attempt)
  const one = yield* resolve(
    live,
    { id, name, arguments: args },
    {
      outer: attempt.call,
      settled: new Set(saved?.settled),
      left: saved === undefined ? undefined : traces[saved.status]
    }
  )
  if (one.tool === undefined && one.left !== undefined) {
    one.outcome = { error: unknownInnerOutcome(name) }
    yield* live.run.warn(
      "tool-gone",
      `The tool "${name}" is not offered any more. An earlier run began a call of it, and its outcome is not known.`
    )
  }
  if (typeof target !== "string" && one.tool !== undefined && one.tool !== target) {
    return yield* new ToolError({
      reason: "UnknownTool",
      message: `"${name}" is not the tool of this name that the run has; give the agent the one that is called.`
    })
  }
  const kept = (status: Status, settled: ReadonlyArray<string>): Effect.Effect<void, AgentError> => {
    // Steps are kept in whatever run: a tool may be tried again.
    if (status === "done") Inside.forget(live, id)
    if (place === undefined) return Effect.void
    const { outcome } = one
    const end: Pick<DoneOf<"Call">, "outcome"> = status !== "done" || outcome === undefined
      ? {}
      : { outcome: "error" in outcome ? { _tag: "Failed", error: outcome.error } : toStored(outcome.output) }
    Inside.keep(attempt, place, { _tag: "Call", id, arguments: args, status, settled, ...end })
    // A call that waits is stored with the suspension.
    return status === "begun" || status === "done" ? save(live) : Effect.void
  }
  const { pending, settled } = one.outcome === undefined ? yield* judge(live, [one]) : nothing
  const before = saved?.settled ?? []
  if (pending.length > 0) {
    yield* kept(one.left === "unknown" ? "begun" : "asked", before)
    return yield* Inside.park(attempt, pending)
  }
  if (one.outcome === undefined) {
    // A decision on a call that must not be repeated is used up.
    const isOnce = one.tool !== undefined && !isRepeatable(one.tool)
    if (one.left === undefined) countWork(live, "toolCalls", 1)
    yield* kept("begun", isOnce ? [...before, ...settled.map((request) => request.id)] : before)
  }
  yield* execute(live, one)
  if (one.suspended !== undefined) {
    yield* kept("waiting", before)
    return yield* Inside.park(attempt, one.suspended)
  }
  // A tool that calls others has what they rest on: it is known to the run before their outputs are handed on.
  if (one.outcome !== undefined && "output" in one.outcome && one.outcome.output.sources !== undefined) {
    yield* register(live, one.outcome.output.sources, id)
    credit(attempt.call, one.outcome.output.sources)
  }
  credit(attempt.call, one.found)
  yield* kept("done", before)
  return yield* resultOf(one)
})

type Status = DoneOf<"Call">["status"]

/** The trace that an earlier run left of a call, by how far it came. */
const traces: { readonly [S in Status]: Call["left"] } = {
  asked: undefined,
  begun: "unknown",
  waiting: "waiting",
  done: undefined
}

/** Remembers what a call rests on by way of the calls that it made. */
const credit = (outer: OpenCall, sources: ReadonlyArray<Cited> = []): void => {
  if (sources.length > 0) outer.found = union(outer.found ?? [], sources)
}

const nothing = { pending: [], settled: [] }

const again = (stored: NonNullable<DoneOf<"Call">["outcome"]>): Effect.Effect<ToolOutput, ToolError> =>
  stored._tag === "Failed" ? Effect.fail(stored.error) : Effect.succeed(fromStored(stored))

const resultOf = ({ outcome }: Call): Effect.Effect<ToolOutput, ToolError> =>
  outcome === undefined
    ? Effect.die(new Error("A call ended without an outcome."))
    : "error" in outcome
      ? Effect.fail(outcome.error)
      : Effect.succeed(outcome.output)

/** Does something once: its value is kept, and given again when the tool is run again. */
export const step: Doors["step"] = (attempt, name, work, schema) =>
  // Whoever is only asked about a call does nothing that is kept.
  attempt === undefined ? work : Inside.working(attempt, done(attempt, name, work, codecOf(schema)))

const done = Effect.fnUntraced(function* <A, E, R>(
  attempt: Attempt,
  name: string,
  work: Effect.Effect<A, E, R>,
  { decode, encode }: Codec<A>
) {
  const { live } = attempt
  const place = Inside.claim(attempt, "step", name)
  const ended = <B>(effect: Effect.Effect<B, Schema.SchemaError>): Effect.Effect<B> =>
    ending(Effect.mapError(effect, (error) => invalid(live, name, error.message)))
  const saved = yield* ending(Effect.fromResult(Inside.find(attempt, place, "Step")))
  if (saved !== undefined) return yield* ended(decode(saved.value))
  const running = (attempt.steps ??= new Set<string>())
  if (running.has(name)) {
    yield* live.run.warn(
      "step-name",
      `Two steps "${cut(name, 100)}" run at once. A run that is resumed tells steps of one name apart by their order: give each its own name.`
    )
  }
  running.add(name)
  const value = yield* Effect.onExitPrimitive(work, () => {
    running.delete(name)
    return undefined
  })
  const json = yield* ending(Effect.mapError(encode(value), (error) => notStored(live, name, error.message)))
  const problem = problemOfJson(json)
  if (problem !== undefined) return yield* ending(Effect.fail(notStored(live, name, problem)))
  Inside.keep(attempt, place, { _tag: "Step", value: json })
  yield* ending(save(live))
  return value
})

/** A step whose value its schema can't write as JSON. */
const notStored = (live: Live, name: string, problem: string): AgentError =>
  new AgentError({
    agent: live.run.agent,
    reason: {
      _tag: "InvalidOutput",
      raw: "",
      problem: `the step "${cut(name, 100)}" was done, but its value can't be stored as JSON: ${cut(problem, 1_000)}. Give the step a schema that writes it, or return less`
    }
  })

const isJson = Schema.is(Json)

/** The reason that a value is no JSON; a schema such as `Schema.Any` lets everything pass. */
const problemOfJson = (value: unknown): string | undefined =>
  isJson(value)
    ? undefined
    : `${typeof value === "object" ? "it contains a value" : `a ${typeof value}`} that is no JSON`

/** A failure that ends the run, past whatever is wrapped around the step. */
const ending = <A>(effect: Effect.Effect<A, AgentError>): Effect.Effect<A> =>
  Effect.catch(effect, (error) => Effect.die(tunnel(error)))

const invalid = (live: Live, name: string, problem: string): AgentError =>
  new AgentError({ agent: live.run.agent, reason: { _tag: "InvalidState", slot: `step "${name}"`, problem } })

interface Codec<A> {
  readonly encode: (value: A) => Effect.Effect<Json, Schema.SchemaError>
  readonly decode: (json: Json) => Effect.Effect<A, Schema.SchemaError>
}

const codecs = new WeakMap<object, unknown>()

/** The codec of a schema, made once: a step may be done many times. */
const codecOf = <A, I>(schema: Schema.Codec<A, I>): Codec<A> => {
  // Only a schema of `A` has this codec.
  const known = codecs.get(schema) as Codec<A> | undefined
  if (known !== undefined) return known
  const codec = Schema.toCodecJson(schema)
  const made: Codec<A> = { encode: Schema.encodeEffect(codec), decode: Schema.decodeEffect(codec) }
  codecs.set(schema, made)
  return made
}

/** Asks a person, and waits: here, or by ending the run until there is an answer. */
export const ask: Doors["ask"] = (attempt, question) =>
  attempt === undefined ? Effect.fail(closed) : inRun(past(Inside.working(attempt, answered(attempt, question))))

const answered = Effect.fnUntraced(function* <A>(attempt: Attempt, question: Question<A>) {
  const { call: outer, live } = attempt
  const given: JsonObject = question.isApproval
    ? question.details
    : { question: question.text, ...question.details, answer: question.jsonSchema }
  const place = Inside.claim(attempt, "ask", outer.name, given)
  const saved = yield* Effect.fromResult(Inside.find(attempt, place, "Ask"))
  if (saved?.answer !== undefined) {
    return yield* Effect.mapError(question.decode(saved.answer), (problem) => rejected(misfit(problem)))
  }
  const id = saved?.id ?? Inside.freshId(attempt)
  const standing = requestFor(live.suspension, live.run.path, id, given)
  const known = standing !== undefined && !isExpired(live, standing) ? standing : undefined
  const decision = known === undefined ? undefined : decisionOn(live.suspension, known)
  if (known !== undefined && decision !== undefined) return yield* settled(attempt, place, question, known, decision)
  const request = known ?? requestOf(live, id, outer.name, question, given)
  if (live.compiled.suspends) {
    if (known === undefined) yield* announce(live, request)
    Inside.keep(attempt, place, { _tag: "Ask", id })
    return yield* Inside.park(attempt, [request])
  }
  if (live.approvals === undefined) return yield* rejected("Nobody is here to answer; do without it.")
  const { decide } = live.approvals
  for (let problem = ""; ;) {
    const asking =
      problem === "" ? request : { ...requestOf(live, id, outer.name, question, given), description: problem }
    yield* announce(live, asking)
    const came = yield* Effect.onInterrupt(waitingIn(live, outer, decide(asking)), () => withdrawn(live, asking))
    const wrong = came.id === asking.id ? yield* problemOf(question, came) : undefined
    if (wrong === undefined || problem !== "") {
      if (came.id !== asking.id) return yield* rejected("The decision that came was on another request.")
      return yield* settled(attempt, place, question, asking, came)
    }
    yield* withdrawn(live, asking)
    problem = `${visible(question.text)}\n${misfit(wrong)}`
  }
})

const misfit = (problem: string): string => `The answer does not fit:\n${problem}`

const isExpired = (live: Live, { expiresAt }: Approval.Request): boolean =>
  expiresAt !== undefined && expiresAt <= live.origin.clock.currentTimeMillisUnsafe()

const requestOf = (
  live: Live,
  id: string,
  toolName: string,
  question: Question<unknown>,
  given: JsonObject
): Approval.Request => ({
  id: live.makeId(),
  runId: live.run.runId,
  callId: id,
  path: live.run.path,
  toolName,
  arguments: given,
  // It may quote the model.
  description: visible(question.text),
  allow: question.isApproval ? ["approve", "reject"] : ["respond", "reject"],
  at: live.origin.clock.currentTimeMillisUnsafe(),
  ...(question.isApproval ? {} : { answer: question.jsonSchema })
})

const announce = (live: Live, request: Approval.Request): Effect.Effect<void> => {
  note(live, { _tag: "Request", request })
  return emit(live, { _tag: "ApprovalRequested", ...request })
}

const resolved = (live: Live, { callId, id, toolName }: Approval.Request, decision: Approval.Choice | "void") =>
  emit(live, { _tag: "ApprovalResolved", id, callId, toolName, decision })

/** Reports that a question is no longer asked: whoever asked it waits no more. */
const withdrawn = (live: Live, request: Approval.Request): Effect.Effect<void> => resolved(live, request, "void")

/** The reason that a decision is no answer to a question. */
const problemOf = (question: Question<unknown>, decision: Approval.Decision): Effect.Effect<string | undefined> =>
  decision._tag === "Respond"
    ? Effect.match(question.decode(Approval.answerOf(decision)), {
        onSuccess: () => undefined,
        onFailure: (problem) => problem
      })
    : Effect.undefined

/** The answer that a decision is, if it is one. */
const answerTo = (question: Question<unknown>, decision: Approval.Decision): Json | undefined => {
  if (decision._tag === "Respond") return question.isApproval ? undefined : Approval.answerOf(decision)
  return question.isApproval && decision._tag === "Approve" ? { always: decision.always === true } : undefined
}

/** Takes a decision for the answer. */
const settled = Effect.fnUntraced(function* <A>(
  attempt: Attempt,
  place: string,
  question: Question<A>,
  request: Approval.Request,
  decision: Approval.Decision
) {
  const { live } = attempt
  note(live, {
    _tag: "Decision",
    decision: Approval.recorded(request, decision, live.origin.clock.currentTimeMillisUnsafe())
  })
  yield* resolved(live, request, Approval.choiceOf(decision))
  const answer = answerTo(question, decision)
  if (answer === undefined) {
    const reason = decision._tag === "Reject" ? decision.reason : undefined
    const what = question.isApproval ? "This was not approved" : "The question was not answered"
    return yield* rejected(reason === undefined ? `${what}.` : `${what}: ${reason}`)
  }
  const value = yield* Effect.mapError(question.decode(answer), (problem) => rejected(misfit(problem)))
  Inside.keep(attempt, place, { _tag: "Ask", id: request.callId, answer })
  yield* save(live)
  return value
})
