/**
 * The one interpreter behind `run`, `stream`, `start` and sub-agents: a run from its first event to its last, and its
 * winding up.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import { surface } from "../../support/effect/tunnel.ts"
import { cut } from "../../support/text/text.ts"
import type { AgentResult } from "../AgentResult.ts"
import type { Directive } from "../Middleware.ts"
import { CurrentRun } from "../Run.ts"
import type { Input, RunOptions } from "../runOptions.ts"
import { Held } from "../thread/parts.ts"
import { suspension } from "../thread/suspension.ts"
import { zero } from "../Usage.ts"
import type { RunBeginning } from "./beginning.ts"
import { voided } from "./calls/gatekeepers.ts"
import * as Tools from "./calls/tools.ts"
import { create, type Place } from "./create.ts"
import type { CompiledAgent } from "./definition.ts"
import type { Live, Origin } from "./live.ts"
import { type RunEnd, loop } from "./loop.ts"
import { withAnswerTool } from "./output.ts"
import { programmed } from "./program.ts"
import { slotsOf } from "./records/inside.ts"
import { type Failure, flushLog, note, noteSettled, record, recordLate, save, settle } from "./records/journal.ts"
import { snapshot } from "./records/store.ts"
import { reportEnd } from "./report.ts"
import { countPartial, partialMessage } from "./turn.ts"
import { spentBy } from "./work.ts"

/** Runs an agent. It holds little while it waits for a model: many runs may wait at once. */
export const interpret = (compiled: CompiledAgent, input: Input, options: RunOptions, place: Place) =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const { layers, name } = compiled.definition
    const path = place.parent === undefined ? [name] : [...place.parent.run.path, name]
    const origin: Origin = { runId: place.runId, path, hub: place.hub, clock, ending: false }
    const scope = Scope.makeUnsafe()
    let live: Live | undefined

    // An effect that is waited for is held with all that it was made of, so it is made when it is run.
    const main = Effect.suspend(() =>
      Effect.flatMap(create(compiled, input, options, place, origin, scope), (created) => {
        live = created.live
        place.onLive?.(live)
        const working = Effect.provideService(body(live, created.beginning), CurrentRun, live.run)
        const { lease } = created
        return lease === undefined
          ? working
          : Effect.flatMap(Held, (before) => Effect.provideService(working, Held, [...before, lease]))
      })
    )

    // The scope of the run is closed before the layers that it may stand on.
    const whole = Effect.onExit(main, (exit) => {
      const wound = Exit.isFailure(exit) && live !== undefined ? windUp(live, exit.cause) : Effect.void
      return Effect.ensuring(wound, Scope.close(scope, exit))
    })
    const provided = layers.reduce<Effect.Effect<AgentResult<unknown>, unknown, unknown>>(
      (effect, layer) => Effect.provide(effect, layer),
      whole
    )
    const surfaced = surface(provided)
    return Effect.onExitPrimitive(place.isFresh === true ? Effect.interruptible(surfaced) : surfaced, (exit) => {
      announce(origin, live, exit)
      return undefined
    })
  })

const body = (live: Live, beginning: RunBeginning): Effect.Effect<AgentResult<unknown>, unknown, unknown> => {
  const { program } = live.compiled.definition
  return Effect.flatMap(begin(live, beginning), (directive) =>
    Effect.flatMap(program === undefined ? loop(live, directive) : programmed(live, program, directive), (ending) =>
      finish(live, ending)
    )
  )
}

/** Everything before the first round. Returns the directive of a hook, if there is one. */
const begin = Effect.fnUntraced(function* (live: Live, { inputs, lateResults, voids }: RunBeginning) {
  const { compiled, run } = live
  if (live.parent === undefined) note(live.records, { _tag: "RunStarted", runId: run.runId, agent: run.agent })
  if (voids !== undefined) {
    for (const request of voids) yield* voided(live, request)
    yield* run.state.set(suspension, null)
  }
  for (const message of lateResults) yield* recordLate(live, message)
  for (const message of inputs) {
    record(live, message)
    yield* settle(live)
  }
  let directive: Directive | undefined
  for (const hook of compiled.beforeAgent) {
    directive = (yield* hook(run)) ?? undefined
    if (directive !== undefined) break
  }
  if (compiled.definition.program === undefined) {
    live.turn.systemPrompt = yield* prompted(live)
    live.turn.tools = withAnswerTool(live, compiled.toolset.definitions)
  }
  return directive
})

