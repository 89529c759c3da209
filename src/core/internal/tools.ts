import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { PendingCall } from "../AgentResult.ts"
import type { JsonObject } from "../Json.ts"
import * as Message from "../Message.ts"
import type { Gate, PreparedCall } from "../Middleware.ts"
import type { Prepared, Tool } from "../Tool.ts"
import type { MalformedToolCall, ToolCall } from "../ToolCall.ts"
import { ToolContext } from "../ToolContext.ts"
import { isToolError, ToolError } from "../ToolError.ts"
import * as ToolOutput from "../ToolOutput.ts"
import { append, emit, type Live, type OpenCall } from "./live.ts"
import { tunnel, tunnelled } from "./tunnel.ts"

/** A call on its way: resolved, decoded, gated, run. What has an `outcome` before it runs is not run. */
interface Call extends OpenCall {
  readonly tool: Tool<unknown> | undefined
  prepared: Prepared<unknown> | undefined
}

const unknownTool = (live: Live, name: string): ToolError =>
  new ToolError({
    reason: "UnknownTool",
    message:
      live.offered.length === 0
        ? `There is no tool "${name}", nor any other now. Answer without tools.`
        : `There is no tool "${name}" now. There are: ${live.offered.map((tool) => tool.name).join(", ")}.`
  })

const isOffered = (live: Live, name: string): boolean =>
  live.offered === live.tools || live.offered.some((tool) => tool.name === name)

const resolve = (live: Live, call: ToolCall): Call => {
  const tool = isOffered(live, call.name) ? live.compiled.tools.get(call.name) : undefined
  const resolved: Call = { id: call.id, name: call.name, tool, prepared: undefined, started: false, outcome: undefined }
  if (tool === undefined) resolved.outcome = { error: unknownTool(live, call.name) }
  else prepare(resolved, tool, call.arguments)
  return resolved
}

const malformed = (call: MalformedToolCall): Call => ({
  id: call.id,
  name: call.name ?? "unknown",
  tool: undefined,
  prepared: undefined,
  started: false,
  outcome: {
    error: new ToolError({
      reason: "InvalidArguments",
      message: `This tool call could not be read: ${call.problem}. It was not executed. Call the tool again with arguments that are one valid JSON object, or answer in text.`
    })
  }
})

/** A schema of a tool may throw; that is the tool's failure as well. */
const decode = (tool: Tool<unknown>, args: JsonObject): Result.Result<Prepared<unknown>, ToolError> =>
  Result.flatMap(
    Result.try({ try: () => tool.prepare(args), catch: (cause) => brokeDown(tool.name, cause) }),
    (prepared) => prepared
  )

const prepare = (call: Call, tool: Tool<unknown>, args: JsonObject): void => {
  const prepared = decode(tool, args)
  if (Result.isSuccess(prepared)) call.prepared = prepared.success
  else call.outcome = { error: prepared.failure }
}

const brokeDown = (name: string, cause: unknown): ToolError =>
  new ToolError({
    reason: "Defect",
    message: `The tool "${name}" broke down. Whether it had an effect is not known.`,
    cause
  })

const toPrepared = (call: Call, tool: Tool<unknown>, prepared: Prepared<unknown>): PreparedCall => ({
  id: call.id,
  name: call.name,
  arguments: prepared.arguments,
  annotations: tool.annotations
})

const forgotten: Gate = {
  _tag: "Answer",
  output: ToolOutput.make("This call was not allowed.", { isError: true })
}

const undecided = "This call needs a decision that nobody here can give, so it was not executed."

/** Asks every gate about every call that would run. Gives the calls that somebody must decide on. */
const gate = Effect.fnUntraced(function* (live: Live, calls: ReadonlyArray<Call>) {
  const pending: Array<PendingCall> = []
  const suspended = new Set<string>()
  for (const { gate: ask, suspends } of live.compiled.gates) {
    const asked: Array<{ readonly call: Call; readonly tool: Tool<unknown>; readonly prepared: PreparedCall }> = []
    for (const call of calls) {
      if (
        call.outcome === undefined &&
        !suspended.has(call.id) &&
        call.tool !== undefined &&
        call.prepared !== undefined
      ) {
        asked.push({ call, tool: call.tool, prepared: toPrepared(call, call.tool, call.prepared) })
      }
    }
    if (asked.length === 0) break
    const gates: ReadonlyArray<Gate> = yield* ask(
      live,
      asked.map((one) => one.prepared)
    )
    for (const [index, { call, prepared, tool }] of asked.entries()) {
      // A gate that forgot a call has not allowed it.
      const decision: Gate = gates[index] ?? forgotten
      switch (decision._tag) {
        case "Allow":
          break
        case "Edit":
          prepare(call, tool, decision.arguments)
          break
        case "Answer":
          call.outcome = { output: decision.output }
          break
        case "Suspend":
          if (suspends) {
            suspended.add(call.id)
            pending.push({
              callId: call.id,
              toolName: call.name,
              arguments: prepared.arguments,
              description: decision.description
            })
          } else call.outcome = { error: new ToolError({ reason: "Rejected", message: undecided }) }
          break
      }
    }
  }
  return pending
})

