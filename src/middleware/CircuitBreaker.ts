/**
 * Stops asking a model that keeps failing, for a while: calls fail at once, and an outer `ModelFallback` continues.
 *
 * ```ts
 * import { type Layer } from "effect"
 * import { Agent, type ChatModel } from "effect-deepagents"
 * import { CircuitBreaker, ModelFallback } from "effect-deepagents/middleware"
 *
 * declare const second: Layer.Layer<ChatModel.ChatModel>
 *
 * // One value for all agents: what one learns, the others know.
 * const breaker = CircuitBreaker.make({ failures: 3, cooldown: "1 minute" })
 *
 * const agent = Agent.make({
 *   name: "reliable",
 *   prompt: "You answer questions.",
 *   middleware: [ModelFallback.make([second]), breaker]
 * })
 * ```
 */
import type * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../core/ChatModel.ts"
import * as Middleware from "../core/Middleware.ts"
import { isModelError, ModelError, type Reason } from "../core/ModelError.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { countProblem, timeOf, timeProblem } from "./internal/limits.ts"
import { askedOf, nameOf } from "./internal/openModel.ts"
import * as shapes from "./internal/shapes.ts"

const name = "CircuitBreaker"

/** Consecutive failures of one model. `until` is the time of the next trial; `isTried` is true during a trial. */
interface Circuit {
  failures: number
  until: number | undefined
  isTried: boolean
  lastMessage: string
}

const failureOf = (exit: Exit.Exit<unknown, unknown>): ModelError | undefined => {
  if (!Exit.isFailure(exit)) return undefined
  const error = exit.cause.reasons.flatMap((reason) => (reason._tag === "Fail" ? [reason.error] : []))[0]
  return isModelError(error) ? error : undefined
}

const refuseMake = makeMiddlewareCheck(name, shapes.circuitBreakerMake)

/**
 * Opens the circuit of a model after `failures` (5) consecutive failed calls. Its calls then fail at once with
 * `Overloaded`, whose `retryAfter` is the remaining time. After `cooldown` (30 s, or longer at the provider's request)
 * one call is tried while the others still fail. Success closes the circuit; failure opens it for another `cooldown`. A
 * `Warning` event (`circuit-breaker`) reports that a circuit opens.
 *
 * `when` selects the failures that count, by default the retryable ones: an invalid request says nothing about the
 * model. Interrupted calls count neither way.
 *
 * Each model has a circuit by its provider and name. The circuits belong to this value: every run of every agent with
 * it shares them, in this process. Put it inside of `ModelFallback` and `ModelRouter`, so that it sees the chosen
 * model.
 */
export const make = (options?: {
  /** The consecutive failed calls that open the circuit. Default: 5. */
  readonly failures?: number | undefined
  /** The time until one call is tried again, longer at the provider's request. Default: 30 seconds. */
  readonly cooldown?: Duration.Input | undefined
  /** Selects the failures that count. Default: the retryable ones. */
  readonly when?: ((error: ModelError) => boolean) | undefined
}): Middleware.Middleware => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const most = options?.failures ?? 5
  const cooldown = Duration.toMillis(timeOf(options?.cooldown ?? "30 seconds"))
  const counts = options?.when ?? ((error) => error.isRetryable)
  const circuits = new Map<string, Circuit>()
  const circuitOf = (model: string): Circuit => {
    const circuit = circuits.get(model) ?? { failures: 0, until: undefined, isTried: false, lastMessage: "" }
    circuits.set(model, circuit)
    return circuit
  }
  return Middleware.make({
    name,
    check: () =>
      countProblem(name, { failures: options?.failures }, 1) ?? timeProblem(name, { cooldown: options?.cooldown }),
    wrapModelCall: (request, next, run) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const { modelId, provider } = askedOf(request, run)
          const model = nameOf({ modelId, provider })
          const circuit = circuitOf(model)
          // Acquired and released together, whenever the call is interrupted: an unended trial would block all later
          // ones.
          const { isTrial, refused } = yield* Effect.acquireRelease(
            Effect.map(Clock.currentTimeMillis, (now) => {
              const wait = circuit.until === undefined ? 0 : circuit.until - now
              if (wait > 0 || circuit.isTried) return { isTrial: false, refused: { wait } }
              circuit.isTried = circuit.until !== undefined
              return { isTrial: circuit.isTried, refused: undefined }
            }),
            (passed) =>
              Effect.sync(() => {
                if (passed.isTrial) circuit.isTried = false
              })
          )
          if (refused !== undefined) {
            const { wait } = refused
            const reason: Reason =
              wait > 0 ? { _tag: "Overloaded", retryAfter: Duration.millis(wait) } : { _tag: "Overloaded" }
            const detail = `it failed ${circuit.failures} times in a row and is not asked for now; last: ${circuit.lastMessage}`
            return Stream.fail(new ModelError({ provider, model: modelId, reason, detail }))
          }
          let isDone = false
          const watch = (parts: Arr.NonEmptyReadonlyArray<TurnPart>) => {
            for (const part of parts) {
              if (part._tag === "TurnDone") isDone = true
              else if (part._tag === "TurnRestarted") isDone = false
            }
            return parts
          }
          const settle = Effect.fnUntraced(function* (exit: Exit.Exit<unknown, unknown>) {
            const error = failureOf(exit)
            if (isDone) {
              circuit.failures = 0
              circuit.until = undefined
            } else if (error !== undefined && counts(error)) {
              circuit.failures++
              circuit.lastMessage = error.message
              if (circuit.failures < most) return
              const wait = Math.max(cooldown, Duration.toMillis(error.retryAfter ?? Duration.zero))
              // Calls that were in flight when it opened report nothing new.
              const isNew = circuit.until === undefined || isTrial
              circuit.until = (yield* Clock.currentTimeMillis) + wait
              const time = Duration.format(Duration.millis(wait))
              if (!isNew) return
              const many = `${circuit.failures} times in a row`
              yield* run.warn("circuit-breaker", `${model} failed ${many}; it is not asked for ${time}`)
            }
          })
          return Stream.onExit(Stream.mapArray(next(request), watch), settle)
        })
      )
  })
}
