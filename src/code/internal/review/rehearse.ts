/** Runs a script where nothing acts, and notes its effects. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Backend from "../../../core/Backend.ts"
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import type { ToolContext } from "../../../core/ToolContext.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { cut } from "../../../support/text/text.ts"
import type { Program, ScriptCall } from "../../Scripts.ts"
import { findDefinition, type World } from "../answers.ts"
import { type Refusal, runScript } from "../host.ts"
import { makePrinted, print, textOf } from "../outputs.ts"
import { ownStack } from "../said.ts"
import * as Copy from "./copy.ts"
import { fromOutcome, makeKeys, type Outcome, outcomeOf, type Plan, type PlannedEffect } from "./plan.ts"
import * as Sequence from "./sequence.ts"
import * as Stillness from "./stillness.ts"

/** The most printed characters of a script that failed. */
const maxPrinted = 10_000

/** A defect that holds a call: only the call itself can tell its result. */
const holdSignal = { script: "held" }

const hold = Effect.die(holdSignal)

/** Holds a call that can't be rehearsed: its script waits. */
const waitIfHeld = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A | undefined, E, R> =>
  Effect.catchDefect(work, (defect) => (defect === holdSignal ? Effect.undefined : Effect.die(defect)))

/** The notes of one rehearsal. */
interface Notes {
  readonly effects: Array<PlannedEffect>
  readonly known: Map<string, Outcome>
  readonly stored: Map<string, Json>
  waits: boolean
}

const textAt = (args: Json, key: string): string => {
  const value = isObject(args) ? valueAt(args, key) : undefined
  return typeof value === "string" ? value : ""
}

/** The call of an agent, as people see it. */
const agentCall = (value: Json): PlannedEffect["call"] => {
  const args: JsonObject = isObject(value) ? value : {}
  const agent = textAt(value, "agent")
  const description = `Asks the agent ${agent === "" ? "" : `"${agent}" `}to do: ${textAt(value, "prompt")}`
  return { name: "agent", given: args, arguments: args, description, asks: [] }
}

/** A script before its rehearsal. */
interface Rehearsed {
  readonly program: Program
  readonly outcomes: ReadonlyMap<string, Outcome>
  readonly answer: (world: World, call: ScriptCall) => Effect.Effect<Json, Refusal, unknown>
}

