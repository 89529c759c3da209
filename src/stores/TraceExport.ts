/**
 * Sends recorded traces to a tracing backend, as spans over OTLP.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Storage, TraceExport, TraceStore } from "effect-deepagents/stores"
 *
 * const program = TraceExport.send("the-run-id", {
 *   url: "http://localhost:4318/v1/traces",
 *   serviceName: "support"
 * }).pipe(Effect.provide([Layer.provide(TraceStore.layer, Storage.layerMemory), FetchHttpClient.layer]))
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Headers from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as OtlpResource from "effect/observability/OtlpResource"
import type { TraceData } from "effect/observability/OtlpTracer"
import * as Stream from "effect/Stream"
import { sha256 } from "../support/store/hash.ts"
import * as Spans from "./internal/spans.ts"
import { make as failure, type StoreError } from "./StoreError.ts"
import { TraceStore } from "./TraceStore.ts"

/** `url` is the whole address, such as `http://localhost:4318/v1/traces`. `headers` are for keys, and so on. */
export interface Options {
  readonly url: string
  readonly serviceName?: string
  readonly headers?: Headers.Input
}

export type { Span } from "./internal/spans.ts"

/** So many spans are sent in one request. */
const batch = 1000

/**
 * A run and its sub-agents as spans: `invoke_agent`, `chat` and `execute_tool`, named as `Telemetry` names them. What
 * was said is not in them. Ids are made of the run's id, so a run that is sent twice is the same trace. A run that is
 * not recorded fails with `NotFound`.
 */
export const spans = Effect.fnUntraced(function* (
  runId: string
): Effect.fn.Return<ReadonlyArray<Spans.Span>, StoreError, TraceStore> {
  const store = yield* TraceStore
  const made = Spans.make(yield* sha256(runId))
  yield* Stream.runForEach(store.stream(runId), (event) => Effect.sync(() => made.add(event)))
  const all = made.done()
  return all.length === 0 ? yield* failure("export", runId, { _tag: "NotFound" }) : all
})

/**
 * Sends the spans of a run as JSON over HTTP. What may pass (no connection, a server that is busy) is tried again three
 * times; any answer but a 2xx one fails.
 */
export const send = Effect.fnUntraced(function* (
  runId: string,
  options: Options
): Effect.fn.Return<void, StoreError | HttpClientError, TraceStore | HttpClient.HttpClient> {
  const client = (yield* HttpClient.HttpClient).pipe(HttpClient.filterStatusOk, HttpClient.retryTransient({ times: 3 }))
  const all = yield* spans(runId)
  const { serviceName } = options
  const resource = OtlpResource.make(serviceName === undefined ? {} : { serviceName })
  for (let from = 0; from < all.length; from += batch) {
    const data: TraceData = {
      resourceSpans: [
        { resource, scopeSpans: [{ scope: { name: "effect-deepagents" }, spans: all.slice(from, from + batch) }] }
      ]
    }
    const request = HttpClientRequest.post(options.url).pipe(
      HttpClientRequest.setHeaders(options.headers ?? {}),
      HttpClientRequest.bodyJsonUnsafe(data)
    )
    const response = yield* client.execute(request)
    // The connection is free for the next when the answer is read; nobody wants to know it.
    yield* Stream.runDrain(Stream.take(response.stream, 64))
  }
}, Effect.withTracerEnabled(false))
