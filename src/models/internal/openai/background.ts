/**
 * Responses that OpenAI makes in the background: a cut connection is opened anew behind the last event, by its sequence
 * number, so a turn of many minutes is neither lost nor paid twice.
 */
import type { OpenAI } from "openai"
import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses"
import type { JsonObject } from "../../../core/Json.ts"
import { numberOf, objectOf, stringOf } from "../wire/read.ts"

/** The times that a stream is opened anew before its failure stands, if it brings nothing new. */
const mostReopenings = 6

/** Milliseconds before the first one; each further one waits twice as long. */
const firstPause = 250

const terminal = /^(?:response\.(?:completed|incomplete|failed|cancelled)|error)$/

const pause = (millis: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, millis)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      resolve()
    })
  })

const statusOf = (cause: unknown): number | undefined =>
  typeof cause === "object" && cause !== null && "status" in cause ? numberOf(cause.status) : undefined

/** A server that answers has said why; what it says of itself and of its load passes. */
const isFinal = (cause: unknown): boolean => {
  const status = statusOf(cause)
  return status !== undefined && status < 500 && status !== 408 && status !== 429
}

const isGone = (cause: unknown): boolean => statusOf(cause) === 404

/** The response that a request began, as the thread keeps it. */
export const tokenOf = (model: string, id: string): JsonObject => ({ openai: { model, id } })

/** The response to go on with, if it is of this model. */
const idIn = (token: JsonObject | undefined, model: string): string | undefined => {
  const own = objectOf(token?.["openai"])
  return own?.["model"] === model ? stringOf(own["id"]) : undefined
}

const idOf = (event: JsonObject | undefined): string | undefined => stringOf(objectOf(event?.["response"])?.["id"])

const isTerminal = (event: JsonObject | undefined): boolean => terminal.test(stringOf(event?.["type"]) ?? "")

/** Ends with the failure, if there is one. */
async function* lostTo(failure: unknown): AsyncGenerator<never> {
  if (failure !== undefined) await Promise.reject(failure)
}

/** Sends a request, or goes on with the response that an earlier run began, until the response is over. */
export async function* backgroundEvents(
  client: OpenAI,
  body: ResponseCreateParamsStreaming,
  token: JsonObject | undefined,
  signal: AbortSignal
): AsyncGenerator<unknown> {
  let id = idIn(token, String(body.model))
  let last: number | undefined
  let isOver = false
  let failures = 0
  const { include } = body
  const open = async (): Promise<AsyncIterable<unknown>> => {
    if (id === undefined) return client.responses.create(body, { signal })
    const query = {
      stream: true as const,
      ...(include ? { include } : {}),
      ...(last === undefined ? {} : { starting_after: last })
    }
    const known = id
    return client.responses.retrieve(known, query, { signal }).catch((cause: unknown) => {
      // A response that is not there any more, and of which nothing was read, is asked for anew.
      if (last !== undefined || !isGone(cause)) return Promise.reject(cause)
      id = undefined
      return client.responses.create(body, { signal })
    })
  }
  const cancel = (): void => {
    if (id !== undefined && !isOver) client.responses.cancel(id).catch(() => undefined)
  }
  signal.addEventListener("abort", cancel, { once: true })
  while (!isOver) {
    let failure: unknown
    const events = await open().catch((cause: unknown) => {
      failure = cause
      return undefined
    })
    if (events !== undefined) {
      const iterator = events[Symbol.asyncIterator]()
      for (;;) {
        const next = await iterator.next().catch((cause: unknown) => {
          failure = cause
          return undefined
        })
        if (next === undefined || next.done === true) break
        const event = objectOf(next.value)
        const number = numberOf(event?.["sequence_number"])
        if (number !== undefined && last !== undefined && number <= last) continue
        last = number ?? last
        failures = 0
        id ??= idOf(event)
        isOver = isTerminal(event)
        yield next.value
        if (isOver) return
      }
    }
    failures++
    const isLost = id === undefined || failures > mostReopenings || signal.aborted || isFinal(failure)
    if (isLost) return yield* lostTo(failure)
    await pause(firstPause * 2 ** (failures - 1), signal)
  }
}