/** Rehearses a script. The outcomes are of earlier stages, and `order` is the order in which the script got them. */
export const rehearse = Effect.fnUntraced(function* (
  { answer: answerCall, outcomes, program }: Rehearsed,
  world: World,
  order: ReadonlyArray<string>
): Effect.fn.Return<Plan, never, unknown> {
  const { context } = world
  const base = Option.getOrUndefined(yield* Effect.serviceOption(Backend.Backend))
  const copy = base === undefined ? undefined : Copy.make(base)
  const rehearseCall = yield* context.rehearsal
  const notes: Notes = { effects: [], known: new Map(), stored: new Map(), waits: false }
  const still = Stillness.make()
  const keyOf = makeKeys()
  const sequence = Sequence.make(order, still)
  const printed = makePrinted()
  // Effects are rehearsed one at a time: they are done in this order.
  const turn = Semaphore.makeUnsafe(1)

  const callOf =
    (key: string, isRead: boolean): ToolContext["Service"]["call"] =>
    (tool: string | { readonly name: string }, args: JsonObject) => {
      let isUsed = false
      const view = copy?.view(() => {
        isUsed = true
      })
      const rehearsal = rehearseCall(typeof tool === "string" ? tool : tool.name, args)
      const onCopy =
        view === undefined
          ? rehearsal
          : rehearsal.pipe(Effect.provideService(Backend.Backend, view), Effect.provideService(Backend.Copy, view))
      // A read elsewhere than in the copy is not repeated.
      const rehearsed = Effect.onError(onCopy, () =>
        Effect.sync(() => (isRead && !isUsed ? notes.known.set(key, pending) : undefined))
      )
      return Effect.flatMap(rehearsed, ({ call, output }) => {
        if (isRead && output !== undefined && !isUsed) notes.known.set(key, pending)
        if (!isRead && output?.isError !== true)
          notes.effects.push({ key, kind: "tool", isOpen: output === undefined, call })
        if (output !== undefined) return Effect.succeed(output)
        notes.waits = true
        return hold
      })
    }

  const answer = (call: ScriptCall): Effect.Effect<Json, Refusal, unknown> => {
    const definition = call.kind === "tool" ? findDefinition(world, call.name) : undefined
    const key = keyOf(call, definition?.name ?? call.name)
    sequence.name(call, key)
    return Effect.onExit(compute(call, definition, key), (exit) =>
      exit._tag === "Success" || !Cause.hasInterrupts(exit.cause) ? sequence.await(key) : Effect.void
    )
  }

  const compute = (
    call: ScriptCall,
    definition: ToolDefinition | undefined,
    key: string
  ): Effect.Effect<Json, Refusal, unknown> => {
    const before = outcomes.get(key)
    if (before !== undefined) return fromOutcome(before)
    switch (call.kind) {
      case "tool": {
        const isRead = definition?.annotations.readOnly === true
        const inner = { ...world, context: { ...context, call: callOf(key, isRead) } }
        world.made++
        const work = Effect.tap(outcomeOf(answerCall(inner, call)), (outcome) =>
          Effect.sync(() => {
            // A call that would fail does nothing.
            if (notes.known.has(key) || ("error" in outcome && !isRead)) notes.known.set(key, outcome)
          })
        )
        const ordered = isRead ? work : turn.withPermits(1)(work)
        return Effect.flatMap(waitIfHeld(still.count(ordered)), (outcome) =>
          outcome === undefined ? still.hold(Effect.never) : fromOutcome(outcome)
        )
      }
      case "agent":
        notes.waits = true
        notes.effects.push({ key, kind: "agent", isOpen: true, call: agentCall(call.given) })
        return still.hold(Effect.never)
      case "ask":
        notes.waits = true
        return still.hold(Effect.never)
      case "store":
        return Effect.sync(() => {
          const value = isObject(call.given) ? call.given["value"] : undefined
          notes.stored.set(textAt(call.given, "key"), value ?? null)
          return null
        })
      case "load":
      case "budget": {
        const own = notes.stored.get(textAt(call.given, "key"))
        const plain = { ...world, context: { ...context, step: withoutStep } }
        const work = own === undefined ? answerCall(plain, call) : Effect.succeed(own)
        const noted = Effect.tap(outcomeOf(work), (outcome) => Effect.sync(() => notes.known.set(key, outcome)))
        return Effect.flatMap(still.count(noted), fromOutcome)
      }
      default:
        return still.count(answerCall(world, call))
    }
  }

  const ended = yield* Effect.raceFirst(
    Effect.result(
      runScript(program, {
        answer,
        tell: ({ kind, text }) => Effect.sync(() => (kind === "text" ? print(printed, text) : undefined)),
        working: still.count,
        onAnswer: sequence.onAnswer,
        onResult: still.onResult,
        onEnd: still.onEnd
      })
    ),
    still.wait
  )
  const changes = copy === undefined ? [] : yield* Effect.orElseSucceed(copy.changes, () => [])
  const failure = Result.isResult(ended) ? Result.getOrUndefined(Result.flip(ended)) : ended
  return {
    effects: notes.effects,
    changes,
    known: [...notes.known],
    order: sequence.given(),
    seen: copy?.seen() ?? [],
    waits: notes.waits,
    ...(failure === undefined
      ? {}
      : {
          failure: {
            reason: failure.reason,
            message: failure.message,
            stack: ownStack(failure.stack),
            printed: cut(textOf(printed, undefined), maxPrinted)
          }
        })
  }
})

const pending: Outcome = { value: null }

const withoutStep: ToolContext["Service"]["step"] = (_name, work) => work