const finish = Effect.fnUntraced(function* (live: Live, ending: RunEnd) {
  const { compiled, run } = live
  for (const hook of compiled.afterAgent) yield* hook(run, { stopReason: ending.stopReason, text: ending.text })
  // The end of a sub-agent is stored with its answer.
  if (live.parent === undefined) {
    noteSettled(live, ending.stopReason)
    yield* save(live)
  }
  return result(live, ending)
})

const prompted = Effect.fnUntraced(function* ({ compiled, run }: Live) {
  const { definition, prompts } = compiled
  const sections = [typeof definition.prompt === "string" ? definition.prompt : yield* definition.prompt]
  for (const prompt of prompts) sections.push(typeof prompt === "string" ? prompt : yield* prompt(run))
  return sections.filter((section) => section !== "").join("\n\n")
})

const result = (live: Live, ending: RunEnd): AgentResult<unknown> => ({
  ...ending,
  messages: live.run.messages,
  newMessages: live.run.messages.slice(live.firstNew),
  state: { ...snapshot(live.run.state), ...slotsOf(live) },
  usage: live.run.usage,
  rounds: live.run.round,
  spent: spentBy(live)
})

/** Makes a valid history after an interruption or a failure: keeps a partial answer, answers open calls. */
const windUp = Effect.fnUntraced(function* (live: Live, cause: Cause.Cause<unknown>) {
  const interrupted = Cause.hasInterrupts(cause)
  live.origin.ending = true
  // A turn that was to be resumed, and was not, is left as it was found.
  const isUntouched = live.round.resumed !== undefined && live.round.batch.every((call) => !call.started)
  if (isUntouched) {
    live.round.batch = []
    if (live.round.suspension !== null) yield* live.run.state.set(suspension, live.round.suspension)
  }
  countPartial(live)
  const partial = interrupted ? partialMessage(live) : undefined
  if (partial !== undefined) {
    record(live, partial)
    yield* settle(live)
  }
  if (!interrupted || !(yield* Tools.leaveOpen(live))) {
    yield* Tools.answerBatch(live)
    // The suspension of an interrupted program stays.
    if (!isUntouched && live.compiled.definition.program === undefined) yield* Tools.resolved(live)
  }
  yield* flushLog(live)
  if (live.parent === undefined) {
    if (interrupted) noteSettled(live, "interrupted")
    else noteSettled(live, "failed", storable(describe(cause)))
    yield* Effect.catch(save(live), (error) =>
      Effect.logError(`The end of a run could not be stored: ${error.message}`)
    )
  }
})

/** Reports the end of a run by its terminal event. */
const announce = (origin: Origin, live: Live | undefined, exit: Exit.Exit<AgentResult<unknown>, unknown>): void => {
  origin.ending = true
  const totals = { usage: live?.run.usage ?? zero, rounds: live?.run.round ?? 0 }
  if (Exit.isSuccess(exit)) reportEnd(origin, { _tag: "RunCompleted", stopReason: exit.value.stopReason, ...totals })
  else if (Cause.hasInterrupts(exit.cause)) reportEnd(origin, { _tag: "RunInterrupted", ...totals })
  else reportEnd(origin, { _tag: "RunFailed", error: describe(exit.cause), ...totals })
  if (origin.path.length === 1) origin.hub.isOver = true
}

/** The most characters of an error's message in a thread. */
const longest = 4_096

/** Shortens the message of an error for the thread. Events have all of it. */
const storable = ({ message, tag }: Failure): Failure => ({ tag, message: cut(message, longest) })

const describe = (cause: Cause.Cause<unknown>): Failure => {
  const error = Cause.squash(cause)
  const tag = Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : "Defect"
  const message =
    Predicate.hasProperty(error, "message") && typeof error.message === "string" ? error.message : String(error)
  return { tag, message }
}
