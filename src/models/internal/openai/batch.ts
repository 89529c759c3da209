/** Batches of OpenAI: a file of requests, which are answered within a day. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { OpenAI } from "openai"
import type { JsonObject } from "../../../core/Json.ts"
import { ModelError } from "../../../core/ModelError.ts"
import { type BatchApi, type BatchEnd, type Batching, makeBatches } from "../batch/batches.ts"
import { badResponse, type Origin, providerError, type ProviderFailure } from "../wire/errors.ts"
import { linesOf } from "../wire/lines.ts"
import { numberOf, objectOf, parse } from "../wire/read.ts"
import { type Client, eventsOf, type SendBatched } from "./client.ts"
import { failureOf } from "./failure.ts"

type Batch = Awaited<ReturnType<OpenAI["batches"]["retrieve"]>>

const underWay: ReadonlySet<string> = new Set(["validating", "in_progress", "finalizing", "cancelling"])

/** A limit on all tokens that wait passes when they are answered. */
const reasonOf = (failure: ProviderFailure): ProviderFailure =>
  /token_limit|enqueued/i.test(`${failure.code} ${failure.message}`) ? { ...failure, type: "rate_limit" } : failure

const expired = "the day of the batch was over before this request was answered"

/** The failure of a request without a result, by the end of its batch. */
const missingOf = (origin: Origin, batch: Batch): ModelError => {
  const { model, provider } = origin
  if (batch.status === "failed") {
    const failure = failureOf(batch.errors?.data?.[0])
    return providerError(origin, reasonOf({ ...failure, code: failure.code ?? "invalid_batch" }))
  }
  if (batch.status === "expired") {
    return new ModelError({ provider, model, reason: { _tag: "Timeout" }, detail: expired })
  }
  if (batch.status === "cancelled") {
    const detail = "somebody cancelled the batch before this request was answered"
    return new ModelError({ provider, model, reason: { _tag: "Unknown" }, detail })
  }
  return badResponse(origin, "the batch is over, and has no result for this request")
}

/** The requests of OpenAI's API for batches. */
const makeApi = (client: Client, origin: Origin): BatchApi => {
  const { model, provider } = origin
  const readFile = (id: string, take: (result: JsonObject) => void) =>
    client.call(origin, async (sdk, signal) => {
      const response = await sdk.files.content(id, { signal })
      for await (const line of linesOf(response.body, origin)) {
        const result = objectOf(Result.getOrUndefined(parse(line)))
        if (result !== undefined) take(result)
      }
    })
  const endOf = (batch: Batch): BatchEnd => ({
    read: (take) =>
      Effect.forEach([batch.output_file_id, batch.error_file_id], (id) => (id ? readFile(id, take) : Effect.void), {
        discard: true
      }),
    missing: missingOf(origin, batch)
  })
  return {
    provider,
    model,
    begin: (_, requests) => {
      const lines = requests.map(
        ({ id, text }) => `{"custom_id":${JSON.stringify(id)},"method":"POST","url":"/v1/responses","body":${text}}\n`
      )
      const upload = client.call(origin, (sdk, signal) =>
        sdk.files.create({ file: new File(lines, "batch.jsonl"), purpose: "batch" }, { signal })
      )
      return Effect.map(upload, (file) =>
        Effect.map(
          client.call(origin, (sdk, signal) =>
            sdk.batches.create(
              { input_file_id: file.id, endpoint: "/v1/responses", completion_window: "24h" },
              { signal }
            )
          ),
          ({ id }) => id
        )
      )
    },
    look: (id) =>
      Effect.map(
        client.call(origin, (sdk, signal) => sdk.batches.retrieve(id, { signal })),
        (batch) => (underWay.has(batch.status) ? undefined : endOf(batch))
      )
  }
}

/** Reads the result of one request as the events of its answer. */
const eventsIn = (origin: Origin, result: JsonObject): Effect.Effect<ReadonlyArray<unknown>, ModelError> => {
  const response = objectOf(result["response"])
  const body = objectOf(response?.["body"])
  const status = numberOf(response?.["status_code"])
  const error = objectOf(result["error"])
  if (error?.["code"] === "batch_expired") {
    const { model, provider } = origin
    return Effect.fail(new ModelError({ provider, model, reason: { _tag: "Timeout" }, detail: expired }))
  }
  if (error !== undefined) return Effect.fail(providerError(origin, failureOf(error)))
  if (status !== undefined && status >= 400) {
    return Effect.fail(providerError(origin, { ...failureOf(body?.["error"] ?? body), status }))
  }
  const events = eventsOf(body)
  return events === undefined
    ? Effect.fail(badResponse(origin, "a result of the batch is no response"))
    : Effect.succeed(events)
}

/** Makes the sender of requests in batches. */
export const makeBatched = (options: Batching) =>
  Effect.fnUntraced(function* (client: Client) {
    const ask = yield* makeBatches(makeApi(client, client.originOf(undefined)), options)
    const send: SendBatched = (origin, { stream: _, stream_options: _options, ...body }) =>
      Stream.unwrap(
        Effect.map(
          Effect.flatMap(ask({ group: "", text: JSON.stringify(body) }), (result) => eventsIn(origin, result)),
          (events) => Stream.fromIterable(events)
        )
      )
    return send
  })
