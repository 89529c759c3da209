/** A client of servers that speak LangGraph's API or the Agent Protocol. */
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Json } from "../../../core/Json.ts"
import { readBeginning } from "../../../support/http/body.ts"
import { withoutRedirects } from "../../../support/http/hops.ts"
import { revealed } from "../../../support/store/redacted.ts"
import { RunAnswer, ThreadAnswer, ThreadCreated } from "./remoteWire.ts"

/** The protocol of a server. */
export type Protocol = "langgraph" | "agent-protocol"

/** Settings of the connection to a server. `timeout` is in milliseconds; `maxBytes` limits an answer. */
export interface Target {
  readonly url: string
  readonly agentId: string
  readonly protocol: Protocol
  readonly headers: Readonly<Record<string, string | Redacted.Redacted<string>>>
  readonly timeout: number
  readonly maxBytes: number
}

/**
 * A failed request, described without a quotation of request or answer. `isPassing` is true if the same request may
 * succeed later; `status` is present if the server answered.
 */
export interface Failure {
  readonly problem: string
  readonly isPassing: boolean
  readonly status?: number | undefined
}

/** A run on a server. */
export interface RemoteRun {
  readonly threadId: string
  readonly runId: string
}

/** Requests to a server. */
export interface Client {
  readonly createThread: Effect.Effect<string, Failure>
  /** Starts a run. `replaces` is an earlier run that this one ends. */
  readonly createRun: (
    threadId: string,
    message: string,
    replaces: string | undefined
  ) => Effect.Effect<RemoteRun, Failure>
  readonly getRun: (run: RemoteRun) => Effect.Effect<typeof RunAnswer.Type, Failure>
  readonly getThread: (threadId: string) => Effect.Effect<typeof ThreadAnswer.Type, Failure>
  readonly cancelRun: (run: RemoteRun) => Effect.Effect<void, Failure>
}

const failure = (problem: string, isPassing: boolean, status?: number): Failure => ({ problem, isPassing, status })

const explanations: { readonly [status: number]: string } = {
  401: "it does not accept the credentials",
  403: "it does not allow this",
  404: "it knows no such agent, thread or run",
  409: "something else runs there",
  422: "it does not understand the request",
  429: "it is asked too often"
}

const ofStatus = (status: number): Failure => {
  const isPassing = status === 408 || status === 425 || status === 429 || status >= 500
  const redirects =
    status >= 300 && status < 400 ? "it redirects, which is not followed; give the URL it redirects to" : ""
  const words = explanations[status] ?? redirects
  return failure(`The server answered with status ${status}${words === "" ? "" : `: ${words}`}.`, isPassing, status)
}

/** Reads the body, up to a size. The rest is not read, and the connection is closed. */
const readText = (response: HttpClientResponse, maxBytes: number): Effect.Effect<string, Failure> =>
  readBeginning(response, maxBytes).pipe(
    Effect.mapError(() => failure("The connection broke before the answer was complete.", true)),
    Effect.flatMap(({ bytes, isWhole }) =>
      isWhole
        ? Effect.succeed(new TextDecoder().decode(bytes))
        : Effect.fail(failure(`The server's answer is larger than ${maxBytes} bytes.`, false))
    )
  )

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))

/** Decodes an answer. */
const decoded = <A>(schema: Schema.ConstraintDecoder<A>, text: string): Effect.Effect<A, Failure> => {
  const json = parse(text)
  const value = Result.isSuccess(json) ? Schema.decodeUnknownResult(schema)(json.success) : json
  return Result.isSuccess(value)
    ? Effect.succeed(value.success)
    : Effect.fail(failure("The server's answer is not of the form of its protocol.", false))
}

/** The address of a server, without a slash at its end; nothing if it is none. */
const baseOf = (url: string): string | undefined => {
  const parsed = URL.parse(url)
  if (parsed === null || (parsed.protocol !== "http:" && parsed.protocol !== "https:")) return undefined
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}`
}

/** Makes a client. Each request is bounded in time and size, follows no redirect, and is aborted on interruption. */
const makeClient = (client: HttpClient.HttpClient, target: Target): Client => {
  const http = HttpClient.withScope(client)
  const base = baseOf(target.url)
  const secretNames = Object.keys(target.headers)
    .filter((name) => Redacted.isRedacted(target.headers[name]))
    .map((name) => name.toLowerCase())
  const headers = revealed(target.headers)
  const isLangGraph = target.protocol === "langgraph"

  const send = (method: "GET" | "POST", path: string, body?: Json): Effect.Effect<string, Failure> => {
    if (base === undefined) {
      return Effect.fail(failure("The URL of this agent is not one of a server (http: or https:).", false))
    }
    const request = (method === "GET" ? HttpClientRequest.get : HttpClientRequest.post)(`${base}${path}`, {
      headers: { accept: "application/json", ...headers }
    })
    return http.execute(body === undefined ? request : HttpClientRequest.bodyJsonUnsafe(request, body)).pipe(
      Effect.mapError(() => failure("The server can't be reached.", true)),
      Effect.flatMap((response) =>
        response.status >= 200 && response.status < 300
          ? readText(response, target.maxBytes)
          : Effect.fail(ofStatus(response.status))
      ),
      Effect.timeoutOrElse({
        duration: target.timeout,
        orElse: () => Effect.fail(failure(`The server did not answer in ${target.timeout / 1000} seconds.`, true))
      }),
      // The rest of an answer is not awaited: the connection is closed.
      Effect.scoped,
      withoutRedirects,
      Effect.updateService(Headers.CurrentRedactedNames, (names) => [...names, ...secretNames])
    )
  }

  const runPath = ({ runId, threadId }: RemoteRun): string =>
    isLangGraph ? `/threads/${threadId}/runs/${runId}` : `/runs/${runId}`

  const cancelRun = (run: RemoteRun): Effect.Effect<void, Failure> =>
    Effect.catch(
      Effect.asVoid(send("POST", `${runPath(run)}/cancel?wait=${isLangGraph ? "0" : "false"}&action=interrupt`)),
      (error) =>
        // A finished run can't be cancelled.
        error.status === 404 || error.status === 409 ? Effect.void : Effect.fail(error)
    )

  return {
    createThread: Effect.flatMap(send("POST", "/threads", {}), (text) =>
      Effect.map(decoded(ThreadCreated, text), ({ thread_id }) => thread_id)
    ),
    createRun: Effect.fnUntraced(function* (threadId, message, replaces) {
      const messages = [{ role: "user", content: message }]
      // The Agent Protocol can't replace a run.
      if (!isLangGraph && replaces !== undefined) yield* cancelRun({ threadId, runId: replaces })
      const text = yield* isLangGraph
        ? send("POST", `/threads/${threadId}/runs`, {
            assistant_id: target.agentId,
            input: { messages },
            ...(replaces === undefined ? {} : { multitask_strategy: "interrupt" })
          })
        : send("POST", "/runs", { thread_id: threadId, agent_id: target.agentId, messages, on_completion: "keep" })
      const { run_id } = yield* decoded(RunAnswer, text)
      return { threadId, runId: run_id }
    }),
    getRun: (run) => Effect.flatMap(send("GET", runPath(run)), (text) => decoded(RunAnswer, text)),
    getThread: (threadId) => Effect.flatMap(send("GET", `/threads/${threadId}`), (text) => decoded(ThreadAnswer, text)),
    cancelRun
  }
}

/** The client of a server. */
export const connect = (target: Target): Effect.Effect<Client, never, HttpClient.HttpClient> =>
  Effect.map(HttpClient.HttpClient, (http) => makeClient(http, target))
