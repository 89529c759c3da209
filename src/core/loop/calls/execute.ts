/**
 * Runs one call, from the first middleware to its outcome. Read it from top to bottom: the call, its middleware, one
 * attempt at its tool, the doors of the running tool, and the outcome.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { tunnel, tunnelled } from "../../../support/effect/tunnel.ts"
import { cut } from "../../../support/text/text.ts"
import { Backend } from "../../Backend.ts"
import * as Content from "../../Content.ts"
import { fromUnknown, type JsonObject } from "../../Json.ts"
import type { PreparedCall } from "../../Middleware.ts"
import { toEffect } from "../../schema/decoding.ts"
import { canonical } from "../../schema/jsonTree.ts"
import { suspended, suspendedRequests } from "../../thread/suspension.ts"
import type { PreparedWork, Tool } from "../../Tool.ts"
import { isToolError, ToolError } from "../../ToolError.ts"
import * as ToolOutput from "../../ToolOutput.ts"
import type { Attempt, Live, OpenCall } from "../live.ts"
import { countActive } from "../records/attempts.ts"
import * as Inside from "../records/inside.ts"
import { codecOf, runStep } from "../records/steps.ts"
import { emit } from "../report.ts"
import { brokeDown, type Call, decode, type Doors, inContext, needsDecision, toPrepared } from "./calls.ts"
import { callTool } from "./innerCalls.ts"
import { askQuestion } from "./questions.ts"
import { beginRehearsal, type RunReading } from "./rehearse.ts"

type Outcome = NonNullable<OpenCall["outcome"]>

type Work = Effect.Effect<ToolOutput.ToolOutput, ToolError, unknown>

/** Runs a call that has no outcome yet, and reports its outcome. */
export const execute = Effect.fnUntraced(function* (live: Live, call: Call) {
  const since = live.origin.hub.isWatched ? live.origin.clock.currentTimeMillisUnsafe() : 0
  const { prepared, tool } = call
  if (call.outcome === undefined && tool !== undefined && prepared !== undefined) {
    yield* emit(live, { _tag: "ToolCalled", ...namesOf(call), arguments: prepared.arguments })
    call.started = true
    const work = Effect.matchEffect(runMiddleware(live, call, tool, prepared), {
      onSuccess: (output) => applyState(live, call, output),
      onFailure: (error) => (isToolError(error) ? Effect.succeed({ error }) : Effect.fail(error))
    })
    call.outcome = yield* live.compiled.suspends ? leaveOpenIfSuspended(call, work) : work
  }
  if (call.outcome === undefined) return
  // The output of an inner call stays whole: a tool reads it.
  if (call.outer === undefined) call.outcome = boundOutcome(live, call, call.outcome)
  if (!call.started && "error" in call.outcome && call.outcome.error.reason === "Defect") {
    yield* Effect.logError(`The arguments of the tool "${call.name}" could not be decoded`, call.outcome.error.cause)
  }
  yield* reportOutcome(live, call, call.outcome, since)
})

/** Leaves a call without an outcome when something inside it waits for a decision. */
export const leaveOpenIfSuspended = <A>(
  call: OpenCall,
  work: Effect.Effect<A, unknown, unknown>
): Effect.Effect<A | undefined, unknown, unknown> =>
  Effect.catchCause(work, (cause) => {
    call.suspended = suspendedRequests(tunnelled(cause)?.error)
    return call.suspended === undefined ? Effect.failCause(cause) : Effect.succeed(undefined)
  })

// ---- Middleware

type NextCall = (call: PreparedCall) => Effect.Effect<ToolOutput.ToolOutput, ToolError>

