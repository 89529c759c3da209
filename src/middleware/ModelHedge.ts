/**
 * Asks a second model when the first is slow, and uses the first answer.
 *
 * ```ts
 * import { type Layer } from "effect"
 * import { Agent, type ChatModel } from "effect-deepagents"
 * import { ModelHedge } from "effect-deepagents/middleware"
 *
 * declare const elsewhere: Layer.Layer<ChatModel.ChatModel>
 *
 * const agent = Agent.make({
 *   name: "prompt",
 *   prompt: "You answer at once.",
 *   middleware: [ModelHedge.make([elsewhere], { after: "2 seconds" })]
 * })
 * ```
 */
import type * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type ChatModel, incomplete, type TurnPart, turnPurpose } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { isContent } from "./internal/content.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import { askedOf, makeOpenings, nameOf } from "./internal/openModel.ts"
import * as shapes from "./internal/shapes.ts"

const name = "ModelHedge"

type Parts = Arr.NonEmptyReadonlyArray<TurnPart>

type Turn = Stream.Stream<TurnPart, ModelError>

/** A turn with content: the parts so far, and the rest. */
interface BegunTurn {
  readonly head: ReadonlyArray<TurnPart>
  readonly pull: Pull.Pull<Parts, ModelError>
}

/** Reads a turn until its first content. */
const begin = Effect.fnUntraced(function* (turn: Turn, onEnd: ModelError) {
  const pull = yield* Stream.toPull(turn)
  const head: Array<TurnPart> = []
  while (!head.some(isContent)) head.push(...(yield* Pull.catchDone(pull, () => Effect.fail(onEnd))))
  return { head, pull } satisfies BegunTurn
})

/** The complete turn of a loser, if its usage is known. */
const doneOf = (parts: ReadonlyArray<TurnPart>): ReadonlyArray<TurnPart> =>
  parts.filter((part) => part._tag === "TurnDone" && part.message.usage !== undefined)

/**
 * Starts the turns one after the other, the next each time `after` passes without content, and continues with the first
 * that has content.
 */
const race = Effect.fnUntraced(function* <E, R>(
  turns: ReadonlyArray<Effect.Effect<Turn, ModelError | E, R>>,
  after: Duration.Duration,
  onEnd: ModelError
) {
  const scope = yield* Effect.scope
  const outcomes = yield* Queue.unbounded<{
    readonly index: number
    readonly exit: Exit.Exit<BegunTurn, ModelError | E>
  }>()
  const scopes: Array<Scope.Closeable> = []
  const failures: Array<{ readonly index: number; readonly cause: Cause.Cause<ModelError | E> }> = []

  const start = Effect.fnUntraced(function* (turn: Effect.Effect<Turn, ModelError | E, R>) {
    const index = scopes.length
    const own = yield* Scope.fork(scope)
    scopes.push(own)
    const begun = Effect.flatMap(turn, (stream) => Scope.provide(begin(stream, onEnd), own))
    const report = Effect.flatMap(Effect.exit(begun), (exit) => Queue.offer(outcomes, { index, exit }))
    yield* Effect.forkIn(report, own, { startImmediately: true })
  })

  const [first, ...others] = turns
  if (first !== undefined) yield* start(first)
  for (;;) {
    const next = others[scopes.length - 1]
    const outcome =
      next === undefined
        ? yield* Queue.take(outcomes)
        : Option.getOrUndefined(yield* Effect.timeoutOption(Queue.take(outcomes), after))
    if (outcome === undefined) {
      if (next !== undefined) yield* start(next)
      continue
    }
    const { exit, index } = outcome
    if (Exit.isFailure(exit)) {
      failures.push({ index, cause: exit.cause })
      if (failures.length < scopes.length) continue
      // The call fails as the first model did.
      const firstFailure = failures.find((failure) => failure.index === 0)
      return yield* Effect.failCause(firstFailure?.cause ?? exit.cause)
    }
    const lateOutcomes = yield* Queue.clear(outcomes)
    const lostParts = lateOutcomes.flatMap((other) => (Exit.isSuccess(other.exit) ? doneOf(other.exit.value.head) : []))
    // Nobody waits for an interrupted loser before the end of the turn.
    for (const [at, other] of scopes.entries()) {
      if (at !== index) yield* Effect.forkIn(Scope.close(other, Exit.void), scope, { startImmediately: true })
    }
    const { head, pull } = exit.value
    const restarted: TurnPart = { _tag: "TurnRestarted", reason: "another model began first" }
    const parts = [...lostParts, ...(lostParts.length === 0 ? [] : [restarted]), ...head]
    return Stream.concat(Stream.fromArray(parts), Stream.fromPull(Effect.succeed(pull)))
  }
})

const refuseMake = makeMiddlewareCheck(name, shapes.modelHedgeMake)

/**
 * Asks the next model of `layers` too, each time that no model has produced content (text, reasoning or a tool call)
 * for `after` (3 s). The first model with content gives the turn; the others are interrupted. Only turns are hedged, no
 * side calls. A `Warning` event (`model-hedge`) reports each further model.
 *
 * A model that fails while another works has lost. If all asked models fail, the call fails as the first did. A failure
 * does not start the next model: `ModelFallback` outside does.
 *
 * The usage of a loser counts if it had finished. An interrupted model reports none, though it is charged: a hedge buys
 * time with money. Don't hedge models that run tools of their own, since those act before they answer.
 */
export const make = <const Layers extends ReadonlyArray<Layer.Layer<ChatModel, unknown, unknown>>>(
  layers: Layers,
  options?: {
    /** The time without content after which the next model is asked too. Default: 3 seconds. */
    readonly after?: Duration.Input | undefined
  }
): Middleware.Middleware<Layer.Error<Layers[number]>, Layer.Services<Layers[number]>> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const delay = options?.after ?? "3 seconds"
  const openingsOf = makeOpenings(layers)
  const after = timeOf(delay)
  return Middleware.make<Layer.Error<Layers[number]>, Layer.Services<Layers[number]>>({
    name,
    check: () => timeProblem(name, { after: delay }),
    wrapModelCall: (request, next, run) => {
      if (request.purpose !== turnPurpose) return next(request)
      const model = askedOf(request, run)
      const notice = `${nameOf(model)} has not begun to answer after ${Duration.format(after)}`
      const others = openingsOf(run).map((opening) =>
        Effect.flatMap(opening, ({ name, session }) =>
          Effect.as(run.warn("model-hedge", `${notice}; asking ${name} too`), next({ ...request, session }))
        )
      )
      return Stream.unwrap(race([Effect.succeed(next(request)), ...others], after, incomplete(model)))
    }
  })
}
