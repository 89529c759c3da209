/** Checks failed, truncated and interrupted turns. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { ChatModel, open } from "../../../../core/ChatModel.ts"
import type { ModelError, Reason } from "../../../../core/ModelError.ts"
import { assert, failCheck } from "../assert.ts"
import { readDone, hello, makeRequest, type Rule, type Scenario, runTurn } from "./common.ts"

const failing = (
  name: string,
  scenario: Scenario,
  rule: string,
  ...accepted: ReadonlyArray<Reason["_tag"] | ((error: ModelError) => boolean)>
): Rule => [
  name,
  [scenario],
  Effect.matchEffect(runTurn(), {
    onSuccess: (parts) => failCheck(rule, parts),
    onFailure: (error) =>
      assert(
        accepted.some((one) => (typeof one === "function" ? one(error) : one === error.reason._tag)),
        rule,
        { reason: error.reason._tag, detail: error.detail }
      )
  })
]

const status = (code: number, retryAfter?: number): Scenario => ({ _tag: "Status", status: code, retryAfter })

/** Checks of turns that fail. */
export const failureRules: ReadonlyArray<Rule> = [
  [
    "arguments cut by the output limit are malformed, not executable",
    [{ _tag: "LengthInArguments", name: "note", partial: '{"text": "half a no' }],
    Effect.flatMap(Effect.flatMap(runTurn(), readDone), (message) =>
      assert(
        message.toolCalls.length === 0 && message.stopReason === "length",
        "a cut call is not in toolCalls, and the stop reason is `length`",
        message
      )
    )
  ],
  failing(
    "a connection that is cut is a failure that may be retried",
    { _tag: "Cut", text: "I was going to say" },
    "a cut stream fails with BadResponse or Transport",
    "BadResponse",
    "Transport"
  ),
  failing(
    "429 is RateLimited, with the wait that was asked for",
    status(429, 7),
    "429 is RateLimited with retryAfter of 7 s",
    (error) => error.reason._tag === "RateLimited" && Duration.toMillis(error.retryAfter ?? Duration.zero) === 7000
  ),
  failing("401 is Authentication", status(401), "401", "Authentication"),
  failing("403 is Permission", status(403), "403", "Permission"),
  failing("400 is InvalidRequest", status(400), "400", "InvalidRequest"),
  ...[500, 503, 529].map((code) =>
    failing(`${code} may be retried`, status(code), `${code} is retryable`, (error) => error.isRetryable)
  )
]

const interrupted = Effect.fnUntraced(function* (closed: Effect.Effect<boolean> | undefined) {
  const session = yield* open(yield* ChatModel)
  const fiber = yield* Effect.forkScoped(Stream.runHead(session.nextTurn(makeRequest(hello))))
  const first = yield* Fiber.join(fiber)
  yield* assert(Option.isSome(first), "what came before the silence is streamed at once", "nothing")
  const reading = yield* Effect.forkScoped(
    Stream.runDrain(Stream.unwrap(Effect.succeed(session.nextTurn(makeRequest(hello)))))
  )
  yield* Effect.sleep("50 millis")
  yield* Effect.timeoutOrElse(Fiber.interrupt(reading), {
    duration: "1 second",
    orElse: () => failCheck("an interruption returns at once", "it did not")
  })
  if (closed === undefined) return
  let isClosed = false
  for (let tries = 0; !isClosed && tries < 20; tries++) {
    yield* Effect.sleep("50 millis")
    isClosed = yield* closed
  }
  yield* assert(isClosed, "an interruption closes the connection within a second", "it is still open")
})

/** Makes the check of an interruption. `closed` returns true if the server has seen it. */
export const interruptionRule = (closed: Effect.Effect<boolean> | undefined): Rule => [
  "an interruption ends the request",
  [
    { _tag: "Hang", text: "Well" },
    { _tag: "Hang", text: "Well" }
  ],
  interrupted(closed)
]
