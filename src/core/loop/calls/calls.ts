/** A call on its way: resolved, decoded, put into its context, answered. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { once } from "../../../support/effect/once.ts"
import type { Store } from "../../AgentState.ts"
import * as Content from "../../Content.ts"
import { fromUnknown, type JsonObject } from "../../Json.ts"
import { tool as makeAnswer, type ToolMessage } from "../../Message.ts"
import type { PreparedCall } from "../../Middleware.ts"
import type { Decoding } from "../../schema/decoding.ts"
import { neverBegun, recovery, unknownOutcome } from "../../thread/history.ts"
import type { PreparedWork, Tool } from "../../Tool.ts"
import { describeArguments, type MalformedToolCall, type ToolCall } from "../../ToolCall.ts"
import { ToolContext } from "../../ToolContext.ts"
import { ToolError } from "../../ToolError.ts"
import * as ToolOutput from "../../ToolOutput.ts"
import type { Attempt, Live, OpenCall } from "../live.ts"
import { attemptKey, type BoundAttempt } from "../records/attempts.ts"
import { emit } from "../report.ts"
import { digestOf } from "../toolset.ts"

/** A call on its way: resolved, decoded, gated, run. A call that has an `outcome` before that does not run. */
export interface Call extends OpenCall {
  readonly tool: Tool<unknown> | undefined
  /** Set for a call that has its answer without being run, and is not reported. */
  readonly wasDone?: boolean | undefined
  prepared: PreparedWork<unknown> | undefined
}

/** A call that nothing was done about in this run. */
export const untouched = (
  { id, name = "unknown" }: { readonly id: string; readonly name?: string | undefined },
  traces?: ReadonlyMap<string, OpenCall["trace"]>
): OpenCall => ({
  id,
  name,
  trace: traces?.get(id),
  started: false,
  answered: false,
  outcome: undefined,
  suspended: undefined,
  attempts: 0,
  ordinal: undefined
})

const unknownTool = (live: Live, name: string): ToolError =>
  new ToolError({
    reason: "UnknownTool",
    message:
      live.run.offered.length === 0
        ? `There is no tool "${name}", nor any other now. Answer without tools.`
        : `There is no tool "${name}" now. There are: ${live.run.offered
            .flatMap((tool) => (tool.hidden === true ? [] : [tool.name]))
            .join(", ")}.`
  })

/** True for a tool that the model was shown; to calls that the model did not make, those kept from it are open too. */
const isOffered = (live: Live, name: string, isInner: boolean): boolean =>
  live.run.offered === live.turn.tools ||
  live.run.offered.some((tool) => tool.name === name && (isInner || tool.hidden !== true))

/** Facts of a call that the model did not make. */
export type Inner = Required<Pick<OpenCall, "outer" | "settled" | "trace">>

/** Finds the tool of a call and decodes its arguments. */
export const resolve = (live: Live, { arguments: args, id, name }: ToolCall, inner?: Inner): Effect.Effect<Call> => {
  const tool = isOffered(live, name, inner !== undefined) ? live.turn.toolset.tools.get(name) : undefined
  // A literal: what begins as a copy is larger, and slower to work with.
  const call: Call = {
    id,
    name,
    trace: inner === undefined ? live.round.resumed?.traces.get(id) : inner.trace,
    started: false,
    resumes: tool?.annotations.resumable,
    answered: false,
    outcome: tool === undefined ? { error: unknownTool(live, name) } : undefined,
    suspended: undefined,
    outer: inner?.outer,
    settled: inner?.settled,
    innerSources: undefined,
    attempts: 0,
    ordinal: undefined,
    tool,
    wasDone: undefined,
    prepared: undefined
  }
  return tool === undefined ? Effect.succeed(call) : Effect.as(prepare(call, tool, args), call)
}

/** A call of a turn that is resumed, with its answer if an earlier run had one. */
export const reopened = (
  call: { readonly id: string; readonly name: string; readonly answer: ToolMessage | undefined },
  traces: ReadonlyMap<string, OpenCall["trace"]>
): OpenCall =>
  call.answer === undefined
    ? untouched(call, traces)
    : {
        ...untouched(call),
        outcome: { output: ToolOutput.make(call.answer.content, { isError: call.answer.isError }) }
      }

/** Makes a call that could not be parsed: its answer is the problem. */
export const malformed = (call: MalformedToolCall): Call => ({
  ...untouched(call),
  tool: undefined,
  prepared: undefined,
  outcome: {
    error: new ToolError({
      reason: "InvalidArguments",
      message: `This tool call could not be read: ${call.problem}. It was not executed. Call the tool again with arguments that are one valid JSON object, or answer in text.`
    })
  }
})

/** A schema of a tool may throw. That fails the call before anything of the tool has run. */
const unread = (name: string, cause: unknown): ToolError =>
  new ToolError({
    reason: "Defect",
    message: `The tool "${name}" broke down when it read the arguments, and was not executed. Call it with other arguments, or go another way.`,
    cause
  })

export const decode = (tool: Tool<unknown>, args: JsonObject): Decoding<PreparedWork<unknown>, ToolError> => {
  const begun = Result.try({ try: () => tool.prepare(args), catch: (cause) => unread(tool.name, cause) })
  if (Result.isFailure(begun)) return Result.fail(begun.failure)
  const decoding = begun.success
  return Result.isResult(decoding)
    ? decoding
    : Effect.catchDefect(decoding, (cause) => Effect.fail(unread(tool.name, cause)))
}

