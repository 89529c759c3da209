/** The requests to LangSmith's sandboxes: its API makes and ends them, and each one's own server runs commands in it. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { type BackendError, make as makeError, type Reason } from "../../../core/BackendError.ts"
import { readBeginning } from "../../../support/http/body.ts"
import { describe } from "../../../support/http/describe.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"

type Failing<A> = Effect.Effect<A, BackendError>

/** A sandbox, as the API tells of it. */
export const Described = Schema.Struct({
  name: Schema.String,
  status: Schema.optionalKey(Schema.NullOr(Schema.String)),
  status_message: Schema.optionalKey(Schema.NullOr(Schema.String)),
  dataplane_url: Schema.optionalKey(Schema.NullOr(Schema.String)),
  snapshot_id: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export interface Described extends Schema.Schema.Type<typeof Described> {}

const Status = Schema.Struct({
  status: Schema.String,
  status_message: Schema.optionalKey(Schema.NullOr(Schema.String))
})
const Listed = Schema.Struct({ sandboxes: Schema.optionalKey(Schema.NullOr(Schema.Array(Described))) })
const Captured = Schema.Struct({ id: Schema.String })
const Ran = Schema.Struct({
  stdout: Schema.optionalKey(Schema.NullOr(Schema.String)),
  stderr: Schema.optionalKey(Schema.NullOr(Schema.String)),
  exit_code: Schema.optionalKey(Schema.NullOr(Schema.Finite))
})

/** The server's description of a failure. */
const Failed = Schema.fromJsonString(
  Schema.Struct({ detail: Schema.Union([Schema.String, Schema.Struct({ message: Schema.String })]) })
)

/** The most bytes of an answer. */
const most = 256 * 1024 * 1024
const longestMessage = 300
/** The time of a request beside the work that it asks for. */
const requestTime = Duration.seconds(60)
/** The time in which a sandbox is made or woken, and a snapshot taken. */
const waitTime = Duration.minutes(5)

const fail = (detail: string, reason: Reason = { _tag: "Unavailable" }): Effect.Effect<never, BackendError> =>
  Effect.fail(makeError("open", "/", reason, { detail: `LangSmith: ${detail}` }))

export interface Settings {
  readonly url: string
  readonly apiKey: Redacted.Redacted
}

interface ApiRequest {
  readonly method: "GET" | "POST" | "DELETE"
  readonly url: string
  readonly json?: unknown
  readonly form?: FormData
  readonly time?: Duration.Duration
}

/** The API, and the servers of its sandboxes. */
export interface Api {
  readonly create: (fields: { readonly [field: string]: unknown }) => Failing<Described>
  readonly get: (name: string) => Failing<Described>
  readonly list: Failing<ReadonlyArray<Described>>
  readonly start: (name: string) => Failing<void>
  readonly stop: (name: string) => Failing<void>
  readonly remove: (name: string) => Failing<void>
  readonly capture: (name: string, snapshot: string) => Failing<string>
  readonly execute: (server: string, command: string, timeout: number) => Failing<typeof Ran.Type>
  readonly write: (server: string, path: string, content: Uint8Array) => Failing<void>
  readonly read: (server: string, path: string) => Failing<Uint8Array>
}

/** Makes the requests. The key goes to the API and to the servers that it names, and into no failure. */
export const make = (client: HttpClient.HttpClient, { apiKey, url }: Settings): Api => {
  const base = `${url.replace(/\/+$/, "").replace(/\/api(?:\/v1)?$/, "")}/api/v2/sandboxes`
  const hide = (text: string): string => {
    const key = Redacted.value(apiKey)
    return oneLine(key === "" ? text : text.replaceAll(key, "[hidden]"))
  }
  const refuseAnswer = (status: number, text: string) => {
    const message = Result.match(Schema.decodeResult(Failed)(text), {
      onFailure: () => text,
      onSuccess: ({ detail }) => (typeof detail === "string" ? detail : detail.message)
    })
    const hint = status === 401 || status === 403 ? "; check the key" : ""
    return fail(`the server answered ${status}${hint}: ${cut(hide(message), longestMessage)}`)
  }

  const ask = ({ form, json, method, time = requestTime, url: address }: ApiRequest): Failing<Uint8Array> =>
    Effect.gen(function* () {
      const bare = HttpClientRequest.make(method)(address)
      const key = Redacted.value(apiKey)
      const plain = key === "" ? bare : HttpClientRequest.setHeader(bare, "x-api-key", key)
      const request =
        form !== undefined
          ? HttpClientRequest.bodyFormData(plain, form)
          : json === undefined
            ? plain
            : HttpClientRequest.bodyJsonUnsafe(plain, json)
      const response = yield* client.execute(request)
      const { bytes, isWhole } = yield* readBeginning(response, most)
      if (!isWhole) return yield* fail(`the answer has more than ${most} bytes`)
      return response.status < 400 ? bytes : yield* refuseAnswer(response.status, new TextDecoder().decode(bytes))
    }).pipe(
      Effect.mapError((error) =>
        HttpClientError.isHttpClientError(error)
          ? makeError(
              "open",
              "/",
              { _tag: "Unavailable" },
              { detail: `LangSmith: ${cut(hide(describe(error)), longestMessage)}` }
            )
          : error
      ),
      Effect.timeoutOrElse({
        duration: time,
        orElse: () => fail("the server does not answer", { _tag: "TimedOut", limit: Duration.toMillis(time) })
      })
    )

  const askFor =
    <A>(schema: Schema.Codec<A, unknown>) =>
    (asked: ApiRequest): Failing<A> =>
      Effect.flatMap(ask(asked), (bytes) =>
        Effect.catch(Schema.decodeEffect(Schema.fromJsonString(schema))(new TextDecoder().decode(bytes)), () =>
          fail("the answer is none of LangSmith's API; check the address")
        )
      )

  const at = (name: string, what = ""): string => `${base}/boxes/${encodeURIComponent(name)}${what}`

  /** Asks again until a thing is ready. */
  const waitFor = (what: string, asked: ApiRequest): Failing<void> =>
    askFor(Status)(asked).pipe(
      Effect.repeat({
        until: ({ status }) => status === "ready" || status === "failed",
        schedule: Schedule.spaced("1 second")
      }),
      Effect.timeoutOrElse({
        duration: waitTime,
        orElse: () => fail(`${what} is not ready in time`, { _tag: "TimedOut", limit: Duration.toMillis(waitTime) })
      }),
      Effect.flatMap(({ status, status_message }) =>
        status === "ready"
          ? Effect.void
          : fail(`${what} failed: ${cut(hide(status_message ?? "no reason"), longestMessage)}`)
      )
    )

  const post = (address: string): Failing<void> => Effect.asVoid(ask({ method: "POST", url: address, json: {} }))

  return {
    create: (fields) =>
      askFor(Described)({
        method: "POST",
        url: `${base}/boxes`,
        json: { timeout: 120, ...fields, wait_for_ready: true },
        time: waitTime
      }),
    get: (name) => askFor(Described)({ method: "GET", url: at(name) }),
    list: Effect.map(askFor(Listed)({ method: "GET", url: `${base}/boxes` }), ({ sandboxes }) => sandboxes ?? []),
    start: (name) =>
      Effect.andThen(post(at(name, "/start")), waitFor("the sandbox", { method: "GET", url: at(name, "/status") })),
    stop: (name) => post(at(name, "/stop")),
    remove: (name) => Effect.asVoid(ask({ method: "DELETE", url: at(name) })),
    capture: (name, snapshot) =>
      Effect.gen(function* () {
        const { id } = yield* askFor(Captured)({
          method: "POST",
          url: at(name, "/snapshot"),
          json: { name: snapshot },
          time: waitTime
        })
        yield* waitFor("the snapshot", { method: "GET", url: `${base}/snapshots/${encodeURIComponent(id)}` })
        return id
      }),
    execute: (server, command, timeout) =>
      askFor(Ran)({
        method: "POST",
        url: `${server}/execute`,
        json: { command, timeout: Math.ceil(timeout / 1000), shell: "/bin/sh" },
        time: Duration.millis(timeout + 10_000)
      }),
    write: (server, path, content) => {
      const form = new FormData()
      form.append("file", new Blob([content.slice()], { type: "application/octet-stream" }), "file")
      return Effect.asVoid(ask({ method: "POST", url: `${server}/upload?path=${encodeURIComponent(path)}`, form }))
    },
    read: (server, path) => ask({ method: "GET", url: `${server}/download?path=${encodeURIComponent(path)}` })
  }
}

/** The address of a sandbox's own server. The key goes there, so it is encrypted unless the API itself is not. */
export const serverOf = ({ dataplane_url, name }: Described, { url }: Settings): Failing<string> => {
  const address = dataplane_url ?? ""
  const isSafe = address.startsWith("https://") || (url.startsWith("http://") && address.startsWith("http://"))
  return isSafe && URL.canParse(address)
    ? Effect.succeed(address.replace(/\/+$/, ""))
    : fail(`the sandbox ${oneLine(name)} has no server that is reached by https`)
}
