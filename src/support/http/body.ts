/** Bodies of responses, bounded in bytes and in time. */
import * as Effect from "effect/Effect"
import type * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Stream from "effect/Stream"
import { joinBytes } from "../store/joinBytes.ts"

/** The first bytes of a body. `isWhole` is true if there are no more. */
export interface BodyHead {
  readonly bytes: Uint8Array
  readonly isWhole: boolean
}

/** Reads at most `most` bytes of a response, and drops the rest. A missing body has no bytes. */
export const readBeginning = (
  { stream }: HttpClientResponse.HttpClientResponse,
  most: number
): Effect.Effect<BodyHead, HttpClientError.HttpClientError> =>
  Effect.gen(function* () {
    const chunks: Array<Uint8Array> = []
    let length = 0
    const reading = Stream.runForEachWhile(stream, (chunk) =>
      Effect.sync(() => {
        chunks.push(chunk)
        length += chunk.length
        return length <= most
      })
    )
    yield* Effect.catchIf(
      reading,
      ({ reason }) => reason._tag === "EmptyBodyError",
      () => Effect.void
    )
    return { bytes: joinBytes(chunks).subarray(0, most), isWhole: length <= most }
  })

/**
 * Reads at most `most` bytes of a body of `fetch`, in at most `timeout` milliseconds, and cancels the rest. A body that
 * breaks off yields the bytes before the break.
 */
export const readWebBeginning = async (
  body: ReadableStream<Uint8Array> | null,
  most: number,
  timeout = Infinity
): Promise<BodyHead> => {
  if (body === null) return { bytes: new Uint8Array(0), isWhole: true }
  const reader = body.getReader()
  const leave = (): Promise<void> => reader.cancel().then(undefined, () => undefined)
  let isWhole = true
  const giveUp = () => {
    isWhole = false
    void leave()
  }
  const timer = Number.isFinite(timeout) ? setTimeout(giveUp, timeout) : undefined
  const chunks: Array<Uint8Array> = []
  for (let length = 0; length <= most;) {
    const part = await reader.read().then(
      (one) => one,
      () => undefined
    )
    if (part === undefined) isWhole = false
    if (part === undefined || part.done) break
    chunks.push(part.value)
    length += part.value.length
    if (length > most) giveUp()
  }
  clearTimeout(timer)
  return { bytes: joinBytes(chunks).subarray(0, most), isWhole }
}

/** Passes a body of `fetch` on until `problemOf` finds a problem in a chunk, which fails the body. */
export const guardBody = (
  body: ReadableStream<Uint8Array>,
  problemOf: (chunk: Uint8Array) => Error | undefined
): ReadableStream<Uint8Array> => {
  const reader = body.getReader()
  const leave = (reason: unknown): Promise<void> => reader.cancel(reason).then(undefined, () => undefined)
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) =>
        reader.read().then(
          ({ done, value }) => {
            if (done) return controller.close()
            const problem = problemOf(value)
            if (problem === undefined) return controller.enqueue(value)
            void leave(problem)
            return controller.error(problem)
          },
          (cause: unknown) => controller.error(cause)
        ),
      cancel: leave
    },
    { highWaterMark: 0 }
  )
}
