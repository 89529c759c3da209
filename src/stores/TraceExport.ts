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
import { makeEffectCheck } from "../support/options/check.ts"
import { sha256 } from "../support/store/hash.ts"
import { failure } from "./internal/failure.ts"
import * as shapes from "./internal/shapes.ts"
import * as Spans from "./internal/spans.ts"
import type { StoreError } from "./StoreError.ts"
import { TraceStore } from "./TraceStore.ts"

/** The options of this module. */
type Options = {
  /** The whole address, such as `http://localhost:4318/v1/traces`. */
  readonly url: string
  /** The `service.name` of the spans. */
  readonly serviceName?: string
  /** Headers of each request, such as keys. */
  readonly headers?: Headers.Input
}

/** The spans of one request. */
const batch = 1000

/**
 * Makes spans of a run and its sub-agents: `invoke_agent`, `chat` and `execute_tool`, as `Telemetry` names them, without
 * contents. The run's id determines the ids of spans, so sending a run twice gives the same trace. Fails with `NotFound`
 * for a run that is not recorded.
 */
export const spans = Effect.fnUntraced(function* (
  runId: string
): Effect.fn.Return<ReadonlyArray<Spans.Span>, StoreError, TraceStore> {
  const store = yield* TraceStore
  const tracer = Spans.make(yield* sha256(runId))
  yield* Stream.runForEach(store.stream(runId), (event) => Effect.sync(() => tracer.add(event)))
  const all = tracer.finish()
  return all.length === 0 ? yield* failure("export", runId, { _tag: "NotFound" }) : all
})

const refuse = makeEffectCheck("TraceExport.send", shapes.traceExportSend)

/**
 * Sends the spans of a run as JSON over HTTP. Retries transient failures three times (no connection, a busy server), and
 * fails on any response but 2xx.
 */
export const send = Effect.fnUntraced(function* (
  runId: string,
  options: Options
): Effect.fn.Return<void, StoreError | HttpClientError, TraceStore | HttpClient.HttpClient> {
  yield* refuse(options) ?? Effect.void
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
    // Reading the response frees the connection.
    yield* Stream.runDrain(Stream.take(response.stream, 64))
  }
}, Effect.withTracerEnabled(false))