/** Runs every `wrapToolCall` around a call. Middleware may change the arguments (decoded again), never the tool. */
const runMiddleware = (
  live: Live,
  call: Call,
  tool: Tool<unknown>,
  prepared: PreparedWork<unknown>,
  run: typeof runTool = runTool
) => {
  const { wrapToolCall } = live.compiled
  if (wrapToolCall.length === 0) return run(live, call, tool, prepared)
  const runInner: NextCall = (changedCall) => {
    const work =
      changedCall.arguments === prepared.arguments
        ? run(live, call, tool, prepared)
        : Effect.flatMap(toEffect(decode(tool, changedCall.arguments)), (changed) =>
            runChanged(live, call, tool, prepared.arguments, changed, run)
          )
    return work as Effect.Effect<ToolOutput.ToolOutput, ToolError>
  }
  const runFrom = (index: number, changedCall: PreparedCall): Effect.Effect<ToolOutput.ToolOutput, ToolError> => {
    const hook = wrapToolCall[index]
    if (hook === undefined) return runInner(changedCall)
    // The needs of a middleware are met by the run's context.
    return Effect.catchCause(
      hook(changedCall, (inner) => runFrom(index + 1, inner), live.run),
      hideOwnFailures
    ) as Effect.Effect<ToolOutput.ToolOutput, ToolError>
  }
  return runFrom(0, toPrepared(call, tool, prepared))
}

/** Outer middleware sees `ToolError` only: other failures pass it as defects. */
const hideOwnFailures = (cause: Cause.Cause<unknown>): Effect.Effect<never, unknown> =>
  Effect.catchIf(
    Effect.failCause(cause),
    (error) => !isToolError(error),
    (error) => Effect.die(tunnel(error))
  )

const changedTooLate = new ToolError({
  reason: "Rejected",
  message: "The arguments of this call were changed after it was decided on, so it was not executed."
})

/** Runs a call whose arguments a middleware changed after the gates: nobody has decided on them. */
const runChanged = (
  live: Live,
  call: Call,
  tool: Tool<unknown>,
  before: JsonObject,
  prepared: PreparedWork<unknown>,
  run: typeof runTool
) => {
  const work = run(live, call, tool, prepared)
  if (tool.needsApproval !== true || canonical(before) === canonical(prepared.arguments)) return work
  return Effect.flatMap(needsDecision(live, call, tool, prepared), (isNeeded) =>
    isNeeded ? Effect.fail(changedTooLate) : work
  )
}

// ---- One attempt

const runTool = (live: Live, call: Call, tool: Tool<unknown>, prepared: PreparedWork<unknown>): Work => {
  const addNote = call.trace === undefined ? undefined : addUnusedWork
  const work = runAttempt(live, call, containDefects(call.name, prepared.execute), addNote)
  const limit = call.outer === undefined ? tool.outputLimit : undefined
  if (limit === undefined) return work
  return Effect.mapBoth(work, {
    onSuccess: (output) => ToolOutput.truncate(output, limit),
    onFailure: (error) => shortenError(error, limit)
  })
}

/**
 * Runs one attempt at a call. In a run that can be suspended, the attempt ends as soon as everything in it waits for
 * decisions, even if the tool ignores its interruption.
 */
export const runAttempt = <A, E>(
  live: Live,
  call: OpenCall,
  work: Effect.Effect<A, E, unknown>,
  wrap?: (attempt: Attempt, work: Effect.Effect<A, E, unknown>) => Effect.Effect<A, E, unknown>
): Effect.Effect<A, E, unknown> =>
  Effect.suspend(() => {
    const attempt = Inside.begin(live, call)
    const trackedWork = Effect.onExitPrimitive(inContext(live, call, work, openDoors(attempt), attempt), (exit) => {
      attempt.isOver = true
      return live.records.inside !== undefined && exit._tag === "Success" ? warnOfDrift(attempt) : undefined
    })
    const whole = wrap === undefined ? trackedWork : wrap(attempt, trackedWork)
    return live.compiled.suspends ? Effect.raceFirst(whole, awaitStillness(attempt)) : whole
  })

/** Fails with `suspended` when everything in an attempt waits. */
const awaitStillness = (attempt: Attempt): Effect.Effect<never> =>
  Effect.callback<never>((resume) => {
    // No function literal as a property: V8 allocates it in old space, which keeps all it sees until a full collection.
    const onStill: Attempt["onStill"] = (requests) => resume(Effect.die(tunnel(suspended(requests))))
    attempt.onStill = onStill
  })

