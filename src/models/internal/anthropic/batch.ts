/** Anthropic's Message Batches: a list of requests, which are answered within a day. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { JsonObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import { observed } from "../../../support/effect/observed.ts"
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
import type { ListedBatch } from "../batch/intent.ts"
import { badResponse, type Origin } from "../wire/errors.ts"
import { countOf, objectOf, objectsOf, parse, stringOf } from "../wire/read.ts"
import { faultError } from "./failure.ts"
import type { Send } from "./session.ts"
import type { Transport } from "./transport.ts"
import { eventsOf } from "./wholeAnswer.ts"

const root = "/v1/messages/batches"

/** Ids are parts of addresses. */
const isId = (id: string | undefined): id is string => id !== undefined && /^\w[\w-]{0,200}$/.test(id)

const jsonHeader = { "content-type": "application/json" }

/** The requests of Anthropic's API for batches. A group is the headers of its requests, as JSON. */
const makeApi = ({ call }: Transport, origin: Origin): BatchApi => {
  const { model, provider } = origin
  const strange = badResponse(origin, "the batch has no id")
  // The server's own address of the results is not used: it would get the key.
  const end = (id: string): BatchEnd => ({
    read: (take) =>
      call(async (client, signal) => {
        const response = await client.get(`${root}/${id}/results`, { signal }).asResponse()
        await readResults(response.body, origin, take)
      }),
    missing: lost(origin)
  })
  return {
    provider,
    model,
    begin: (group, requests) => {
      const headers = objectOf(Result.getOrUndefined(parse(group))) ?? {}
      const lines = requests.map(({ id, text }) => `{"custom_id":${JSON.stringify(id)},"params":${text}}`)
      const create = call(async (client, signal) =>
        objectOf(
          await client.post<unknown>(root, {
            body: `{"requests":[${lines.join(",")}]}`,
            headers: { ...jsonHeader, ...headersIn(headers) },
            signal
          })
        )
      )
      return Effect.succeed({
        create: Effect.flatMap(create, (batch) => {
          const id = stringOf(batch?.["id"])
          return isId(id) ? Effect.succeed(id) : Effect.fail(strange)
        })
      })
    },
    list: (after) =>
      Effect.map(
        call((client, signal) =>
          client.get<unknown>(root, { query: { limit: 100, ...defined({ after_id: after }) }, signal })
        ),
        (page) => objectsOf(objectOf(page)?.["data"]).flatMap(readListed)
      ),
    look: (id) =>
      isId(id)
        ? Effect.map(
            call((client, signal) => client.get<unknown>(`${root}/${id}`, { signal })),
            (batch) => (objectOf(batch)?.["processing_status"] === "ended" ? end(id) : undefined)
          )
        : Effect.fail(strange)
  }
}

const readListed = (batch: JsonObject): ReadonlyArray<ListedBatch> => {
  const [id, at] = [stringOf(batch["id"]), Date.parse(stringOf(batch["created_at"]) ?? "")]
  const counts = Object.values(objectOf(batch["request_counts"]) ?? {})
  const count = counts.reduce<number>((sum, one) => sum + (countOf(one) ?? 0), 0)
  return isId(id) && !Number.isNaN(at) ? [{ id, at, count }] : []
}

const headersIn = (headers: JsonObject): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (typeof value === "string" ? [[name, value] as const] : []))
  )

/** Reads the result of one request as the events of its answer. */
const eventsIn = (origin: Origin, line: JsonObject): Effect.Effect<ReadonlyArray<unknown>, ModelError> => {
  const result = objectOf(line["result"])
  const type = stringOf(result?.["type"])
  if (type === "succeeded") {
    const events = eventsOf(result?.["message"])
    return events === undefined
      ? Effect.fail(badResponse(origin, "a result of the batch is no message"))
      : Effect.succeed(events)
  }
  if (type === "errored") {
    const failure = objectOf(result?.["error"])
    const error = objectOf(failure?.["error"]) ?? failure
    const [kind = "", message = ""] = [stringOf(error?.["type"]), stringOf(error?.["message"])]
    return Effect.fail(faultError(origin, { _tag: "Provider", type: kind, message }))
  }
  return Effect.fail(type === "expired" ? expired(origin) : cancelled(origin))
}

/** Makes the opener of senders of requests in batches. */
export const makeBatched = (options: Batching) =>
  Effect.fnUntraced(function* (client: Transport, origin: Origin) {
    const open = yield* makeBatches(makeApi(client, origin), options)
    return Effect.map(open, (ask): Send => ({ betas, body, origin: own, signal }) => {
      const { stream: _, ...params } = body
      const group = JSON.stringify(client.headersOf({ betas, body }))
      const answer = ask({ group, text: JSON.stringify(params) })
      return observed(
        Effect.runPromise(
          Effect.map(
            Effect.flatMap(answer, (line) => eventsIn(own, line)),
            (events) => inOnePiece(events)
          ),
          { signal }
        )
      )
    })
  })

async function* inOnePiece(events: ReadonlyArray<unknown>): AsyncGenerator<ReadonlyArray<unknown>> {
  yield events
}