export const prepare = (call: Call, tool: Tool<unknown>, args: JsonObject): Effect.Effect<void> =>
  Effect.suspend(() => {
    const decoding = decode(tool, args)
    if (!Result.isResult(decoding)) return Effect.map(Effect.result(decoding), (decoded) => prepared(call, decoded))
    prepared(call, decoding)
    return Effect.void
  })

const prepared = (call: Call, decoded: Result.Result<PreparedWork<unknown>, ToolError>): void => {
  if (Result.isSuccess(decoded)) call.prepared = decoded.success
  else call.outcome = { error: decoded.failure }
}

/** The failure that the model sees when a tool had a defect. */
export const brokeDown = (name: string, cause: unknown): ToolError =>
  new ToolError({
    reason: "Defect",
    message: `The tool "${name}" broke down. Whether it had an effect is not known.`,
    cause
  })

/** The message that answers a call. One without an outcome was stopped by a failure or an interruption. */
export const answer = (live: Live, { id, trace, name, outcome, started }: OpenCall): ToolMessage => {
  const options = { id: live.makeId(), toolCallId: id, toolName: name }
  if (outcome === undefined) {
    const text = started ? interrupted : trace === undefined ? neverBegun : unknownOutcome
    return makeAnswer(text, { ...options, isError: true, source: recovery })
  }
  const output = "error" in outcome ? ToolOutput.make(outcome.error.message, { isError: true }) : outcome.output
  // The call did not run now, and an earlier run may have had an effect.
  const content =
    !started && trace !== undefined && output.isError
      ? [Content.text(`${unknownOutcome} It is not run again: `), ...output.content]
      : output.content
  return makeAnswer(content, { ...options, isError: output.isError })
}

const interrupted = "This call was interrupted. Whether it had an effect is not known."

/** A call as middleware sees it. Of a tool that can't describe it, a person is shown the arguments. */
export const toPrepared = (call: Call, tool: Tool<unknown>, prepared: PreparedWork<unknown>): PreparedCall => {
  const { annotations, describe } = tool
  return {
    id: call.id,
    name: call.name,
    arguments: prepared.arguments,
    given: once(() => prepared.given?.() ?? prepared.arguments),
    annotations,
    toolDigest: () => digestOf(tool),
    parent: call.outer?.id,
    wasBegun: call.trace !== undefined,
    describe: describe && (() => described(call.name, describe, prepared.arguments))
  }
}

const described = (name: string, describe: NonNullable<Tool["describe"]>, args: JsonObject): string =>
  Result.getOrElse(
    Result.try(() => describe(args)),
    () => `${name} ${describeArguments(args)} (the tool's own description of it failed)`
  )

/** The ways of a running tool to act by its run: other tools, people, steps. */
export interface Doors extends Pick<ToolContext["Service"], "ask" | "step" | "working" | "rehearsal"> {
  readonly call: (target: string | Tool<unknown>, args: JsonObject) => Effect.Effect<ToolOutput.ToolOutput, ToolError>
}

const closed = new ToolError({
  reason: "Rejected",
  message: "Other tools can't be called, and nobody can be asked, before the call itself has begun."
})

/** The doors before a call begins. Steps run, and nothing keeps them. */
const closedDoors: Doors = {
  call: () => Effect.fail(closed),
  ask: () => Effect.fail(closed),
  rehearsal: Effect.succeed(() => Effect.fail(closed)),
  step: (_name, work) => work,
  working: (work) => work
}

/** Provides the `ToolContext` of a call. Outside of an attempt its doors are closed. */
export const inContext = <A, E>(
  live: Live,
  call: OpenCall,
  work: Effect.Effect<A, E, unknown>,
  doors = closedDoors,
  attempt?: Attempt,
  state: Store = live.run.state
): Effect.Effect<A, E, unknown> => {
  const { id: callId, name: toolName } = call
  const context: ToolContext["Service"] & BoundAttempt = {
    [attemptKey]: attempt,
    agent: live.run.agent,
    path: live.run.path,
    runId: live.run.runId,
    threadId: live.run.threadId,
    callId,
    toolName,
    state,
    emit: (progress) =>
      Effect.suspend(() =>
        live.origin.hub.isWatched
          ? emit(live, { _tag: "ToolProgress", callId, toolName, progress: fromUnknown(progress) })
          : Effect.void
      ),
    messages: Effect.sync(() => live.run.messages.slice()),
    run: live.run,
    call: doors.call,
    ask: doors.ask,
    rehearsal: doors.rehearsal,
    step: doors.step,
    working: doors.working
  }
  return Effect.provideService(work, ToolContext, context)
}

/** Asks a tool if a call with these arguments needs a decision. */
export const needsDecision = (
  live: Live,
  call: OpenCall,
  tool: Tool<unknown>,
  prepared: PreparedWork<unknown>
): Effect.Effect<boolean, never, unknown> => {
  if (tool.needsApproval !== true) return Effect.succeed(false)
  return prepared.needsApproval === undefined ? Effect.succeed(true) : inContext(live, call, prepared.needsApproval)
}
