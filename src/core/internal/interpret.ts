import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { Input, RunOptions } from "../Agent.ts"
import { AgentError, type Reason } from "../AgentError.ts"
import type { AgentResult } from "../AgentResult.ts"
import * as AgentState from "../AgentState.ts"
import { Approvals, type Decision } from "../Approval.ts"
import { ChatModel, open as openSession } from "../ChatModel.ts"
import type { Resume } from "../Checkpoint.ts"
import { IdGenerator } from "../IdGenerator.ts"
import type { Json } from "../Json.ts"
import * as Message from "../Message.ts"
import { MessageLog } from "../MessageLog.ts"
import type { Directive } from "../Middleware.ts"
import { CurrentRun } from "../Run.ts"
import { type Usage, zero } from "../Usage.ts"
import { untouched } from "./calls.ts"
import type { Compiled } from "./definition.ts"
import { mend, reopen } from "./history.ts"
import type { Hub } from "./hub.ts"
import { append, type Control, emit, flushLog, type Live, type Origin } from "./live.ts"
import { type Ending, loop } from "./loop.ts"
import { withAnswerTool } from "./output.ts"
import * as Store from "./store.ts"
import { decide, type Suspension, suspension } from "./suspension.ts"
import * as Tools from "./tools.ts"
import { surface } from "./tunnel.ts"
import { call, makeNextTurn, partialMessage } from "./turn.ts"

/** Where a run stands: who watches it, who steers it, what is above it. */
export interface Place {
  readonly runId: string
  readonly hub: Hub
  readonly control: Control | undefined
  readonly parent: Live | undefined
  /** Told of the run as soon as it exists. */
  readonly onLive?: (live: Live) => void
}

const invalid = (compiled: Compiled, reason: Reason): AgentError =>
  new AgentError({ agent: compiled.definition.name, reason })

const isResume = (input: Input): input is Resume => typeof input === "object" && "_tag" in input

const toMessages = (input: Exclude<Input, Resume>): ReadonlyArray<Message.Message> => {
  if (typeof input === "string") return input === "" ? [] : [Message.human(input)]
  return "role" in input ? [input] : input
}

/** What a run begins with. */
interface Beginning {
  readonly inputs: ReadonlyArray<Message.Message>
  readonly messages: Array<Message.Message>
  readonly state: AgentState.Snapshot
  readonly usage: Usage
  readonly rounds: number
  /** The turn to take up, and its calls that are open. */
  readonly turn: Message.AiMessage | undefined
  readonly open: ReadonlyArray<{ readonly id: string; readonly name: string }>
  readonly suspension: Suspension | null
}

const fresh = { usage: zero, rounds: 0, turn: undefined, open: [], suspension: null }

/** A checkpoint to go on from, with what was decided since. */
const goOn = (
  compiled: Compiled,
  { checkpoint, decisions }: Resume,
  inherited: ReadonlyArray<Decision>
): Result.Result<Beginning, AgentError> => {
  const reopened = reopen(checkpoint.messages)
  if (reopened.messages.length === 0) {
    return Result.fail(
      invalid(compiled, { _tag: "InvalidInput", problem: "the checkpoint has no messages to go on from" })
    )
  }
  return Result.flatMap(
    Result.mapError(AgentState.read(checkpoint.state, suspension), (error) =>
      invalid(compiled, { _tag: "InvalidState", slot: suspension.name, problem: error.message })
    ),
    (stored) => {
      const ids = new Set(stored?.requests.map((request) => request.id))
      const given = [...decisions, ...inherited.filter((decision) => ids.has(decision.id))]
      return Result.mapBoth(decide(stored, given), {
        onFailure: (problem) => invalid(compiled, { _tag: "InvalidInput", problem }),
        onSuccess: (decided): Beginning => ({
          ...reopened,
          inputs: [],
          state: checkpoint.state,
          usage: checkpoint.usage,
          // The round that is taken up is told of again.
          rounds: Math.max(0, checkpoint.rounds - (reopened.open.length > 0 ? 1 : 0)),
          suspension: decided?.messageId === reopened.turn?.id ? decided : null
        })
      })
    }
  )
}

