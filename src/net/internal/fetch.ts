/**
 * Fetch as a client of which all is seen: it would follow redirects by itself, past the rules, and unpacks answers itself.
 */
import * as Effect from "effect/Effect"
import { Fetch, RequestInit } from "effect/http/FetchHttpClient"

/** Headers that say how an answer was packed, and how long it was then. */
const ofPacking = ["content-encoding", "content-length"]

/** An answer that fetch has unpacked, without the headers that still say that it is packed. */
const unpacked = (answer: Response): Response => {
  if (!answer.headers.has("content-encoding")) return answer
  const headers = new Headers(answer.headers)
  for (const name of ofPacking) headers.delete(name)
  const { body, status, statusText, url } = answer
  return Object.defineProperty(new Response(body, { status, statusText, headers }), "url", { value: url })
}

/** Sends by a client that may be fetch: one answer for one request, which is no longer packed where it says so. */
export const byHand = <A, E, R>(sent: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Fetch, (fetch) =>
    sent.pipe(
      Effect.provideService(Fetch, async (input, init) => unpacked(await fetch(input, init))),
      Effect.provideService(RequestInit, { redirect: "manual" })
    )
  )
