/** Sends requests to services, with credentials, repeats, and limits on time and size. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import type { HttpBody } from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpMethod } from "effect/http/HttpMethod"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Json } from "../../../core/Json.ts"
import { isTooDeep, maxDepth } from "../../../core/schema/jsonTree.ts"
import type { Credential } from "../../../stores/CredentialStore.ts"
import { readBeginning } from "../../../support/http/body.ts"
import { followRedirects, type Hop, withoutRedirects } from "../../../support/http/hops.ts"
import { readRetryAfter } from "../../../support/http/retryAfter.ts"
import { untraced } from "../../../support/http/untraced.ts"
import { defined } from "../../../support/json/defined.ts"
import { problems } from "../../../support/text/issues.ts"
import { mask } from "../../../support/text/mask.ts"
import { cut } from "../../../support/text/text.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { type Connection, secretOf } from "../../Connection.ts"
import { ServiceError } from "../../ServiceError.ts"

/** The headers and query parameters that carry a credential. */
export interface CredentialParts {
  readonly headers?: Readonly<Record<string, Redacted.Redacted<string>>> | undefined
  readonly query?: Readonly<Record<string, Redacted.Redacted<string>>> | undefined
}

/** Shows a credential as a bearer token. */
export const bearer = (credential: Credential): CredentialParts => ({
  headers: { authorization: Redacted.make(`Bearer ${Redacted.value(secretOf(credential))}`) }
})

/** A request. `query` is ordered. `isReading` allows repeats after any failure. */
export interface Call {
  readonly service: string
  readonly operation: string
  readonly method: HttpMethod
  readonly url: string
  readonly query?: ReadonlyArray<readonly [string, string]> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: HttpBody | undefined
  readonly isReading?: boolean | undefined
  /** Finds a refusal in a response of any status. */
  readonly refusal?: ((answer: Answer) => Refusal | undefined) | undefined
}

export interface Refusal {
  readonly problem: string
  readonly isRateLimit?: boolean | undefined
  readonly isUnauthorised?: boolean | undefined
}

export interface Access<out R> {
  readonly connection: Connection<R>
  readonly show: (credential: Credential) => CredentialParts
}

/** A response with its whole body. */
export interface Answer {
  readonly status: number
  readonly headers: Headers.Headers
  readonly bytes: Uint8Array
}

export const textOf = ({ bytes }: Pick<Answer, "bytes">): string => new TextDecoder().decode(bytes)

const maxBytes = 10 * 1024 * 1024
const maxFailureBytes = 64 * 1024
const timeout = "30 seconds"
const maxRepeats = 3
const maxWaitMillis = 60_000
const maxRedirects = 5
const maxQuoted = 2_000

export const failure = (
  { operation, service }: Pick<Call, "service" | "operation">,
  reason: ServiceError["reason"],
  problem: string,
  options?: { readonly status?: number | undefined; readonly isRetryable?: boolean | undefined }
): ServiceError =>
  new ServiceError({
    service,
    operation,
    reason,
    problem,
    isRetryable: options?.isRetryable ?? false,
    ...defined({ status: options?.status })
  })

const isText = ({ headers }: Answer): boolean =>
  /json|text|xml|problem|^$/.test(Option.getOrElse(Headers.get(headers, "content-type"), () => ""))

/** Quotes the text of a failure, shortened. Binary responses are not quoted. */
const quoteAnswer = (answer: Answer): string => {
  if (!isText(answer)) return ""
  const text = visible(textOf(answer)).trim()
  return text === "" ? "" : ` It said: ${JSON.stringify(cut(text, maxQuoted))}`
}

const hints: { readonly [status: number]: string } = {
  400: "it does not accept the request as it is",
  401: "it does not accept the credential",
  403: "the account may not do this, or lacks a permission (scope)",
  404: "there is no such thing, or the account may not see it",
  409: "it conflicts with what is there",
  410: "it is gone",
  412: "it was changed meanwhile",
  422: "it understands the request, and can't do it",
  429: "it is asked too often"
}

const isRateLimit = ({ headers, status }: Answer): boolean =>
  status === 429 ||
  ((status === 403 || status === 503) && Option.isSome(Headers.get(headers, "retry-after"))) ||
  (status === 403 && Option.getOrUndefined(Headers.get(headers, "x-ratelimit-remaining")) === "0")

/** Reads the wait that the service asks for: from `Retry-After`, or from the reset time of GitHub's limit. */
const readWait = (headers: Headers.Headers, now: number): number | undefined => {
  const after = headers["retry-after"]?.trim() ?? ""
  const wait = readRetryAfter({ get: (name) => headers[name] }, now)
  if (wait !== undefined && (Duration.isGreaterThan(wait, Duration.zero) || /^[\d.]+$/.test(after))) {
    return Duration.toMillis(wait)
  }
  if (headers["x-ratelimit-remaining"] !== "0") return undefined
  const reset = Number(headers["x-ratelimit-reset"]) * 1_000 - now
  return reset > 0 ? reset : undefined
}