/** What a run is given before it begins: input to answer, and a history that a provider accepts. */
const prepare = (
  compiled: Compiled,
  input: Input,
  options: RunOptions,
  inherited: ReadonlyArray<Decision>
): Result.Result<Beginning, AgentError> => {
  if (compiled.problem !== undefined) {
    return Result.fail(invalid(compiled, { _tag: "InvalidAgent", problem: compiled.problem }))
  }
  if (isResume(input)) return goOn(compiled, input, inherited)
  const inputs = toMessages(input)
  const { messages, missing } = mend(options.history ?? [])
  const mended = inputs.some((message) => message.role !== "human")
    ? mendInput(messages, missing, inputs)
    : [...missing, ...inputs]
  if (inputs.length === 0 && messages.length === 0) {
    return Result.fail(
      invalid(compiled, { _tag: "InvalidInput", problem: "the input is empty, and there is no history to go on from" })
    )
  }
  return Result.succeed({ ...fresh, inputs: mended, messages, state: options.state ?? {} })
}

/** Input may answer the calls that the history left open, and has to be as valid as a history. */
const mendInput = (
  history: ReadonlyArray<Message.Message>,
  missing: ReadonlyArray<Message.ToolMessage>,
  inputs: ReadonlyArray<Message.Message>
): ReadonlyArray<Message.Message> => {
  const given = new Set(inputs.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : [])))
  const whole = mend([...history, ...missing.filter((answer) => !given.has(answer.toolCallId)), ...inputs])
  return [...whole.messages, ...whole.missing].slice(history.length)
}

const prompted = Effect.fnUntraced(function* (live: Live) {
  const { definition, prompts } = live.compiled
  const sections = [typeof definition.prompt === "string" ? definition.prompt : yield* definition.prompt]
  for (const prompt of prompts) sections.push(typeof prompt === "string" ? prompt : yield* prompt(live))
  return sections.filter((section) => section !== "").join("\n\n")
})

const result = (live: Live, ending: Ending): AgentResult<unknown> => ({
  ...ending,
  messages: live.messages,
  newMessages: live.messages.slice(live.firstNew),
  state: live.state.snapshot(),
  usage: live.usage,
  rounds: live.round
})

/** Everything before the first round, the rounds, and what comes after the last. */
const body = Effect.fnUntraced(function* (live: Live, inputs: ReadonlyArray<Message.Message>) {
  const { compiled } = live
  for (const message of inputs) yield* append(live, message)
  let directive: Directive | undefined
  for (const hook of compiled.beforeAgent) {
    directive = (yield* hook(live)) ?? undefined
    if (directive !== undefined) break
  }
  live.systemPrompt = yield* prompted(live)
  live.tools = withAnswerTool(live, compiled.toolDefinitions)
  const ending = yield* loop(live, directive)
  for (const hook of compiled.afterAgent) yield* hook(live, { stopReason: ending.stopReason, text: ending.text })
  return result(live, ending)
})

/** What was cut off by an interruption or a failure becomes valid history: a partial answer marked, calls answered. */
const windUp = Effect.fnUntraced(function* (live: Live, interrupted: boolean) {
  live.ending = true
  // What waits for a decision goes on waiting: nothing of it was begun.
  if (live.suspension !== null && live.batch.every((call) => !call.started)) live.batch = []
  const partial = interrupted ? partialMessage(live) : undefined
  if (partial !== undefined) yield* append(live, partial)
  yield* Tools.settle(live)
  yield* flushLog(live)
})

const describe = (cause: Cause.Cause<unknown>): { readonly tag: string; readonly message: string } => {
  const error = Cause.squash(cause)
  const tag = Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : "Defect"
  const message =
    Predicate.hasProperty(error, "message") && typeof error.message === "string" ? error.message : String(error)
  return { tag, message }
}

/** Says how the run ended: the one terminal event. */
const announce = (early: Origin, live: Live | undefined, exit: Exit.Exit<AgentResult<unknown>, unknown>) => {
  const origin = live ?? early
  origin.ending = true
  const spent = { usage: live?.usage ?? zero, rounds: live?.round ?? 0 }
  if (Exit.isSuccess(exit)) return emit(origin, { _tag: "RunCompleted", stopReason: exit.value.stopReason, ...spent })
  if (Cause.hasInterrupts(exit.cause)) return emit(origin, { _tag: "RunInterrupted", ...spent })
  return emit(origin, { _tag: "RunFailed", error: describe(exit.cause), ...spent })
}

