/** Requests to a protected resource, and its challenges (RFC 6750, RFC 9449). */
import type { DPoPHandle } from "oauth4webapi"
import type { FetchLike } from "../http/fetchLike.ts"
import { isLoopback } from "../http/redirect.ts"

/** Loads the library late. The build makes such an import optional for bundlers. */
const load = () => import("oauth4webapi")

const fieldOf = (header: string, name: string): string | undefined => {
  const [, quoted, plain] = new RegExp(`\\b${name}=(?:"([^"]+)"|([^\\s,"]+))`).exec(header) ?? []
  return quoted ?? plain
}

/** Reads the challenge of a response that refuses a token. */
export const parseChallenge = (response: Response) => {
  const header = response.headers.get("www-authenticate") ?? ""
  const isKnown = /^\s*(?:bearer|dpop)\s+\S/i.test(header)
  const field = (name: string) => (isKnown ? fieldOf(header, name) : undefined)
  const resourceMetadataUrl = URL.parse(field("resource_metadata") ?? "") ?? undefined
  return { error: field("error"), scope: field("scope"), resourceMetadataUrl }
}

/** Sends a request with a token that is bound to a key. A server that wants a nonce is asked again with it. */
export const sendWithProof = async (
  fetch: FetchLike,
  proofs: DPoPHandle,
  token: string,
  input: Parameters<FetchLike>[0],
  init: RequestInit | undefined
): Promise<Response> => {
  const oauth = await load()
  const url = new URL(input instanceof Request ? input.url : input)
  const headers = new Headers(init?.headers)
  headers.delete("authorization")
  const { method = "GET", signal = null } = init ?? {}
  const body = init?.body ? await new Response(init.body).arrayBuffer() : null
  const send = () =>
    oauth.protectedResourceRequest(token, method, url, headers, body, {
      DPoP: proofs,
      [oauth.customFetch]: (address, more) => fetch(address, { method, headers: more.headers, body, signal }),
      [oauth.allowInsecureRequests]: isLoopback(url)
    })
  const responseOf = (cause: unknown) =>
    cause instanceof oauth.WWWAuthenticateChallengeError ? cause.response : Promise.reject(cause)
  return send().catch((cause: unknown) =>
    oauth.isDPoPNonceError(cause) ? send().catch(responseOf) : responseOf(cause)
  )
}
