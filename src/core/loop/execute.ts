/** Runs one call: through every middleware, with the tool's failures and defects as outcomes. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { tunnel, tunnelled } from "../../support/effect/tunnel.ts"
import { cut } from "../../support/text/text.ts"
import * as Content from "../Content.ts"
import { fromUnknown, type JsonObject } from "../Json.ts"
import type { PreparedCall } from "../Middleware.ts"
import { toEffect } from "../schema/decoding.ts"
import { canonical } from "../schema/jsonTree.ts"
import { suspended, suspendedRequests } from "../thread/suspension.ts"
import type { Prepared, Tool } from "../Tool.ts"
import { isToolError, ToolError } from "../ToolError.ts"
import * as ToolOutput from "../ToolOutput.ts"
import { brokeDown, type Call, decode, inContext, needsDecision, toPrepared } from "./calls.ts"
import { begin, leftAlone, leftOver } from "./inside.ts"
import { type Attempt, emit, type Live, type OpenCall } from "./live.ts"

/** Runs a call that has no outcome yet, and reports how it ended. */
export const execute = Effect.fnUntraced(function* (live: Live, call: Call) {
  const since = live.origin.hub.watched ? live.origin.clock.currentTimeMillisUnsafe() : 0
  const { prepared, tool } = call
  if (call.outcome === undefined && tool !== undefined && prepared !== undefined) {
    yield* emit(live, { _tag: "ToolCalled", ...named(call), arguments: prepared.arguments })
    call.started = true
    const work = Effect.matchEffect(throughMiddleware(live, call, tool, prepared), {
      onSuccess: (output) => applied(live, call, output),
      onFailure: (error) => (isToolError(error) ? Effect.succeed({ error }) : Effect.fail(error))
    })
    call.outcome = yield* live.compiled.suspends ? waiting(call, work) : work
  }
  if (call.outcome === undefined) return
  // An output that goes to a tool stays whole.
  if (call.outer === undefined) call.outcome = bounded(live, call, call.outcome)
  if (!call.started && "error" in call.outcome && call.outcome.error.reason === "Defect") {
    yield* Effect.logError(`The arguments of the tool "${call.name}" could not be decoded`, call.outcome.error.cause)
  }
  yield* tell(live, call, call.outcome, since)
})

/** A call, as its events name it. */
const named = ({ id, name, outer }: Call) =>
  outer === undefined ? { callId: id, toolName: name } : { callId: id, toolName: name, parent: outer.id }

/** Leaves a call open in which something waits for a decision. */
export const waiting = <A>(
  call: OpenCall,
  work: Effect.Effect<A, unknown, unknown>
): Effect.Effect<A | undefined, unknown, unknown> =>
  Effect.catchCause(work, (cause) => {
    call.suspended = suspendedRequests(tunnelled(cause)?.error)
    return call.suspended === undefined ? Effect.failCause(cause) : Effect.succeed(undefined)
  })

type NextCall = (call: PreparedCall) => Effect.Effect<ToolOutput.ToolOutput, ToolError>

/** Every `wrapToolCall` around one call. A middleware may change the arguments (decoded again), never the tool. */
const throughMiddleware = (live: Live, call: Call, tool: Tool<unknown>, prepared: Prepared<unknown>) => {
  const { wrapToolCall } = live.compiled
  if (wrapToolCall.length === 0) return runTool(live, call, tool, prepared)
  const door: NextCall = (asked) => {
    const work =
      asked.arguments === prepared.arguments
        ? runTool(live, call, tool, prepared)
        : Effect.flatMap(toEffect(decode(tool, asked.arguments)), (again) =>
            runChanged(live, call, tool, prepared.arguments, again)
          )
    return work as Effect.Effect<ToolOutput.ToolOutput, ToolError>
  }
  const through = (index: number, asked: PreparedCall): Effect.Effect<ToolOutput.ToolOutput, ToolError> => {
    const hook = wrapToolCall[index]
    if (hook === undefined) return door(asked)
    // The needs of a middleware are met by the run's context.
    return Effect.catchCause(
      hook(asked, (inner) => through(index + 1, inner), live.run),
      known
    ) as Effect.Effect<ToolOutput.ToolOutput, ToolError>
  }
  return through(0, toPrepared(call, tool, prepared))
}

/** As with the model: an outer middleware knows of ToolError only. */
const known = (cause: Cause.Cause<unknown>): Effect.Effect<never, unknown> =>
  Effect.catchIf(
    Effect.failCause(cause),
    (error) => !isToolError(error),
    (error) => Effect.die(tunnel(error))
  )

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

/** A failure, cut for the model after so many characters. */
const shortened = (error: ToolError, limit: number): ToolError =>
  error.message.length <= limit
    ? error
    : new ToolError({ ...error, message: ToolOutput.truncateText(error.message, limit) })

/**
 * Runs one attempt at a call. Where the run can be suspended, the attempt ends when everything in it waits, whatever the
 * tool makes of its interruption: past everything wrapped around it goes what it waits for.
 */
