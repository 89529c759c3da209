/**
 * Responses that OpenAI makes in the background: a cut connection is opened anew behind the last event, by its sequence
 * number, so a turn of many minutes is neither lost nor paid twice.
 */
import type { OpenAI } from "openai"
import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses"
import type { JsonObject } from "../../../core/Json.ts"
import { numberOf, objectOf, objectsOf, stringOf } from "../wire/read.ts"
import { eventsOf } from "./client.ts"

/** The times that a stream is opened anew before its failure stands, if it brings nothing new. */
const mostReopenings = 6

/** Milliseconds before the first one; each further one waits twice as long. */
const firstPause = 250

/** The types of the last event of a response. */
const terminal = /^(?:response\.(?:completed|incomplete|failed|cancelled)|error)$/

const pause = (millis: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", end)
      resolve()
    }
    const timer = setTimeout(end, millis)
    signal.addEventListener("abort", end)
  })

const statusOf = (cause: unknown): number | undefined =>
  typeof cause === "object" && cause !== null && "status" in cause ? numberOf(cause.status) : undefined

/** A refusal is final, unless the server is at fault or busy. */
const isFinal = (cause: unknown): boolean => {
  const status = statusOf(cause)
  return status !== undefined && status < 500 && status !== 408 && status !== 429
}

/** The response that a request began, as the thread keeps it. */
export const tokenOf = (model: string, id: string): JsonObject => ({ openai: { model, id } })

/** The response to go on with, if it is of this model. */
export const idIn = (token: JsonObject | undefined, model: string): string | undefined => {
  const own = objectOf(token?.["openai"])
  return own?.["model"] === model ? stringOf(own["id"]) : undefined
}

export const idOf = (event: JsonObject | undefined): string | undefined =>
  stringOf(objectOf(event?.["response"])?.["id"])

export const isTerminal = (event: JsonObject | undefined): boolean => terminal.test(stringOf(event?.["type"]) ?? "")

/** Ends with the failure, if there is one. */
export async function* lostTo(failure: unknown): AsyncGenerator<never> {
  if (failure !== undefined) await Promise.reject(failure)
}

/** Milliseconds between two looks at a response whose events are not streamed any more. */
const betweenLooks = 2_000

/** The ends of an item's texts: the decoder adds the part of each text that was not streamed. */
const endsOf = (item: JsonObject, output_index: number): ReadonlyArray<JsonObject> => {
  const place = { output_index, item_id: item["id"] ?? "" }
  if (item["type"] === "function_call") {
    return [{ type: "response.function_call_arguments.done", ...place, arguments: item["arguments"] ?? "" }]
  }
  if (item["type"] !== "message") return []
  return objectsOf(item["content"]).map(({ refusal, text }, content_index) => ({
    type: "response.output_text.done",
    ...place,
    content_index,
    text: text ?? refusal ?? ""
  }))
}

/** Converts a response that is over to events. `undefined` while it is made. */
const wholeEvents = (response: unknown): ReadonlyArray<unknown> | undefined => {
  const ends = eventsOf(response)
  if (ends === undefined) return undefined
  const items = objectsOf(objectOf(response)?.["output"]).flatMap((item, output_index) => [
    { type: "response.output_item.done", output_index, item },
    ...endsOf(item, output_index)
  ])
  return [...items, ...ends]
}

const isUnfinished = (status: unknown): boolean => status === "failed" || status === "cancelled"

const isUnderWay = (status: unknown): boolean => status === "queued" || status === "in_progress"

/** Makes the requests for one response. Each goes on behind the last event that was read. */
const makeRequests = (
  client: OpenAI,
  body: ResponseCreateParamsStreaming,
  begun: string | undefined,
  signal: AbortSignal
) => {
  let id = begun
  let way: "resume" | "stream" | "look" = id === undefined ? "stream" : "resume"
  let last: number | undefined
  let isRead = false
  const include = body.include ? { include: body.include } : {}

  const makeAnew = (): void => {
    id = undefined
    way = "stream"
  }

  const stream = (responseId: string | undefined): Promise<AsyncIterable<unknown>> => {
    if (responseId === undefined) return client.responses.create(body, { signal })
    const from = last === undefined ? {} : { starting_after: last }
    return client.responses.retrieve(responseId, { stream: true, ...include, ...from }, { signal })
  }

  return {
    id: () => id,
    /** The events of the next request. Returns true if the request behind it is no second attempt. */
    attempt: async function* (): AsyncGenerator<unknown, boolean> {
      if (id === undefined || way === "stream") {
        yield* await stream(id)
        return false
      }
      const response = await client.responses.retrieve(id, include, { signal })
      if (way === "resume" && isUnfinished(response.status)) {
        makeAnew()
        return true
      }
      const events = wholeEvents(response)
      if (events !== undefined) yield* way === "resume" ? [{ type: "response.created", response }, ...events] : events
      else if (!isUnderWay(response.status)) return false
      else if (way === "resume") way = "stream"
      else {
        // It shows that the server works.
        yield { type: "response.in_progress", response }
        await pause(betweenLooks, signal)
      }
      return true
    },
    /** Takes an event. False if it was read before. */
    take: (event: JsonObject | undefined): boolean => {
      const number = numberOf(event?.["sequence_number"])
      if (number !== undefined && last !== undefined && number <= last) return false
      last = number ?? last
      id ??= idOf(event)
      isRead = true
      return true
    },
    /** Chooses another way after a refusal. False if there is no other. */
    turn: (failure: unknown): boolean => {
      const status = id === undefined ? undefined : statusOf(failure)
      // A response that is not there any more, and of which nothing was read, is asked for anew.
      if (status === 404 && !isRead) makeAnew()
      else if (status === 400 && way === "stream") way = "look"
      else return false
      return true
    }
  }
}

/**
 * Sends a request, or goes on with the response that an earlier run began (by its id), until the response is over. OpenAI streams the
 * events of a response for some minutes only; later, the response is looked at until it is over.
 */
export async function* backgroundEvents(
  client: OpenAI,
  body: ResponseCreateParamsStreaming,
  begun: string | undefined,
  signal: AbortSignal
): AsyncGenerator<unknown> {
  const requests = makeRequests(client, body, begun, signal)
  let isOver = false
  let failures = 0
  const cancel = (): void => {
    const id = requests.id()
    if (id !== undefined && !isOver) client.responses.cancel(id).catch(() => undefined)
  }
  signal.addEventListener("abort", cancel, { once: true })
  while (!isOver) {
    let failure: unknown
    const events = requests.attempt()
    const readNext = (): Promise<IteratorResult<unknown, boolean>> =>
      events.next().catch((cause: unknown) => {
        failure = cause
        return { done: true, value: false }
      })
    let next = await readNext()
    for (; next.done !== true; next = await readNext()) {
      const event = objectOf(next.value)
      if (!requests.take(event)) continue
      failures = 0
      isOver = isTerminal(event)
      yield next.value
      if (isOver) return
    }
    if (!signal.aborted && (next.value || requests.turn(failure))) continue
    failures++
    const isLost = requests.id() === undefined || failures > mostReopenings || signal.aborted || isFinal(failure)
    if (isLost) return yield* lostTo(failure)
    await pause(firstPause * 2 ** (failures - 1), signal)
  }
}
