import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Request } from "../Approval.ts"
import { suspendedRequests, suspension } from "../internal/suspension.ts"
import { tunnel, tunnelled } from "../internal/tunnel.ts"
import { canonical, fromUnknown, type JsonObject } from "../Json.ts"
import type * as Message from "../Message.ts"
import type { PreparedCall } from "../Middleware.ts"
import type { Prepared, Tool } from "../Tool.ts"
import { isToolError, ToolError } from "../ToolError.ts"
import * as ToolOutput from "../ToolOutput.ts"
import {
  answer,
  brokeDown,
  type Call,
  decode,
  inContext,
  malformed,
  needsDecision,
  resolve,
  toPrepared,
  untouched
} from "./calls.ts"
import { gate } from "./gate.ts"
import { append, emit, type Live, type OpenCall, save } from "./live.ts"
import { register, sourcesOf, withSources } from "./sources.ts"

/** A defect of a tool is its failure, logged with its cause. Interruption and middleware's failures go by. */
const contain = <A>(name: string, effect: Effect.Effect<A, ToolError, unknown>) =>
  Effect.catchCauseIf(
    effect,
    (cause) => Cause.hasDies(cause) && !Cause.hasInterrupts(cause) && tunnelled(cause) === undefined,
    (cause) =>
      Effect.andThen(
        Effect.catchDefect(Effect.logError(`The tool "${name}" died`, cause), () =>
          Effect.logError(`The tool "${name}" died of something that can't be shown`)
        ),
        Effect.fail(brokeDown(name, Cause.squash(cause)))
      )
  )

/** A failure of which the model is shown so many characters at most. */
const shortened = (error: ToolError, limit: number): ToolError =>
  error.message.length <= limit
    ? error
    : new ToolError({ ...error, message: ToolOutput.truncateText(error.message, limit) })

const runTool = (live: Live, call: Call, tool: Tool<unknown>, prepared: Prepared<unknown>) => {
  const work = inContext(live, call, contain(call.name, prepared.execute))
  const limit = tool.outputLimit
  if (limit === undefined) return work
  return Effect.mapBoth(work, {
    onSuccess: (output) => ToolOutput.truncate(output, limit),
    onFailure: (error) => shortened(error, limit)
  })
}

const changed = new ToolError({
  reason: "Rejected",
  message: "The arguments of this call were changed after it was decided on, so it was not executed."
})

/** Runs a call with arguments that came after the gates: nobody has decided on them. */
const runChanged = (live: Live, call: Call, tool: Tool<unknown>, was: JsonObject, prepared: Prepared<unknown>) => {
  const run = runTool(live, call, tool, prepared)
  if (tool.needsApproval !== true || canonical(was) === canonical(prepared.arguments)) return run
  return Effect.flatMap(needsDecision(live, call, tool, prepared), (needed) => (needed ? Effect.fail(changed) : run))
}

type NextCall = (call: PreparedCall) => Effect.Effect<ToolOutput.ToolOutput, ToolError>

/** Every `wrapToolCall` around one call. A middleware may change the arguments (decoded again), never the tool. */
const throughMiddleware = (live: Live, call: Call, tool: Tool<unknown>, prepared: Prepared<unknown>) => {
  const { wrapToolCall } = live.compiled
  if (wrapToolCall.length === 0) return runTool(live, call, tool, prepared)
  const door: NextCall = (asked) => {
    const work =
      asked.arguments === prepared.arguments
        ? runTool(live, call, tool, prepared)
        : Effect.flatMap(decode(tool, asked.arguments), (again) =>
            runChanged(live, call, tool, prepared.arguments, again)
          )
    return work as Effect.Effect<ToolOutput.ToolOutput, ToolError>
  }
  // As with the model: an outer middleware knows of ToolError only, and needs are met by the run's context.
  const chain = wrapToolCall.reduceRight<NextCall>(
    (next, hook) => (asked) =>
      Effect.catchIf(
        hook(asked, next, live.run),
        (error) => !isToolError(error),
        (error) => Effect.die(tunnel(error))
      ) as Effect.Effect<ToolOutput.ToolOutput, ToolError>,
    door
  )
  return chain(toPrepared(call, tool, prepared))
}

/** How a call ended. */
type Outcome = NonNullable<OpenCall["outcome"]>

const textOf = (outcome: Outcome): string =>
  "error" in outcome ? outcome.error.message : ToolOutput.text(outcome.output)