export const attempted = <A, E>(
  live: Live,
  call: OpenCall,
  work: Effect.Effect<A, E, unknown>,
  told?: (attempt: Attempt, done: Effect.Effect<A, E, unknown>) => Effect.Effect<A, E, unknown>
): Effect.Effect<A, E, unknown> =>
  Effect.suspend(() => {
    const attempt = begin(live, call)
    const done = Effect.onExitPrimitive(inContext(live, call, work, attempt), (exit) => {
      attempt.over = true
      return live.inside !== undefined && exit._tag === "Success" ? drifted(attempt) : undefined
    })
    const whole = told === undefined ? done : told(attempt, done)
    return live.compiled.suspends ? Effect.raceFirst(whole, untilStill(attempt)) : whole
  })

/** Warns of what an earlier run did in a call, and this one did not ask for: the call is another one by now. */
const drifted = (attempt: Attempt): Effect.Effect<void> | undefined => {
  const left = leftOver(attempt)
  if (left.length === 0) return undefined
  const { call, live } = attempt
  const named = left.slice(0, 5).map((place) => cut(place.replace(/:[0-9a-f]{32}#/, "#"), 80))
  const more = left.length > named.length ? " …" : ""
  return live.run.warn(
    "replay-drift",
    `"${call.name}" was run again, and did not do again what it had done before: ${named.join(", ")}${more}. Its code has changed, or what it does depends on the time, on chance, or on what is not recorded.`
  )
}

/** The number of inner calls that the model is told of. */
const maxLeftAlone = 20

/** The outcome of a call that an earlier run had begun, with what that run did in it and this one knows nothing of. */
const whole = (attempt: Attempt, work: Effect.Effect<ToolOutput.ToolOutput, ToolError, unknown>) => {
  const note = (): string => {
    const left = leftAlone(attempt)
    if (left.length === 0) return ""
    const shown = left
      .slice(0, maxLeftAlone)
      .map(({ name, outcome }) =>
        outcome === undefined
          ? `- "${name}" was begun. Whether it took effect is not known: look before you repeat it.`
          : `- "${name}" was done. Its result: ${cut(outcome, 1_000)}`
      )
    const more = left.length > shown.length ? [`- and ${left.length - shown.length} more`] : []
    return ["An earlier run of this call did this, and does not use it now:", ...shown, ...more, ""].join("\n")
  }
  return Effect.mapBoth(work, {
    onSuccess: (output): ToolOutput.ToolOutput => {
      const text = note()
      return text === "" ? output : { ...output, content: [Content.text(text), ...output.content] }
    },
    onFailure: (error) => {
      const text = note()
      return text === "" ? error : new ToolError({ ...error, message: text + error.message })
    }
  })
}

/** Ends when everything in an attempt waits. */
const untilStill = (attempt: Attempt): Effect.Effect<never> =>
  Effect.callback<never>((resume) => {
    // No function literal as the value of a property: V8 makes it an old one, which holds all it sees until a full collection.
    const onStill: Attempt["onStill"] = (requests) => resume(Effect.die(tunnel(suspended(requests))))
    attempt.onStill = onStill
  })

const runTool = (live: Live, call: Call, tool: Tool<unknown>, prepared: Prepared<unknown>) => {
  const told = call.left === undefined ? undefined : whole
  const work = attempted(live, call, contain(call.name, prepared.execute), told)
  const limit = call.outer === undefined ? tool.outputLimit : undefined
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

/** Runs a call with arguments that a middleware gave it after the gates: nobody has decided on them. */
const runChanged = (live: Live, call: Call, tool: Tool<unknown>, was: JsonObject, prepared: Prepared<unknown>) => {
  const run = runTool(live, call, tool, prepared)
  if (tool.needsApproval !== true || canonical(was) === canonical(prepared.arguments)) return run
  return Effect.flatMap(needsDecision(live, call, tool, prepared), (needed) => (needed ? Effect.fail(changed) : run))
}

/** The end of a call. */
type Outcome = NonNullable<OpenCall["outcome"]>

const textOf = (outcome: Outcome): string =>
  "error" in outcome ? outcome.error.message : ToolOutput.text(outcome.output)

/** Reports how a call ended. */
const tell = (live: Live, call: Call, outcome: Outcome, since: number): Effect.Effect<void> => {
  if (!live.origin.hub.watched) return Effect.void
  const durationMillis = live.origin.clock.currentTimeMillisUnsafe() - since
  const base = { ...named(call), text: textOf(outcome), durationMillis }
  if ("error" in outcome) return emit(live, { _tag: "ToolFailed", ...base, reason: outcome.error.reason })
  const { details, isError } = outcome.output
  const shown = details === undefined ? base : { ...base, details: fromUnknown(details) }
  return isError
    ? emit(live, { _tag: "ToolFailed", ...shown, reason: "Failed" })
    : emit(live, { _tag: "ToolCompleted", ...shown })
}

/** A tool's output, once its updates of the state are made. */
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

/** True for an output that is the run's answer. */
const isDirect = (live: Live, output: ToolOutput.ToolOutput): boolean =>
  output.returnDirect && !output.isError && live.compiled.definition.output === undefined
