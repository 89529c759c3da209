import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import type { AgentResult } from "../AgentResult.ts"
import type { Input, RunOptions } from "../AgentRun.ts"
import { Approvals } from "../Approval.ts"
import { ChatModel, open as openSession } from "../ChatModel.ts"
import type { UnknownOutcome } from "../Checkpoint.ts"
import { IdGenerator } from "../IdGenerator.ts"
import { suspension } from "../internal/suspension.ts"
import { surface } from "../internal/tunnel.ts"
import { Held } from "../Journal.ts"
import { fromUnknown, type Json } from "../Json.ts"
import { callIds } from "../Message.ts"
import { MessageLog } from "../MessageLog.ts"
import type { Directive } from "../Middleware.ts"
import { CurrentRun } from "../Run.ts"
import { zero } from "../Usage.ts"
import { type Beginning, invalid, isResume, openThread, prepare } from "./beginning.ts"
import { reopened } from "./calls.ts"
import type { Compiled } from "./definition.ts"
import { voided } from "./gate.ts"
import type { Hub } from "./hub.ts"
import {
  append,
  appendLate,
  type Control,
  emit,
  flushLog,
  type Live,
  note,
  offer,
  type Origin,
  type Recorder,
  save
} from "./live.ts"
import { type Ending, loop } from "./loop.ts"
import { withAnswerTool } from "./output.ts"
import * as Store from "./store.ts"
import * as Tools from "./tools.ts"
import { call, makeNextTurn, partialMessage } from "./turn.ts"