const isReading = (call: Call): boolean => call.isReading ?? (call.method === "GET" || call.method === "HEAD")

/** Sends a request once. Only GET follows redirects, and secrets stay with the first origin. */
const sendOnce = Effect.fnUntraced(function* (call: Call, auth: CredentialParts) {
  const client = untraced(yield* HttpClient.HttpClient)
  const home = URL.parse(call.url)
  if (home === null || !/^https?:$/.test(home.protocol)) {
    return yield* failure(call, "InvalidRequest", "the address of the service is no http or https URL")
  }
  if (home.username !== "" || home.password !== "") {
    return yield* failure(
      call,
      "InvalidRequest",
      "a password stands in the address of the service; give it by a connection"
    )
  }
  for (const [name, value] of call.query ?? []) home.searchParams.append(name, value)
  const send = (hop: Hop) => {
    const secrets = hop.isHome ? auth : {}
    const target = new URL(hop.url)
    for (const [name, value] of Object.entries(secrets.query ?? {})) {
      target.searchParams.set(name, Redacted.value(value))
    }
    const headers: Record<string, string> = hop.isHome ? { accept: "application/json", ...call.headers } : {}
    for (const [name, value] of Object.entries(secrets.headers ?? {})) headers[name] = Redacted.value(value)
    return client.execute(
      HttpClientRequest.make(call.method)(target.href, { headers, ...defined({ body: call.body }) })
    )
  }
  const response = yield* followRedirects(
    { url: home, method: call.method },
    {
      send,
      headOf: ({ headers, status }) => ({ status, location: headers["location"] }),
      allow: (next) => call.method === "GET" && next.redirects <= maxRedirects
    }
  )
  const isFailure = response.status >= 400
  const { bytes, isWhole } = yield* readBeginning(response, isFailure ? maxFailureBytes : maxBytes)
  if (!isWhole && !isFailure) {
    return yield* failure(
      call,
      "TooLarge",
      `the answer has more than ${maxBytes} bytes; ask for less at once (a page, fewer fields, a part)`
    )
  }
  return { status: response.status, headers: response.headers, bytes } satisfies Answer
})

/** Describes a missing response. It may hide a change. */
const describeSilence = (call: Call, what: string): string =>
  isReading(call)
    ? `${what}; try again later`
    : `${what}, so it is not known whether the change was made: look before you do it again`

const attempt = (call: Call, auth: CredentialParts): Effect.Effect<Answer, ServiceError, HttpClient.HttpClient> =>
  sendOnce(call, auth).pipe(
    withoutRedirects,
    Effect.catchTag("HttpClientError", (error) => {
      const reason = error.reason._tag
      if (reason !== "InvalidUrlError") {
        return Effect.fail(failure(call, "Unreachable", describeSilence(call, "no answer came"), { isRetryable: true }))
      }
      const description = "description" in error.reason ? error.reason.description : ""
      return Effect.fail(failure(call, "InvalidRequest", cut(description ?? "its address may not be reached", 300)))
    }),
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () =>
        Effect.fail(
          failure(call, "Unreachable", describeSilence(call, "it did not answer within 30 seconds"), {
            isRetryable: isReading(call)
          })
        )
    })
  )

/** Minimum length of a secret to mask. A shorter one could be any word. */
const minSecret = 6

/** Masks the credential in a response, since some services quote it. */
const maskSecrets = (answer: Answer, credential: Credential, auth: CredentialParts): Answer => {
  const values = [...Object.values(auth.headers ?? {}), ...Object.values(auth.query ?? {})].map(Redacted.value)
  const secrets = [Redacted.value(secretOf(credential)), ...values.map((value) => value.slice(value.indexOf(" ") + 1))]
  const used = new Set(secrets.filter((secret) => secret.length >= minSecret))
  const maskText = (text: string): string =>
    [...used].reduce((rest, secret) => mask(rest, new Map([["credential", secret]])), text)
  // The address of the next page repeats the query.
  const entries = Object.entries(answer.headers)
  const headers = entries.map(([, value]) => value).join("\n")
  const text = isText(answer) ? textOf(answer) : ""
  const rest = maskText(text)
  return {
    ...answer,
    ...(maskText(headers) === headers
      ? {}
      : { headers: Headers.fromInput(entries.map(([name, value]): [string, string] => [name, maskText(value)])) }),
    ...(rest === text ? {} : { bytes: new TextEncoder().encode(rest) })
  }
}