/** A defect of a tool is its failure, logged with its cause. Interruption and middleware's failures go by. */
const contain = (name: string, effect: Effect.Effect<ToolOutput.ToolOutput, ToolError, unknown>) =>
  Effect.catchCauseIf(
    effect,
    (cause) => Cause.hasDies(cause) && !Cause.hasInterrupts(cause) && tunnelled(cause) === undefined,
    (cause) =>
      Effect.andThen(
        Effect.logError(`The tool "${name}" died`, cause),
        Effect.fail(brokeDown(name, Cause.squash(cause)))
      )
  )

const runTool = (live: Live, call: Call, tool: Tool<unknown>, prepared: Prepared<unknown>) => {
  const { id: callId, name: toolName } = call
  const work = Effect.provideService(contain(toolName, prepared.execute), ToolContext, {
    agent: live.agent,
    path: live.path,
    runId: live.runId,
    threadId: live.threadId,
    callId,
    toolName,
    state: live.state,
    emit: (progress) => Effect.suspend(() => emit(live, { _tag: "ToolProgress", callId, toolName, progress })),
    messages: live.snapshot,
    run: live
  })
  const limit = tool.outputLimit
  return limit === undefined ? work : Effect.map(work, (output) => ToolOutput.truncate(output, limit))
}

type NextCall = (call: PreparedCall) => Effect.Effect<ToolOutput.ToolOutput, ToolError>

/** Every `wrapToolCall` around one call. A middleware may change the arguments (decoded again), never the tool. */
const throughMiddleware = (live: Live, call: Call, tool: Tool<unknown>, prepared: Prepared<unknown>) => {
  const { wrapToolCall } = live.compiled
  if (wrapToolCall.length === 0) return runTool(live, call, tool, prepared)
  const door: NextCall = (asked) => {
    const again = asked.arguments === prepared.arguments ? Result.succeed(prepared) : decode(tool, asked.arguments)
    return (
      Result.isSuccess(again) ? runTool(live, call, tool, again.success) : Effect.fail(again.failure)
    ) as Effect.Effect<ToolOutput.ToolOutput, ToolError>
  }
  // As with the model: an outer middleware knows of ToolError only, and needs are met by the run's context.
  const chain = wrapToolCall.reduceRight<NextCall>(
    (next, hook) => (asked) =>
      Effect.catchIf(
        hook(asked, next, live),
        (error) => !isToolError(error),
        (error) => Effect.die(tunnel(error))
      ) as Effect.Effect<ToolOutput.ToolOutput, ToolError>,
    door
  )
  return chain(toPrepared(call, tool, prepared))
}

const textOf = (outcome: NonNullable<OpenCall["outcome"]>): string =>
  "error" in outcome ? outcome.error.message : ToolOutput.text(outcome.output)

/** Says how a call ended. */
const tell = (
  live: Live,
  call: Call,
  outcome: NonNullable<OpenCall["outcome"]>,
  since: number
): Effect.Effect<void> => {
  if (!live.hub.watched) return Effect.void
  const durationMillis = live.clock.currentTimeMillisUnsafe() - since
  const base = { callId: call.id, toolName: call.name, text: textOf(outcome), durationMillis }
  if ("error" in outcome) return emit(live, { _tag: "ToolFailed", ...base, reason: outcome.error.reason })
  if (outcome.output.isError) return emit(live, { _tag: "ToolFailed", ...base, reason: "Failed" })
  const { details } = outcome.output
  return emit(live, { _tag: "ToolCompleted", ...base, ...(details === undefined ? {} : { details }) })
}

/** A tool's output, when the state has what it wants there. */
const applied = (
  live: Live,
  output: ToolOutput.ToolOutput
): Effect.Effect<{ readonly output: ToolOutput.ToolOutput }> =>
  output.state.length === 0
    ? Effect.succeed({ output })
    : Effect.as(
        Effect.forEach(output.state, (update) => update(live.state), { discard: true }),
        { output }
      )

