/** Disables redirects and decompression of fetch, which bypass the rules. */
import * as Effect from "effect/Effect"
import { Fetch } from "effect/http/FetchHttpClient"
import { withoutRedirects } from "../../support/http/hops.ts"

/** Removes compression headers of a response that fetch has decompressed. */
const removeEncoding = (answer: Response): Response => {
  if (!answer.headers.has("content-encoding")) return answer
  const headers = new Headers(answer.headers)
  headers.delete("content-encoding")
  headers.delete("content-length")
  const { body, status, statusText, url } = answer
  return Object.defineProperty(new Response(body, { status, statusText, headers }), "url", { value: url })
}

/** Sends a request by a client that may be fetch, without redirects and compression headers. */
export const sendPlain = <A, E, R>(request: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Fetch, (fetch) =>
    request.pipe(
      Effect.provideService(Fetch, async (input, init) => removeEncoding(await fetch(input, init))),
      withoutRedirects
    )
  )