/** Describes a failure. */
export const describeFailure = (answer: Answer): string => {
  const hint = hints[answer.status] ?? (answer.status < 400 ? "it redirects, which is not followed" : "it failed")
  return `it answered with status ${answer.status}: ${hint}.${quoteAnswer(answer)}`
}

/** Finds the reason to refuse a response. */
const refusalOf = (call: Call, answer: Answer): Refusal | undefined => {
  const own = call.refusal?.(answer)
  if (own !== undefined) return own
  if (answer.status < 300 || answer.status === 304) return undefined
  return {
    problem: describeFailure(answer),
    isRateLimit: isRateLimit(answer),
    isUnauthorised: answer.status === 401
  }
}

/** Waits before a repeat. Fails with the error if the request must not be repeated. */
const waitOrFail = (repeats: number, wait: number, canRepeat: boolean, error: ServiceError) =>
  canRepeat && repeats < maxRepeats && wait <= maxWaitMillis ? Effect.sleep(wait) : Effect.fail(error)

/** Renews a refused credential. `undefined` if the connection has no other one. */
const renewCredential = <R>({ connection }: Access<R>, credential: Credential) =>
  Effect.map(connection.credential(credential), (renewed) =>
    Redacted.value(secretOf(renewed)) === Redacted.value(secretOf(credential)) ? undefined : renewed
  )

/**
 * Sends a request until it succeeds. It is repeated up to three times when the service asks for a wait (`Retry-After`, or
 * 1, 2 and 4 seconds), and for any failure when it only reads. A refused credential is renewed once.
 */
export const send = Effect.fnUntraced(function* <R>(call: Call, access: Access<R> | undefined) {
  let credential = access === undefined ? undefined : yield* access.connection.credential()
  let isRenewed = false
  for (let repeats = 0; ;) {
    const auth: CredentialParts = access === undefined || credential === undefined ? {} : access.show(credential)
    const backoff = 1_000 * 2 ** repeats
    const outcome = yield* Effect.result(attempt(call, auth))
    if (outcome._tag === "Failure") {
      const canRepeat = outcome.failure.reason === "Unreachable" && isReading(call)
      yield* waitOrFail(repeats++, backoff, canRepeat, outcome.failure)
      continue
    }
    const answer = credential === undefined ? outcome.success : maskSecrets(outcome.success, credential, auth)
    const refusal = refusalOf(call, answer)
    if (refusal === undefined) return answer
    const { status } = answer
    if (refusal.isUnauthorised === true && access !== undefined && credential !== undefined) {
      const renewed: Credential | undefined = isRenewed ? undefined : yield* renewCredential(access, credential)
      if (renewed === undefined) {
        return yield* failure(call, "NotConnected", `${refusal.problem} ${access.connection.how}`, { status })
      }
      isRenewed = true
      credential = renewed
      continue
    }
    const isRetryable = refusal.isRateLimit === true || (isReading(call) && [500, 502, 503, 504].includes(status))
    const wait = readWait(answer.headers, yield* Clock.currentTimeMillis) ?? backoff
    const problem = `it is asked too often; ask again in ${Math.ceil(wait / 1_000)} seconds. ${refusal.problem}`
    const error =
      refusal.isRateLimit === true
        ? failure(call, "RateLimited", problem, { status, isRetryable })
        : failure(call, "Refused", refusal.problem, { status, isRetryable })
    yield* waitOrFail(repeats++, wait, isRetryable, error)
  }
})

const decodeJson = Schema.decodeOption(Schema.fromJsonString(Json))

/** Parses the JSON of a response; `undefined` if it is invalid or too deep. An empty body is `{}`. */
export const jsonOf = ({ bytes }: Pick<Answer, "bytes">): Json | undefined =>
  bytes.length === 0
    ? {}
    : Option.getOrUndefined(Option.filter(decodeJson(textOf({ bytes })), (json) => !isTooDeep(json)))

/** Decodes a response by its schema. */
export const decode = <A>(
  call: Pick<Call, "service" | "operation">,
  schema: Schema.ConstraintDecoder<A>,
  answer: Answer
): Effect.Effect<A, ServiceError> => {
  const json = jsonOf(answer)
  if (json === undefined) {
    return Effect.fail(
      failure(call, "UnexpectedAnswer", `its answer is no JSON, or has more than ${maxDepth} levels`, {
        status: answer.status
      })
    )
  }
  return Effect.mapError(Schema.decodeUnknownEffect(schema)(json), ({ issue }) => {
    const where = problems(issue)
      .slice(0, 3)
      .map(({ expected, path }) => `${path === "" ? "the answer" : path} should be ${expected}`)
    return failure(call, "UnexpectedAnswer", cut(`its answer is of another form: ${where.join("; ")}`, 500))
  })
}
