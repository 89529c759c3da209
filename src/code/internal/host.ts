/**
 * Runs one script: sends it answers, and begins its calls. Code mode and workflows share this loop, and differ
 * by their doors.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { Json } from "../../core/Json.ts"
import {
  type Answer,
  type ScriptCall,
  type Program,
  type Rest,
  type Script,
  ScriptError,
  Scripts,
  type ScriptLine
} from "../Scripts.ts"
import { defaults, Depth } from "./pool.ts"

/** The error that a call of a script is rejected with. */
export interface Refusal {
  readonly name: string
  readonly message: string
  readonly reason?: string | undefined
}

export const refuse = (message: string, reason = "Failed"): Refusal => ({ name: "ToolError", message, reason })

/** The door of a script to its host. */
export interface Door<R> {
  /**
   * Answers a call. A failure is the rejection of the script's promise. A defect ends the script from outside: no script
   * can catch it.
   */
  readonly answer: (call: ScriptCall) => Effect.Effect<Json, Refusal, R>
  readonly tell: (message: ScriptLine) => Effect.Effect<void, never, R>
  /** Keeps the call of the script at work, so that it is not suspended meanwhile (`ToolContext.working`). */
  readonly working: <A, E, R2>(work: Effect.Effect<A, E, R2>) => Effect.Effect<A, E, R2>
  /**
   * Called with the id of each answer as the script gets it. Where it is set, each answer is a message of its own: the
   * script computes the same again when it gets the same answers in the same order.
   */
  readonly onAnswer?: ((id: number) => void) | undefined
  /** Called once when the script has its result or has failed, before its thread is given back. */
  readonly onResult?: ((failure: ScriptError | undefined) => void) | undefined
  /** Runs once when the script has ended, before the calls that it left open end. */
  readonly onEnd?: Effect.Effect<void> | undefined
}

/** The most answers that are begun in one go: more would block the program for too long. */
const atOnce = 64

const stuck = new ScriptError({
  reason: "Stuck",
  message: "The script waits for a promise that nobody settles: await calls of tools and agents only."
})

const tooManyCalls = (most: number): ScriptError =>
  new ScriptError({ reason: "Calls", message: `The script made more than ${most} calls.` })

/** The calls of a script that are under way, and the answers that it has not got. */
interface Under {
  open: number
  made: number
  answers: Array<Answer>
  /** Settled once the script has the answers that are collected now, and rests. */
  delivery: Deferred.Deferred<void>
  isOver: boolean
  /** The scope of the calls, which outlive the script. */
  readonly scope: Scope.Scope
  readonly wake: Queue.Queue<void>
  readonly broken: Deferred.Deferred<never>
}

/** Waits until the script has an answer, and rests. */
const awaitDelivery = (under: Under, answer: Answer): Effect.Effect<void> =>
  Effect.suspend(() =>
    under.isOver
      ? Effect.void
      : Effect.flatMap(Deferred.await(under.delivery), () =>
          under.answers.includes(answer) ? awaitDelivery(under, answer) : Effect.void
        )
  )

/** Begins a call. From its end until the script has the answer and rests, it counts as work. */
const beginCall = <R>(under: Under, door: Door<R>, call: ScriptCall): Effect.Effect<void, never, R> => {
  const deliver = (answer: Answer): Effect.Effect<void> =>
    Effect.suspend(() => {
      under.open--
      under.answers.push(answer)
      Queue.offerUnsafe(under.wake, undefined)
      return awaitDelivery(under, answer)
    })
  const work = Effect.matchEffect(door.answer(call), {
    onSuccess: (value) => door.working(deliver({ id: call.id, value })),
    onFailure: ({ message, name, reason }) =>
      door.working(
        deliver({ id: call.id, error: reason === undefined ? { name, message } : { name, message, reason } })
      )
  })
  under.open++
  // Defects and interruptions are left: the script would wait for an answer for ever.
  const watched = Effect.onExit(work, (exit) =>
    Exit.isFailure(exit)
      ? Effect.sync(() => Deferred.doneUnsafe(under.broken, Exit.failCause(exit.cause)))
      : Effect.void
  )
  return Effect.asVoid(Effect.forkIn(watched, under.scope, { startImmediately: true }))
}

