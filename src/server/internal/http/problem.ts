/** Failures as clients see them: problem details (RFC 9457), without the internals of the server. */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../../core/Json.ts"
import type { SessionError } from "../../../core/SessionError.ts"
import { TaggedError } from "../../../support/effect/taggedError.ts"
import { defined } from "../../../support/json/defined.ts"
import { cut } from "../../../support/text/text.ts"
import type { RunsError } from "../service.ts"

/** A refused request. `detail` tells a person what to do next. */
export class Problem extends TaggedError<Problem>()("Problem", {
  status: Schema.Finite,
  code: Schema.String,
  detail: Schema.String,
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
}) {
  override get message(): string {
    return this.detail
  }
}

/** The failures of handlers. */
export type Failure = Problem | RunsError | SessionError

const titles: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  408: "Request Timeout",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  429: "Too Many Requests",
  503: "Service Unavailable"
}

const statuses: Readonly<Record<RunsError["reason"] | SessionError["reason"]["_tag"], number>> = {
  AlreadyExists: 409,
  Archived: 409,
  Busy: 409,
  Conflict: 409,
  Corrupt: 500,
  InvalidEntry: 400,
  InvalidId: 400,
  InvalidInput: 400,
  InvalidPoint: 400,
  Moved: 503,
  NotFound: 404,
  NotRunning: 409,
  Tampered: 500,
  TooLarge: 413,
  TooMany: 429,
  Unavailable: 503
}

/** One text for a missing thread, a foreign thread and a missing request: it does not tell which. */
const missing = "There is no such thread, or nothing of this name in it."

const hidden = "The server failed. Its log has the reason; try again later."

/** Makes the problem that a client sees. */
export const toProblem = (failure: Failure): Problem => {
  if (failure._tag === "Problem") return failure
  const code = failure._tag === "RunsError" ? failure.reason : failure.reason._tag
  const status = statuses[code]
  if (status === 404) return new Problem({ status, code, detail: missing })
  const isOwn = status < 500 || failure._tag === "RunsError"
  const retryAfter = failure._tag === "RunsError" ? failure.retryAfter : undefined
  return new Problem({
    status,
    code,
    detail: isOwn ? cut(failure.message, 1_000) : hidden,
    ...defined({ headers: retryAfter === undefined ? undefined : { "retry-after": String(retryAfter) } })
  })
}

/** The body of a problem. */
export const toBody = ({ code, detail, status }: Problem): ProblemDetails.ProblemDetails => ({
  type: ProblemDetails.blankType,
  title: titles[status] ?? "Internal Server Error",
  status,
  detail,
  code
})

/** Gives further members of the body of a problem. */
export type Refusal = (problem: Problem) => JsonObject

const respond =
  (refusal?: Refusal) =>
  (problem: Problem): HttpServerResponse.HttpServerResponse =>
    HttpServerResponse.jsonUnsafe(
      { ...toBody(problem), ...refusal?.(problem) },
      {
        status: problem.status,
        contentType: ProblemDetails.contentType,
        headers: { ...problem.headers, "cache-control": "no-store", "x-content-type-options": "nosniff" }
      }
    )

/** The problem of a defect, whose message clients do not see. */
const defect = new Problem({ status: 500, code: "Defect", detail: hidden })

/** Turns failures and defects into problems. What the server itself has to know goes to its log. */
export const catchProblems = <A, R>(
  effect: Effect.Effect<A, Failure, R>,
  respond: (problem: Problem) => A
): Effect.Effect<A, never, R> =>
  effect.pipe(
    Effect.catch((failure) => {
      const problem = toProblem(failure)
      const response = Effect.sync(() => respond(problem))
      return problem.status < 500 ? response : Effect.andThen(Effect.logError("A request failed", failure), response)
    }),
    Effect.catchDefect((error) =>
      Effect.andThen(
        Effect.logError("A request failed", error),
        Effect.sync(() => respond(defect))
      )
    )
  )

/** Answers failures and defects by problems. */
export const respondFailures = <R>(
  effect: Effect.Effect<HttpServerResponse.HttpServerResponse, Failure, R>,
  refusal?: Refusal
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> => catchProblems(effect, respond(refusal))