/** Says how a call ended. */
const tell = (live: Live, call: Call, outcome: Outcome, since: number): Effect.Effect<void> => {
  if (!live.origin.hub.watched) return Effect.void
  const durationMillis = live.origin.clock.currentTimeMillisUnsafe() - since
  const base = { callId: call.id, toolName: call.name, text: textOf(outcome), durationMillis }
  if ("error" in outcome) return emit(live, { _tag: "ToolFailed", ...base, reason: outcome.error.reason })
  const { details, isError } = outcome.output
  const shown = details === undefined ? base : { ...base, details: fromUnknown(details) }
  return isError
    ? emit(live, { _tag: "ToolFailed", ...shown, reason: "Failed" })
    : emit(live, { _tag: "ToolCompleted", ...shown })
}

/** A tool's output, when the state has what it wants there. */
const applied = (live: Live, call: Call, output: ToolOutput.ToolOutput): Effect.Effect<Outcome, unknown, unknown> =>
  output.state.length === 0
    ? Effect.succeed({ output })
    : Effect.match(
        contain(
          call.name,
          Effect.forEach(output.state, (update) => Effect.suspend(() => update(live.run.state)), { discard: true })
        ),
        { onSuccess: () => ({ output }), onFailure: (error) => ({ error }) }
      )

/**
 * An outcome as the model is shown it: a tool without a limit of its own has the general one, since one result must not
 * fill the model's window. What is the run's answer stays whole.
 */
const bounded = (live: Live, call: Call, outcome: Outcome): Outcome => {
  if (call.tool?.outputLimit !== undefined) return outcome
  if ("error" in outcome) return { error: shortened(outcome.error, ToolOutput.defaultLimit) }
  const { output } = outcome
  return isDirect(live, output) ? outcome : { output: ToolOutput.truncate(output, ToolOutput.defaultLimit) }
}

/** Whether an output is the run's answer. */
const isDirect = (live: Live, output: ToolOutput.ToolOutput): boolean =>
  output.returnDirect && !output.isError && live.compiled.definition.output === undefined

/** A call whose sub-agent waits for a decision stays open. */
const waiting = <A>(
  call: Call,
  work: Effect.Effect<A, unknown, unknown>
): Effect.Effect<A | undefined, unknown, unknown> =>
  Effect.catchCause(work, (cause) => {
    call.suspended = suspendedRequests(tunnelled(cause)?.error)
    return call.suspended === undefined ? Effect.failCause(cause) : Effect.succeed(undefined)
  })

const execute = Effect.fnUntraced(function* (live: Live, call: Call) {
  const since = live.origin.hub.watched ? live.origin.clock.currentTimeMillisUnsafe() : 0
  const { prepared, tool } = call
  if (call.outcome === undefined && tool !== undefined && prepared !== undefined) {
    yield* emit(live, { _tag: "ToolCalled", callId: call.id, toolName: call.name, arguments: prepared.arguments })
    call.started = true
    const work = Effect.matchEffect(throughMiddleware(live, call, tool, prepared), {
      onSuccess: (output) => applied(live, call, output),
      onFailure: (error) => (isToolError(error) ? Effect.succeed({ error }) : Effect.fail(error))
    })
    call.outcome = yield* live.compiled.suspends ? waiting(call, work) : work
  }
  if (call.outcome === undefined) return
  call.outcome = bounded(live, call, call.outcome)
  if (!call.started && "error" in call.outcome && call.outcome.error.reason === "Defect") {
    yield* Effect.logError(`The arguments of the tool "${call.name}" could not be decoded`, call.outcome.error.cause)
  }
  yield* tell(live, call, call.outcome, since)
})

const numberSources = (live: Live, call: OpenCall): Effect.Effect<void> => {
  const { outcome } = call
  if (outcome === undefined || "error" in outcome || outcome.output.sources === undefined) return Effect.void
  return Effect.map(withSources(live, call.id, outcome.output), (output) => {
    call.outcome = { output }
  })
}

/** Puts the answers of a round into the history, in call order. */
export const settle = Effect.fnUntraced(function* (live: Live) {
  for (const call of live.batch) {
    if (call.answered) continue
    call.answered = true
    yield* numberSources(live, call)
    yield* append(live, answer(live, call))
  }
  live.batch = []
})

/** What a round of tools came to. */
export interface Round {
  readonly pending: ReadonlyArray<Request>
  readonly direct: ToolOutput.ToolOutput | undefined
  readonly failed: ReadonlySet<string>
  /** Calls that failed and may go better the next time. */
  readonly mayPass: ReadonlySet<string>
}

const standsStill = (pending: ReadonlyArray<Request>): Round => ({
  pending,
  direct: undefined,
  failed: new Set(),
  mayPass: new Set()
})

