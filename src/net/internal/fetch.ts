/** Fetch under the rules: it would follow redirects and unpack responses itself. */
import * as Effect from "effect/Effect"
import { Fetch } from "effect/http/FetchHttpClient"
import { withoutRedirects } from "../../support/http/hops.ts"

/** Removes the packing headers of a response that fetch has unpacked. */
const dropPacking = (answer: Response): Response => {
  if (!answer.headers.has("content-encoding")) return answer
  const headers = new Headers(answer.headers)
  headers.delete("content-encoding")
  headers.delete("content-length")
  const { body, status, statusText, url } = answer
  return Object.defineProperty(new Response(body, { status, statusText, headers }), "url", { value: url })
}

/** Sends by a client that may be fetch, with its redirects turned off, and its packing headers removed. */
export const sendPlain = <A, E, R>(sent: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Fetch, (fetch) =>
    sent.pipe(
      Effect.provideService(Fetch, async (input, init) => dropPacking(await fetch(input, init))),
      withoutRedirects
    )
  )