/** Passes on the lines of the script, and begins its calls. Returns its result once it has one. */
const follow = Effect.fnUntraced(function* <R>(
  under: Under,
  door: Door<R>,
  most: number,
  { asked, result, told }: Rest
) {
  yield* Effect.forEach(told, door.tell, { discard: true })
  under.made += asked.length
  if (under.made > most) return yield* tooManyCalls(most)
  for (const [at, one] of asked.entries()) {
    if (at > 0 && at % atOnce === 0) yield* Effect.yieldNow
    yield* beginCall(under, door, one)
  }
  if (result === undefined && under.open === 0 && under.answers.length === 0) return yield* stuck
  return result
})

/** Runs a script to its result. */
const runToResult = Effect.fnUntraced(function* <R>(under: Under, door: Door<R>, most: number, script: Script) {
  const turn = (work: Effect.Effect<Rest, ScriptError>) =>
    door.working(
      Effect.flatMap(work, (rest) => follow(under, door, most, rest)).pipe(
        Effect.tap((result) => Effect.sync(() => result !== undefined && door.onResult?.(undefined))),
        Effect.tapError((error) => Effect.sync(() => door.onResult?.(error)))
      )
    )
  let result = yield* turn(script.begin)
  while (result === undefined) {
    yield* Queue.take(under.wake)
    // Answers of the same moment go in one message.
    yield* Effect.yieldNow
    yield* Queue.clear(under.wake)
    const { delivery } = under
    const answers = under.answers.splice(0, door.onAnswer === undefined ? under.answers.length : 1)
    if (answers.length === 0) continue
    if (under.answers.length > 0) yield* Queue.offer(under.wake, undefined)
    for (const { id } of answers) door.onAnswer?.(id)
    under.delivery = Deferred.makeUnsafe<void>()
    result = yield* Effect.ensuring(turn(script.settle(answers)), Deferred.succeed(delivery, undefined))
  }
  return result.value
})

/** Waits for the calls that a script left open: nobody can say of a call that is interrupted whether it was done. */
const awaitOpen = (under: Under, onEnd: Effect.Effect<void> = Effect.void): Effect.Effect<void> =>
  Effect.gen(function* () {
    under.isOver = true
    yield* Deferred.succeed(under.delivery, undefined)
    yield* onEnd
    while (under.open > 0) yield* Queue.take(under.wake)
  })

/**
 * Runs a script in `Scripts`. It ends when the script has a result and the calls that the script did not wait for have
 * ended.
 */
export const runScript = <R>(
  program: Program,
  door: Door<R>
): Effect.Effect<Json, ScriptError, Exclude<R, Scope.Scope> | Scripts> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { open } = yield* Scripts
      const under: Under = {
        open: 0,
        made: 0,
        answers: [],
        delivery: Deferred.makeUnsafe<void>(),
        isOver: false,
        scope: yield* Effect.scope,
        wake: yield* Queue.unbounded<void>(),
        broken: Deferred.makeUnsafe<never>()
      }
      const depth = yield* Depth
      const inside: Door<R> = {
        ...door,
        answer: (call) => Effect.provideService(door.answer(call), Depth, depth + 1)
      }
      const most = program.limits.calls ?? defaults.calls
      const result = Effect.exit(
        Effect.scoped(Effect.flatMap(open(program), (script) => runToResult(under, inside, most, script)))
      )
      const whole = Effect.flatMap(result, (exit) => Effect.andThen(awaitOpen(under, door.onEnd), exit))
      return yield* Effect.raceFirst(whole, Deferred.await(under.broken))
    })
  )