/** Says what a tool died of. The types ask for the services of tools, but Node runs code without checking them. */
const deathOf = (name: string, cause: Cause.Cause<unknown>): string => {
  const defect = Cause.squash(cause)
  const [, service] = (defect instanceof Error && /^Service not found: (\S+)/.exec(defect.message)) || []
  if (service === undefined) return `The tool "${name}" died`
  const example = service === Backend.key ? ", such as MemoryBackend.layer() of effect-deepagents/backends" : ""
  return `The tool "${name}" needs the service ${service}, which nobody provides: provide its layer to the run${example}`
}

/** Turns a defect of a tool into its failure, and logs the cause. Interruption and failures of middleware pass. */
const containDefects = <A>(name: string, effect: Effect.Effect<A, ToolError, unknown>) =>
  Effect.catchCauseIf(
    effect,
    (cause) => Cause.hasDies(cause) && !Cause.hasInterrupts(cause) && tunnelled(cause) === undefined,
    (cause) =>
      Effect.andThen(
        // A defect may throw when it is looked at.
        Effect.catchDefect(
          Effect.suspend(() => Effect.logError(deathOf(name, cause), cause)),
          () => Effect.logError(`The tool "${name}" died of something that can't be shown`)
        ),
        Effect.fail(brokeDown(name, Cause.squash(cause)))
      )
  )

/**
 * Warns when an attempt did not repeat the work of an earlier run: the call is another one by now. A program that keeps
 * its records has another input, and drops that work.
 */