/** The calls of a round that run. What the run stood still for is over when the first of them begins. */
const runAll = Effect.fnUntraced(function* (live: Live, all: ReadonlyArray<Call>) {
  if (live.suspension !== null) {
    live.resumable = live.suspension.children
    yield* live.run.state.set(suspension, null)
    yield* save(live)
  }
  const [only] = all
  yield* all.length === 1 && only !== undefined
    ? execute(live, only)
    : Effect.forEach(all, (call) => execute(live, call), {
        concurrency: live.compiled.definition.toolConcurrency,
        discard: true
      })
})

/** Stays at the first call whose sub-agent waits: what is done behind it is kept for its turn. */
const suspendInside = Effect.fnUntraced(function* (
  live: Live,
  message: Message.AiMessage,
  all: ReadonlyArray<Call>,
  pending: ReadonlyArray<Request>
) {
  const first = all.findIndex((call) => call.suspended !== undefined)
  const behind = all.slice(first)
  const waiting = behind.filter((call) => call.suspended !== undefined)
  const decisions = live.suspension?.decisions ?? []
  live.batch = all.slice(0, first)
  yield* settle(live)
  const done = behind.filter((call) => call.suspended === undefined)
  for (const call of done) yield* numberSources(live, call)
  yield* live.run.state.set(suspension, {
    messageId: message.id,
    requests: [
      ...(live.suspension?.requests ?? []).filter(({ id }) => decisions.some((decision) => decision.id === id)),
      ...pending
    ],
    decisions,
    children: Object.fromEntries(waiting.map((call) => [call.id, call.children.map((child) => child())])),
    answers: done.map((call) => answer(live, call)),
    unknown: []
  })
  return standsStill(pending)
})

/**
 * Runs all calls of a turn that are not answered: every one resolved, decoded and gated before the first runs; answered
 * in call order.
 */
export const round = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage) {
  const open = new Map(live.batch.map((call) => [call.id, call]))
  const isOpen = ({ id }: { readonly id: string }) => open.has(id)
  /** Done, and told of, before this run took the turn up. */
  const done = ({ id }: { readonly id: string }): Call | undefined => {
    const call = open.get(id)
    return call?.outcome && { ...call, tool: undefined, wasDone: true, prepared: undefined }
  }
  const calls: Array<Call> = []
  for (const call of message.toolCalls) if (isOpen(call)) calls.push(done(call) ?? (yield* resolve(live, call)))
  const pending =
    live.compiled.gates.length === 0 && !live.toolset.asks && live.resumed === undefined
      ? []
      : yield* gate(live, message, calls)
  if (pending.length > 0) {
    // These stay open: whoever decides on them goes on from here.
    live.batch = []
    return standsStill(pending)
  }
  const all = [...calls, ...message.malformedToolCalls.filter(isOpen).map((call) => done(call) ?? malformed(call))]
  live.batch = all
  yield* runAll(
    live,
    all.filter((call) => call.wasDone !== true)
  )
  const inside = all.flatMap((call) => call.suspended ?? [])
  if (inside.length > 0) return yield* suspendInside(live, message, all, inside)
  live.suspension = null
  yield* settle(live)
  let direct: ToolOutput.ToolOutput | undefined
  const failed = new Set<string>()
  const mayPass = new Set<string>()
  for (const { id, outcome } of all) {
    if (outcome === undefined || "error" in outcome || outcome.output.isError) failed.add(id)
    else if (outcome.output.returnDirect) direct ??= outcome.output
    if (outcome !== undefined && "error" in outcome && outcome.error.isRetryable === true) mayPass.add(id)
  }
  return { pending, direct, failed, mayPass } satisfies Round
})

/** Adds a turn to the history. From here on its calls are owed an answer, whatever happens. */
export const appendTurn = (live: Live, message: Message.AiMessage): Effect.Effect<void> => {
  if (message.toolCalls.length + message.malformedToolCalls.length > 0) {
    live.batch = [...message.toolCalls, ...message.malformedToolCalls].map((call) => untouched(call))
  }
  const appended = append(live, message)
  const sources = sourcesOf(message)
  return sources.length === 0 ? appended : Effect.andThen(appended, register(live, sources))
}

/** Answers all calls of the last turn of which nothing is known, without running any. */
export const decline = Effect.fnUntraced(function* (live: Live, say: (call: OpenCall) => ToolOutput.ToolOutput) {
  for (const call of live.batch) call.outcome ??= { output: say(call) }
  yield* settle(live)
})
