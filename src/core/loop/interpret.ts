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
import type { AgentResult } from "../AgentResult.ts"
import type { Input, RunOptions } from "../AgentRun.ts"
import { suspension } from "../internal/suspension.ts"
import { surface } from "../internal/tunnel.ts"
import { Held } from "../Journal.ts"
import type { Directive } from "../Middleware.ts"
import { CurrentRun } from "../Run.ts"
import { zero } from "../Usage.ts"
import type { Beginning } from "./beginning.ts"
import { create, type Place } from "./create.ts"
import type { Compiled } from "./definition.ts"
import { voided } from "./gatekeepers.ts"
import { slotsOf } from "./inside.ts"
import { append, appendLate, flushLog, type Live, note, offer, type Origin, save } from "./live.ts"
import { type Ending, loop } from "./loop.ts"
import { withAnswerTool } from "./output.ts"
import { programmed } from "./program.ts"
import * as Tools from "./tools.ts"
import { partialMessage } from "./turn.ts"

/** Runs an agent. */
export const interpret = Effect.fnUntraced(function* (
  compiled: Compiled,
  input: Input,
  options: RunOptions,
  place: Place
) {
  const { layers, name } = compiled.definition
  const path = [...(place.parent?.run.path ?? []), name]
  const origin: Origin = { runId: place.runId, path, hub: place.hub, clock: yield* Clock.Clock, ending: false }
  const scope = Scope.makeUnsafe()
  let live: Live | undefined

  const main = Effect.gen(function* () {
    const created = yield* create(compiled, input, options, place, origin, scope)
    live = created.live
    place.onLive?.(live)
    const working = Effect.provideService(body(live, created.beginning), CurrentRun, live.run)
    if (created.held === undefined) return yield* working
    return yield* Effect.provideService(working, Held, [...(yield* Held), created.held])
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

/** Everything before the first round, the rounds, and what comes after the last. */
const body = Effect.fnUntraced(function* (live: Live, { inputs, late, voids }: Beginning) {
  const { compiled, run } = live
  if (live.parent === undefined) note(live, { _tag: "RunStarted", runId: run.runId, agent: run.agent })
  if (voids !== undefined) {
    for (const request of voids) yield* voided(live, request)
    yield* run.state.set(suspension, null)
  }
  for (const message of late) yield* appendLate(live, message)
  for (const message of inputs) yield* append(live, message)
  let directive: Directive | undefined
  for (const hook of compiled.beforeAgent) {
    directive = (yield* hook(run)) ?? undefined
    if (directive !== undefined) break
  }
  const { program } = compiled.definition
  if (program === undefined) {
    live.systemPrompt = yield* prompted(live)
    live.tools = withAnswerTool(live, compiled.toolset.definitions)
  }
  const ending = yield* program === undefined ? loop(live, directive) : programmed(live, program, directive)
  for (const hook of compiled.afterAgent) yield* hook(run, { stopReason: ending.stopReason, text: ending.text })
  // The end of a sub-agent is stored with its answer.
  if (live.parent === undefined) {
    note(live, { _tag: "RunSettled", runId: run.runId, outcome: ending.stopReason })
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

const result = (live: Live, ending: Ending): AgentResult<unknown> => ({
  ...ending,
  messages: live.run.messages,
  newMessages: live.run.messages.slice(live.firstNew),
  state: { ...live.run.state.snapshot(), ...slotsOf(live) },
  usage: live.run.usage,
  rounds: live.run.round
})

/** Makes valid history of what an interruption or a failure cut off: marks a partial answer, answers open calls. */
const windUp = Effect.fnUntraced(function* (live: Live, interrupted: boolean) {
  live.origin.ending = true
  // A turn that was to be resumed, and was not, is left as it was found.
  const isUntouched = live.resumed !== undefined && live.batch.every((call) => !call.started)
  if (isUntouched) {
    live.batch = []
    if (live.suspension !== null) yield* live.run.state.set(suspension, live.suspension)
  }
  const partial = interrupted ? partialMessage(live) : undefined
  if (partial !== undefined) yield* append(live, partial)
  if (!interrupted || !(yield* Tools.leaveOpen(live))) {
    yield* Tools.settle(live)
    // A program that was stopped still waits for what it waited for.
    if (!isUntouched && live.compiled.definition.program === undefined) yield* Tools.resolved(live)
  }
  yield* flushLog(live)
  if (live.parent === undefined) {
    const outcome = interrupted ? "interrupted" : "failed"
    note(live, { _tag: "RunSettled", runId: live.run.runId, outcome })
    yield* Effect.catch(save(live), (error) =>
      Effect.logError(`The end of a run could not be stored: ${error.message}`)
    )
  }
})

/** Reports how the run ended, by the one terminal event. */
const announce = (origin: Origin, live: Live | undefined, exit: Exit.Exit<AgentResult<unknown>, unknown>): void => {
  origin.ending = true
  const spent = { usage: live?.run.usage ?? zero, rounds: live?.run.round ?? 0 }
  if (Exit.isSuccess(exit)) offer({ origin }, { _tag: "RunCompleted", stopReason: exit.value.stopReason, ...spent })
  else if (Cause.hasInterrupts(exit.cause)) offer({ origin }, { _tag: "RunInterrupted", ...spent })
  else offer({ origin }, { _tag: "RunFailed", error: describe(exit.cause), ...spent })
  if (origin.path.length === 1) origin.hub.isOver = true
}

const describe = (cause: Cause.Cause<unknown>): { readonly tag: string; readonly message: string } => {
  const error = Cause.squash(cause)
  const tag = Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : "Defect"
  const message =
    Predicate.hasProperty(error, "message") && typeof error.message === "string" ? error.message : String(error)
  return { tag, message }
}