const warnOfDrift = (attempt: Attempt): Effect.Effect<void> | undefined => {
  const unusedPlaces = Inside.leftOver(attempt)
  if (unusedPlaces.length === 0) return undefined
  const { call, live } = attempt
  if (call.outer === undefined && live.compiled.definition.program?.keeps === true) {
    Inside.forgetPlaces(attempt, unusedPlaces)
    const what =
      unusedPlaces.length === 1
        ? "A result of an earlier input was"
        : `${unusedPlaces.length} results of earlier inputs were`
    return live.run.warn("records-unused", `${what} not asked for by this input, and dropped.`)
  }
  const places = unusedPlaces.slice(0, 5).map((place) => cut(place.replace(/:[0-9a-f]{32}#/, "#"), 80))
  const more = unusedPlaces.length > places.length ? " …" : ""
  return live.run.warn(
    "replay-drift",
    `"${call.name}" ran again, and left out earlier requests: ${places.join(", ")}${more}. Its code has changed, or it depends on the time, on chance, or on data that is not recorded.`
  )
}

/** The most inner calls listed in a note about unused work. */
const unusedLimit = 20

const noteUnusedWork = (attempt: Attempt): string => {
  const unusedWork = Inside.leftAlone(attempt)
  if (unusedWork.length === 0) return ""
  const lines = unusedWork
    .slice(0, unusedLimit)
    .map(({ name, outcome }) =>
      outcome === undefined
        ? `- "${name}" was begun. Whether it took effect is not known: look before you repeat it.`
        : `- "${name}" was done. Its result: ${cut(outcome, 1_000)}`
    )
  const more = unusedWork.length > lines.length ? [`- and ${unusedWork.length - lines.length} more`] : []
  return ["An earlier run of this call did this, and does not use it now:", ...lines, ...more, ""].join("\n")
}

/** Lists unused work of an earlier run for the model. */
const addUnusedWork = (attempt: Attempt, work: Work): Work =>
  Effect.mapBoth(work, {
    onSuccess: (output): ToolOutput.ToolOutput => {
      const text = noteUnusedWork(attempt)
      return text === "" ? output : { ...output, content: [Content.text(text), ...output.content] }
    },
    onFailure: (error) => {
      const text = noteUnusedWork(attempt)
      return text === "" ? error : new ToolError({ ...error, message: text + error.message })
    }
  })

// ---- Rehearsals

/** Runs a call that only reads: through its middleware, with events, and without records. */
const readInRehearsal: RunReading = Effect.fnUntraced(function* (live, call, inRehearsal) {
  const since = live.origin.hub.isWatched ? live.origin.clock.currentTimeMillisUnsafe() : 0
  const { prepared, tool } = call
  if (tool === undefined || prepared === undefined) return
  yield* emit(live, { _tag: "ToolCalled", ...namesOf(call), arguments: prepared.arguments })
  call.started = true
  const work = runMiddleware(live, call, tool, prepared, (_live, _call, _tool, changed) =>
    inRehearsal(containDefects(call.name, changed.execute))
  )
  call.outcome = yield* Effect.matchEffect(work, {
    onSuccess: (output) => Effect.succeed<Outcome>({ output }),
    onFailure: (error) => (isToolError(error) ? Effect.succeed<Outcome>({ error }) : Effect.fail(error))
  })
  yield* reportOutcome(live, call, call.outcome, since)
})

// ---- The doors of a running tool

const openDoors = (attempt: Attempt): Doors => ({
  call: (target, args) => throughDoor(attempt, callTool(attempt, target, args, execute)),
  ask: (question) => throughDoor(attempt, askQuestion(attempt, question)),
  rehearsal: Effect.sync(() => {
    const rehearse = beginRehearsal(attempt, readInRehearsal)
    return (name, args) => throughDoor(attempt, rehearse(name, args))
  }),
  step: (name, work, schema) => countActive(attempt, runStep(attempt, name, work, codecOf(schema))),
  working: (work) => countActive(attempt, work)
})

/** Runs work of an attempt. A failure that ends the run passes the tool as a defect: the tool knows `ToolError` only. */
const throughDoor = <A>(attempt: Attempt, work: Effect.Effect<A, unknown, unknown>): Effect.Effect<A, ToolError> =>
  // The needs of tools and middleware are met by the run's context: the agent's type saw to that.
  Effect.catch(countActive(attempt, work), (error) =>
    isToolError(error) ? Effect.fail(error) : Effect.die(tunnel(error))
  ) as Effect.Effect<A, ToolError>

// ---- The outcome

const applyState = (live: Live, call: Call, output: ToolOutput.ToolOutput): Effect.Effect<Outcome, unknown, unknown> =>
  output.state.length === 0
    ? Effect.succeed({ output })
    : Effect.match(
        containDefects(
          call.name,
          Effect.forEach(output.state, (update) => Effect.suspend(() => update(live.run.state)), { discard: true })
        ),
        { onSuccess: () => ({ output }), onFailure: (error) => ({ error }) }
      )

/** Cuts an outcome without a limit of its own: one result must not fill the model's window. An answer stays whole. */
const boundOutcome = (live: Live, call: Call, outcome: Outcome): Outcome => {
  if (call.tool?.outputLimit !== undefined) return outcome
  if ("error" in outcome) return { error: shortenError(outcome.error, ToolOutput.defaultLimit) }
  const { output } = outcome
  return isAnswer(live, output) ? outcome : { output: ToolOutput.truncate(output, ToolOutput.defaultLimit) }
}

const isAnswer = (live: Live, output: ToolOutput.ToolOutput): boolean =>
  output.returnDirect && !output.isError && live.compiled.definition.output === undefined

const shortenError = (error: ToolError, limit: number): ToolError =>
  error.message.length <= limit
    ? error
    : new ToolError({ ...error, message: ToolOutput.truncateText(error.message, limit) })

const namesOf = ({ id, name, outer }: Call) =>
  outer === undefined ? { callId: id, toolName: name } : { callId: id, toolName: name, parent: outer.id }

const reportOutcome = (live: Live, call: Call, outcome: Outcome, since: number): Effect.Effect<void> => {
  if (!live.origin.hub.isWatched) return Effect.void
  const durationMillis = live.origin.clock.currentTimeMillisUnsafe() - since
  const text = "error" in outcome ? outcome.error.message : ToolOutput.text(outcome.output)
  const base = { ...namesOf(call), text, durationMillis }
  if ("error" in outcome) return emit(live, { _tag: "ToolFailed", ...base, reason: outcome.error.reason })
  const { details, isError } = outcome.output
  const fields = details === undefined ? base : { ...base, details: fromUnknown(details) }
  return isError
    ? emit(live, { _tag: "ToolFailed", ...fields, reason: "Failed" })
    : emit(live, { _tag: "ToolCompleted", ...fields })
}