const execute = Effect.fnUntraced(function* (live: Live, call: Call) {
  const since = live.hub.watched ? live.clock.currentTimeMillisUnsafe() : 0
  const { prepared, tool } = call
  if (call.outcome === undefined && tool !== undefined && prepared !== undefined) {
    yield* emit(live, { _tag: "ToolCalled", callId: call.id, toolName: call.name, arguments: prepared.arguments })
    call.started = true
    call.outcome = yield* Effect.matchEffect(throughMiddleware(live, call, tool, prepared), {
      onSuccess: (output) => applied(live, output),
      onFailure: (error) => (isToolError(error) ? Effect.succeed({ error }) : Effect.fail(error))
    })
  }
  if (call.outcome === undefined) return
  if (!call.started && "error" in call.outcome && call.outcome.error.reason === "Defect") {
    yield* Effect.logError(`The arguments of the tool "${call.name}" could not be decoded`, call.outcome.error.cause)
  }
  yield* tell(live, call, call.outcome, since)
})

/** The message that answers a call. A call without an outcome is one that a failure or an interruption stopped. */
const answer = (live: Live, call: OpenCall): Message.ToolMessage => {
  const { outcome } = call
  const options = { id: live.makeId(), toolCallId: call.id, toolName: call.name }
  if (outcome === undefined) {
    return Message.tool(
      call.started
        ? "This call was interrupted. Whether it had an effect is not known."
        : "This call was not executed: the run ended before it.",
      { ...options, isError: true }
    )
  }
  return "error" in outcome
    ? Message.tool(outcome.error.message, { ...options, isError: true })
    : Message.tool(outcome.output.content, { ...options, isError: outcome.output.isError })
}

/** Puts the answers of a round into the history, in call order. */
export const settle = Effect.fnUntraced(function* (live: Live) {
  while (live.batch.length > 0) {
    const [first] = live.batch
    live.batch = live.batch.slice(1)
    if (first !== undefined) yield* append(live, answer(live, first))
  }
})

/** What a round of tools came to. */
export interface Round {
  readonly pending: ReadonlyArray<PendingCall>
  readonly direct: ToolOutput.ToolOutput | undefined
  readonly failed: ReadonlySet<string>
}

/** Runs all calls of a turn: every one resolved, decoded and gated before the first runs; answered in call order. */
export const round = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage) {
  const calls = message.toolCalls.map((call) => resolve(live, call))
  const pending = live.compiled.gates.length === 0 ? [] : yield* gate(live, calls)
  const all = [...calls, ...message.malformedToolCalls.map(malformed)]
  if (pending.length > 0) {
    // These stay open: whoever decides on them goes on from here.
    live.batch = []
    for (const one of pending) {
      const { arguments: args, callId, description, toolName } = one
      yield* emit(live, { _tag: "ApprovalRequested", callId, toolName, arguments: args, description })
    }
    return { pending, direct: undefined, failed: new Set<string>() } satisfies Round
  }
  live.batch = all
  const [only] = all
  yield* all.length === 1 && only !== undefined
    ? execute(live, only)
    : Effect.forEach(all, (call) => execute(live, call), {
        concurrency: live.compiled.definition.toolConcurrency,
        discard: true
      })
  yield* settle(live)
  let direct: ToolOutput.ToolOutput | undefined
  const failed = new Set<string>()
  for (const { id, outcome } of all) {
    if (outcome === undefined || "error" in outcome || outcome.output.isError) failed.add(id)
    else if (outcome.output.returnDirect) direct ??= outcome.output
  }
  return { pending, direct, failed } satisfies Round
})

/** A call that nothing was done about yet. */
const untouched = (call: { readonly id: string; readonly name?: string }): OpenCall => ({
  id: call.id,
  name: call.name ?? "unknown",
  started: false,
  outcome: undefined
})

/** Adds a turn to the history. From here on its calls are owed an answer, whatever happens. */
export const appendTurn = (live: Live, message: Message.AiMessage): Effect.Effect<void> => {
  if (message.toolCalls.length + message.malformedToolCalls.length > 0) {
    live.batch = [...message.toolCalls, ...message.malformedToolCalls].map(untouched)
  }
  return append(live, message)
}

/** Answers all calls of the last turn without running any. */
export const decline = Effect.fnUntraced(function* (
  live: Live,
  say: (call: OpenCall) => { readonly text: string; readonly isError: boolean }
) {
  for (const call of live.batch) {
    const { isError, text } = say(call)
    call.outcome = { output: ToolOutput.make(text, { isError }) }
  }
  yield* settle(live)
})
