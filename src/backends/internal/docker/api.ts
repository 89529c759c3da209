/** The calls of the container engine's HTTP API, with their failures in words. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Schema from "effect/Schema"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import { cut } from "../../../support/text/text.ts"

/** The version of the API: Docker 20.10 has it, and Podman. */
const version = "v1.41"

const longestMessage = 500

/** The time that a call may take which does no long work. */
const callTime = Duration.seconds(60)

export const fail = (detail: string, cause?: unknown): BackendError =>
  makeError("open", "/", { _tag: "Unavailable" }, { detail, ...(cause === undefined ? {} : { cause }) })

/** A refusal of the engine. */
export interface Refusal {
  readonly status: number
  readonly message: string
}

export interface Api {
  readonly socketPath: string
  /** Sends a request, and fails for a status of 400 and more unless `recover` takes it. */
  readonly send: (
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: unknown
  ) => Effect.Effect<HttpClientResponse.HttpClientResponse, Failure>
}

/** The engine does not answer, or refuses. */
export type Failure = { readonly _tag: "Gone"; readonly error: BackendError } | ({ readonly _tag: "Refused" } & Refusal)

/** The path of the API, with its version. */
export const pathOf = (path: string): string => `/${version}${path}`

/** Makes a query of parameters. */
export const queryOf = (parameters: { readonly [name: string]: string }): string =>
  new URLSearchParams(parameters).toString()

const Message = Schema.fromJsonString(Schema.Struct({ message: Schema.String }))

const messageOf = (text: string): Effect.Effect<string> =>
  Schema.decodeEffect(Message)(text).pipe(
    Effect.map(({ message }) => message),
    Effect.orElseSucceed(() => text),
    Effect.map((message) => cut(message.trim(), longestMessage))
  )

const codeOf = (cause: unknown): string | undefined =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined

const describeGone = (socketPath: string, code: string | undefined): string => {
  if (code === "ENOENT" || code === "ECONNREFUSED") {
    return `no container engine answers at ${socketPath}: start Docker (or \`podman system service\`), or name its socket by DOCKER_HOST=unix://…`
  }
  if (code === "EACCES" || code === "EPERM") {
    return `this user may not use ${socketPath}: add the user to its group (usually docker), or use a rootless engine and name its socket by DOCKER_HOST=unix://…`
  }
  return `the container engine at ${socketPath} broke off${code === undefined ? "" : ` (${code})`}`
}

/** Makes the API of a socket. */
export const make = (client: HttpClient.HttpClient, socketPath: string): Api => ({
  socketPath,
  send: (method, path, body) => {
    const bare = HttpClientRequest.make(method)(`http://docker${pathOf(path)}`)
    const request =
      body === undefined
        ? bare
        : body instanceof Uint8Array
          ? HttpClientRequest.bodyUint8Array(bare, body, "application/x-tar")
          : HttpClientRequest.bodyJsonUnsafe(bare, body)
    return client.execute(request).pipe(
      Effect.mapError(({ reason }): Failure => {
        const cause = "cause" in reason ? reason.cause : reason
        return { _tag: "Gone", error: fail(describeGone(socketPath, codeOf(cause)), cause) }
      }),
      Effect.flatMap((response) =>
        response.status < 400
          ? Effect.succeed(response)
          : Effect.orElseSucceed(response.text, () => "").pipe(
              Effect.flatMap(messageOf),
              Effect.flatMap((message): Effect.Effect<never, Failure> =>
                Effect.fail({ _tag: "Refused", status: response.status, message })
              )
            )
      )
    )
  }
})

/** The failure of a call as the error of a backend. */
export const toError = (failure: Failure): BackendError =>
  failure._tag === "Gone" ? failure.error : fail(`the container engine refused: ${failure.message}`)

type Failing<A> = Effect.Effect<A, BackendError>

/** A call that must succeed soon. */
export const call = (
  api: Api,
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  body?: unknown
): Failing<HttpClientResponse.HttpClientResponse> =>
  Effect.mapError(api.send(method, path, body), toError).pipe(
    Effect.timeoutOrElse({
      duration: callTime,
      orElse: () => Effect.fail(makeError("open", "/", { _tag: "TimedOut", limit: Duration.toMillis(callTime) }))
    })
  )

/** Reads the JSON of a response. */
export const readJson =
  <A>(schema: Schema.Codec<A, unknown>) =>
  (response: HttpClientResponse.HttpClientResponse): Failing<A> =>
    response.json.pipe(
      Effect.flatMap(Schema.decodeUnknownEffect(schema)),
      Effect.mapError((cause) => fail("the container engine gave an answer that is not of its API", cause))
    )