/** Where a run stands: who watches it, who steers it, what is above it. */
export interface Place {
  readonly runId: string
  readonly hub: Hub
  readonly control: Control | undefined
  readonly parent: Live | undefined
  /** Whether it is the first thing of a fiber that can't be interrupted until it is under way. */
  readonly isFresh?: boolean | undefined
  /** Told of the run as soon as it exists. */
  readonly onLive?: ((live: Live) => void) | undefined
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

/** What knows of outcomes knows those of the run that it was given to. */
const inherited = (unknownOutcome: UnknownOutcome | undefined): "tell" | "ask" =>
  unknownOutcome === "ask" ? "ask" : "tell"

/** Everything before the first round, the rounds, and what comes after the last. */
const body = Effect.fnUntraced(function* (live: Live, { inputs, late, voids }: Beginning) {
  const { compiled } = live
  if (live.parent === undefined) note(live, { _tag: "RunStarted", runId: live.runId, agent: live.agent })
  if (voids !== undefined) {
    for (const request of voids) yield* voided(live, request)
    yield* live.state.set(suspension, null)
  }
  for (const message of late) yield* appendLate(live, message)
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
  if (live.parent === undefined) note(live, { _tag: "RunSettled", runId: live.runId, outcome: ending.stopReason })
  yield* save(live)
  return result(live, ending)
})

/** What was cut off by an interruption or a failure becomes valid history: a partial answer marked, calls answered. */
const windUp = Effect.fnUntraced(function* (live: Live, interrupted: boolean) {
  live.ending = true
  // A turn that was to be taken up, and was not, is left as it was found.
  if (live.resumed !== undefined && live.batch.every((call) => !call.started)) {
    live.batch = []
    if (live.suspension !== null) yield* live.state.set(suspension, live.suspension)
  }
  const partial = interrupted ? partialMessage(live) : undefined
  if (partial !== undefined) yield* append(live, partial)
  yield* Tools.settle(live)
  yield* flushLog(live)
  if (live.parent === undefined) {
    note(live, { _tag: "RunSettled", runId: live.runId, outcome: interrupted ? "interrupted" : "failed" })
    yield* Effect.catch(save(live), (error) =>
      Effect.logError(`The end of a run could not be stored: ${error.message}`)
    )
  }
})

const describe = (cause: Cause.Cause<unknown>): { readonly tag: string; readonly message: string } => {
  const error = Cause.squash(cause)
  const tag = Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : "Defect"
  const message =
    Predicate.hasProperty(error, "message") && typeof error.message === "string" ? error.message : String(error)
  return { tag, message }
}

/** Says how the run ended: the one terminal event. */
const announce = (early: Origin, live: Live | undefined, exit: Exit.Exit<AgentResult<unknown>, unknown>): void => {
  const origin = live ?? early
  origin.ending = true
  const spent = { usage: live?.usage ?? zero, rounds: live?.round ?? 0 }
  if (Exit.isSuccess(exit)) offer(origin, { _tag: "RunCompleted", stopReason: exit.value.stopReason, ...spent })
  else if (Cause.hasInterrupts(exit.cause)) offer(origin, { _tag: "RunInterrupted", ...spent })
  else offer(origin, { _tag: "RunFailed", error: describe(exit.cause), ...spent })
  if (origin.path.length === 1) origin.hub.isOver = true
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
    const threadId = options.threadId ?? parent?.threadId
    const opened =
      options.threadId === undefined ? undefined : yield* Scope.provide(openThread(compiled, options.threadId), scope)
    const thread = opened?.thread
    const recorder: Recorder | undefined =
      thread === undefined || threadId === undefined ? parent?.recorder : { thread, threadId, entries: [] }
    const decisions = [...(isResume(input) ? input.decisions : []), ...(parent?.decisions ?? [])]
    const beginning = yield* Effect.fromResult(prepare(compiled, input, options, thread, parent?.decisions ?? []))
    const { left, messages, open, rounds, state: saved, suspension: still, turn, usage } = beginning
    const model = yield* ChatModel
    const makeId = yield* IdGenerator
    const log = yield* MessageLog
    const approvals = yield* Effect.serviceOption(Approvals)
    yield* emit(origin, {
      _tag: "RunStarted",
      agent: name,
      model: model.modelId,
      provider: model.provider,
      ...(threadId === undefined ? {} : { threadId })
    })
    if (thread?.checkpoint !== undefined && threadId !== undefined) {
      yield* emit(origin, { _tag: "CheckpointLoaded", threadId, step: thread.step })
    }
    const session = yield* Scope.provide(openSession(model), scope)
    const state = yield* Effect.fromResult(
      Store.make(saved, compiled.slots, parent?.state.shared, (slot, encode, isShared) => {
        const isKept = recorder !== undefined && (isShared || parent === undefined)
        if (!isKept && !hub.watched) return Effect.void
        const value = encode()
        if (isKept) note(own, { _tag: "State", slot, value })
        return emit(own, { _tag: "StateChanged", slot, value })
      })
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
        Effect.suspend(() =>
          hub.watched ? emit(own, { _tag: "Custom", name: event, payload: fromUnknown(payload) }) : Effect.void
        ),
      compacted: (tokensBefore: number, tokensAfter: number) =>
        Effect.suspend(() => {
          if (parent === undefined) note(own, { _tag: "Compaction", tokensBefore, tokensAfter })
          return emit(own, { _tag: "Compacted", tokensBefore, tokensAfter })
        }),
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
      batch: open.map((call) => reopened(call, left)),
      recorder,
      resumed: turn,
      suspension: still,
      left,
      resumable: {},
      decisions,
      unknownOutcome: isResume(input) ? input.unknownOutcome : inherited(parent?.unknownOutcome),
      approvals: Option.getOrUndefined(approvals),
      usageSinceRound: zero,
      callIds: new Set(messages.flatMap((message) => (message.role === "ai" ? callIds(message) : [])))
    }
    own.nextTurn = makeNextTurn(own)
    live = own
    place.onLive?.(own)
    const working = Effect.provideService(body(own, beginning), CurrentRun, own)
    if (opened?.held === undefined) return yield* working
    return yield* Effect.provideService(working, Held, [...(yield* Held), opened.held])
  })

  // What the run opened is closed before the layers that it may stand on.
  const whole = Effect.onExit(main, (exit) => {
    const wound =
      Exit.isFailure(exit) && live !== undefined ? windUp(live, Cause.hasInterrupts(exit.cause)) : Effect.void
    return Effect.ensuring(wound, Scope.close(scope, exit))
  })
  const provided = layers.reduce<Effect.Effect<AgentResult<unknown>, unknown, unknown>>(
    (effect, layer) => Effect.provide(effect, layer),
    whole
  )
  const surfaced = surface(provided)
  return yield* Effect.onExit(place.isFresh === true ? Effect.interruptible(surfaced) : surfaced, (exit) =>
    Effect.sync(() => announce(origin, live, exit))
  )
})
