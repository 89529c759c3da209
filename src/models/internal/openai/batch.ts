/** Batches of OpenAI and Azure: a file of requests, which are answered within a day. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { OpenAI } from "openai"
import type { FileObject } from "openai/resources/files"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import { defined } from "../../../support/json/defined.ts"
import {
  type BatchApi,
  type BatchEnd,
  type Batching,
  cancelled,
  expired,
  lost,
  makeBatches,
  readResults
} from "../batch/batches.ts"
import { badResponse, type Origin, providerError, type ProviderFailure } from "../wire/errors.ts"
import { silent } from "../wire/patience.ts"
import { numberOf, objectOf } from "../wire/read.ts"
import { type Client, eventsOf, type SendBatched } from "./client.ts"
import { failureOf } from "./failure.ts"

type Batch = Awaited<ReturnType<OpenAI["batches"]["retrieve"]>>

/** Azure also writes them with a capital. */
const statusOf = ({ status }: Batch): string => status.toLowerCase()

const underWay: ReadonlySet<string> = new Set(["validating", "in_progress", "finalizing", "cancelling"])

/** A limit on all tokens that wait passes when they are answered. */
const reasonOf = (failure: ProviderFailure): ProviderFailure =>
  /token_limit|enqueued/i.test(`${failure.code} ${failure.message}`) ? { ...failure, type: "rate_limit" } : failure

/** The failure of a request without a result, by the end of its batch. */
const missingOf = (origin: Origin, batch: Batch): ModelError => {
  const status = statusOf(batch)
  if (status === "failed") {
    const failure = failureOf(batch.errors?.data?.[0])
    return providerError(origin, reasonOf({ ...failure, code: failure.code ?? "invalid_batch" }))
  }
  if (status === "expired") return expired(origin)
  return status === "cancelled" ? cancelled(origin) : lost(origin)
}

/** The longest wait for Azure to process an upload. */
const longestProcessing = "10 minutes"

/** Waits until Azure has processed an upload: before that, it takes no batch of it. */
const awaitProcessed = (client: Client, origin: Origin, { interval = "5 seconds" }: Batching) => {
  const look = Effect.fnUntraced(function* (file: Pick<FileObject, "id" | "status" | "status_details">) {
    let last = file
    while (last.status !== "processed") {
      const { status, status_details: problem = "no reason given" } = last
      if (status === "error") {
        return yield* providerError(origin, { code: "invalid_batch", message: `the file was refused: ${problem}` })
      }
      yield* Effect.sleep(interval)
      last = yield* client.call(origin, (sdk, signal) => sdk.files.retrieve(file.id, { signal }))
    }
    return last
  })
  return (file: Parameters<typeof look>[0]) =>
    Effect.timeoutOrElse(look(file), {
      duration: longestProcessing,
      orElse: () => Effect.fail(silent(origin, Duration.toMillis(longestProcessing)))
    })
}

/** The requests of OpenAI's API for batches. */
const makeApi = (client: Client, origin: Origin, batching: Batching): BatchApi => {
  const settle = origin.provider === "azure-openai" ? awaitProcessed(client, origin, batching) : Effect.succeed
  const { model, provider } = origin
  const readFile = (id: string, take: (result: JsonObject) => void) =>
    client.call(origin, async (sdk, signal) => {
      const response = await sdk.files.content(id, { signal })
      await readResults(response.body, origin, take)
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
      return Effect.map(Effect.flatMap(upload, settle), (file) => ({
        upload: file.id,
        create: Effect.map(
          client.call(origin, (sdk, signal) =>
            sdk.batches.create(
              { input_file_id: file.id, endpoint: "/v1/responses", completion_window: "24h" },
              { signal }
            )
          ),
          ({ id }) => id
        )
      }))
    },
    list: (after) =>
      Effect.map(
        client.call(origin, (sdk, signal) => sdk.batches.list({ limit: 100, ...defined({ after }) }, { signal })),
        ({ data }) =>
          data.map(({ created_at, id, input_file_id: upload, request_counts }) => {
            return { id, upload, at: created_at * 1_000, count: request_counts?.total ?? 0 }
          })
      ),
    look: (id) =>
      Effect.map(
        client.call(origin, (sdk, signal) => sdk.batches.retrieve(id, { signal })),
        (batch) => (underWay.has(statusOf(batch)) ? undefined : endOf(batch))
      )
  }
}

/** Reads the result of one request as the events of its answer. */
const eventsIn = (origin: Origin, result: JsonObject): Effect.Effect<ReadonlyArray<unknown>, ModelError> => {
  const response = objectOf(result["response"])
  const body = objectOf(response?.["body"])
  const status = numberOf(response?.["status_code"])
  const error = objectOf(result["error"])
  if (error?.["code"] === "batch_expired") return Effect.fail(expired(origin))
  if (error !== undefined) return Effect.fail(providerError(origin, failureOf(error)))
  if (status !== undefined && status >= 400) {
    return Effect.fail(providerError(origin, { ...failureOf(body?.["error"] ?? body), status }))
  }
  const events = eventsOf(body)
  return events === undefined
    ? Effect.fail(badResponse(origin, "a result of the batch is no response"))
    : Effect.succeed(events)
}

/** Makes the opener of senders of requests in batches. */
export const makeBatched = (options: Batching) =>
  Effect.fnUntraced(function* (client: Client) {
    const open = yield* makeBatches(makeApi(client, client.originOf(undefined), options), options)
    return Effect.map(
      open,
      (ask): SendBatched =>
        (origin, { stream: _, stream_options: _options, ...body }) =>
          Stream.unwrap(
            Effect.map(
              Effect.flatMap(ask({ group: "", text: JSON.stringify(body) }), (result) => eventsIn(origin, result)),
              (events) => Stream.fromIterable(events)
            )
          )
    )
  })
