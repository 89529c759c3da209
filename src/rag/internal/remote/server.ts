/** Requests to the server of an index. */
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import type * as HttpMethod from "effect/http/HttpMethod"
import * as Redacted from "effect/Redacted"
import { readBeginning } from "../../../support/http/body.ts"
import { describe } from "../../../support/http/describe.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { Reason } from "../rows.ts"

/** The most bytes of an answer. */
const most = 256 * 1024 * 1024

/** Sends a request, and gives the value of the answer; `undefined` if the server has no such thing, or has it already. */
export type Send = (method: HttpMethod.HttpMethod, path: string, body?: unknown) => Effect.Effect<unknown, Reason>

const unavailable = (problem: string): Reason => ({ _tag: "Unavailable", problem })

const readText = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.flatMap(readBeginning(response, most), ({ bytes, isWhole }) =>
    isWhole
      ? Effect.succeed(new TextDecoder().decode(bytes))
      : Effect.fail(unavailable(`the server's answer has more than ${most} bytes; ask for fewer documents`))
  )

/** Makes the requests to a server. */
export const makeSend = (
  client: HttpClient.HttpClient,
  {
    apiKey,
    header,
    url
  }: { readonly url: string; readonly header: string; readonly apiKey?: Redacted.Redacted | undefined }
): Send => {
  const base = url.replace(/\/+$/, "")
  return Effect.fnUntraced(
    function* (method, path, body) {
      const plain = HttpClientRequest.make(method)(base + path)
      const request = apiKey === undefined ? plain : HttpClientRequest.setHeader(plain, header, Redacted.value(apiKey))
      const response = yield* client.execute(
        body === undefined ? request : HttpClientRequest.bodyJsonUnsafe(request, body)
      )
      const text = yield* readText(response)
      // 409: another one made it at the same time.
      if (response.status === 404 || response.status === 409) return undefined
      if (response.status >= 400) {
        const hint = response.status === 401 || response.status === 403 ? "; check the key" : ""
        return yield* Effect.fail(
          unavailable(`the server answered ${response.status}${hint}: ${cut(oneLine(text), 300)}`)
        )
      }
      return yield* Effect.try({
        try: (): unknown => (text === "" ? null : JSON.parse(text)),
        catch: () => unavailable("the server's answer is no JSON; check the address")
      })
    },
    Effect.mapError((error): Reason =>
      HttpClientError.isHttpClientError(error) ? unavailable(`${cut(describe(error), 300)}; check the address`) : error
    )
  )
}