/** The one interpreter behind `run`, `stream`, `start` and sub-agents. */
export const interpret = Effect.fnUntraced(function* (
  compiled: Compiled,
  input: Input,
  options: RunOptions,
  place: Place
) {
  const { control, hub, parent, runId } = place
  const { layers, name } = compiled.definition
  const clock = yield* Clock.Clock
  const scope = Scope.makeUnsafe()
  const path = [...(parent?.path ?? []), name]
  const origin: Origin = { runId, path, hub, clock, ending: false }
  let live: Live | undefined

  const main = Effect.gen(function* () {
    const decisions = [...(isResume(input) ? input.decisions : []), ...(parent?.decisions ?? [])]
    const {
      inputs,
      messages,
      open,
      rounds,
      state: saved,
      suspension: still,
      turn,
      usage
    } = yield* Effect.fromResult(prepare(compiled, input, options, parent?.decisions ?? []))
    const model = yield* ChatModel
    const makeId = yield* IdGenerator
    const log = yield* MessageLog
    const approvals = yield* Effect.serviceOption(Approvals)
    const threadId = options.threadId ?? parent?.threadId
    yield* emit(origin, {
      _tag: "RunStarted",
      agent: name,
      model: model.modelId,
      provider: model.provider,
      ...(threadId === undefined ? {} : { threadId })
    })
    const session = yield* Scope.provide(openSession(model), scope)
    const state = yield* Effect.fromResult(
      Store.make(saved, compiled.slots, parent?.state.shared, (slot, value) =>
        hub.watched ? emit(own, { _tag: "StateChanged", slot, value: value() }) : Effect.void
      )
    ).pipe(
      Effect.mapError((error) =>
        invalid(compiled, { _tag: "InvalidState", slot: error.path.split(".")[0] ?? "", problem: error.message })
      )
    )
    // One literal: an object that is put together piece by piece becomes a hash table, larger and slower.
    const own: Live = {
      runId,
      path,
      hub,
      clock,
      ending: false,
      agent: name,
      threadId,
      model,
      round: rounds,
      messages,
      usage,
      state,
      startedAt: parent?.startedAt ?? clock.currentTimeMillisUnsafe(),
      depth: parent === undefined ? 0 : parent.depth + 1,
      warn: (code: string, message: string) => Effect.suspend(() => emit(own, { _tag: "Warning", code, message })),
      custom: (event: string, payload: Json) =>
        Effect.suspend(() => emit(own, { _tag: "Custom", name: event, payload })),
      compacted: (tokensBefore: number, tokensAfter: number) =>
        Effect.suspend(() => emit(own, { _tag: "Compacted", tokensBefore, tokensAfter })),
      call: (request: Parameters<Live["call"]>[0]) => call(own, request),
      compiled,
      control,
      parent,
      makeId,
      log,
      scope,
      snapshot: Effect.sync(() => messages.slice()),
      logged: messages.length,
      firstNew: messages.length,
      session,
      nextTurn: session.nextTurn,
      systemPrompt: "",
      tools: compiled.toolDefinitions,
      offered: compiled.toolDefinitions,
      partial: undefined,
      batch: open.map(untouched),
      resumed: turn,
      suspension: still,
      resumable: {},
      decisions,
      unknownOutcome: isResume(input) ? input.unknownOutcome : (parent?.unknownOutcome ?? "tell"),
      approvals: Option.getOrUndefined(approvals),
      usageSinceRound: zero
    }
    own.nextTurn = makeNextTurn(own)
    live = own
    place.onLive?.(own)
    return yield* Effect.provideService(body(own, inputs), CurrentRun, own)
  })

  // What the run opened is closed before the layers that it may stand on.
  const whole = Effect.onExit(main, (exit) => {
    const wound =
      Exit.isFailure(exit) && live !== undefined ? windUp(live, Cause.hasInterrupts(exit.cause)) : Effect.void
    return Effect.andThen(wound, Scope.close(scope, exit))
  })
  const provided = layers.reduce<Effect.Effect<AgentResult<unknown>, unknown, unknown>>(
    (effect, layer) => Effect.provide(effect, layer),
    whole
  )
  return yield* Effect.onExit(surface(provided), (exit) => Effect.suspend(() => announce(origin, live, exit)))
})
