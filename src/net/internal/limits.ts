/** Rate limits and circuit breakers of hosts. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClientError from "effect/http/HttpClientError"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Scope from "effect/Scope"
import { makeRefused, type Rules } from "../../support/http/rules.ts"

type Sending<R> = Effect.Effect<HttpClientResponse, HttpClientError.HttpClientError, R>

/** Counts connection errors, 429 and 5xx as failures of the host. */
const classifyExit = (exit: Exit.Exit<HttpClientResponse, HttpClientError.HttpClientError>): CircuitBreaker.Outcome =>
  Exit.isSuccess(exit)
    ? exit.value.status >= 500 || exit.value.status === 429
      ? CircuitBreaker.failure()
      : CircuitBreaker.success
    : Exit.hasInterrupts(exit)
      ? CircuitBreaker.ignored
      : CircuitBreaker.failure()

/** Makes a function that sends a request within the limits of its host. */
export const makeHostLimits = ({
  breaker,
  rate
}: Rules): Effect.Effect<
  <R>(request: HttpClientRequest, host: string, send: Sending<R>) => Sending<R>,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const limiter =
      rate === undefined
        ? undefined
        : Context.get(
            yield* Layer.build(Layer.provide(RateLimiter.layer, RateLimiter.layerStoreMemory)),
            RateLimiter.RateLimiter
          )
    const circuit =
      breaker === undefined
        ? undefined
        : yield* Effect.provideContext(
            CircuitBreaker.make({
              tripPolicy: CircuitBreaker.consecutive(breaker.failures),
              openDuration: breaker.openFor
            }),
            Context.add(yield* Layer.build(CircuitBreaker.layerStoreMemory()), Scope.Scope, yield* Effect.scope)
          )
    return (request, host, send) => {
      const waited =
        limiter === undefined || rate === undefined
          ? send
          : limiter
              .consume({
                algorithm: "token-bucket",
                onExceeded: "delay",
                key: host,
                limit: rate.requests,
                window: rate.window
              })
              .pipe(
                // A memory store never fails.
                Effect.orDie,
                Effect.flatMap(({ delay }) => Effect.delay(send, delay))
              )
      return circuit === undefined
        ? waited
        : Effect.mapError(circuit.execute(waited, { key: host, classify: classifyExit }), (error) => {
            if (HttpClientError.isHttpClientError(error)) return error
            const why = makeRefused("breaker", `${host} failed several times in a row, and is left alone for a while`)
            return new HttpClientError.HttpClientError({
              reason: new HttpClientError.InvalidUrlError({ request, cause: why, description: why.message })
            })
          })
    }
  })
