/**
 * The way back from a sign-in on this machine: a listener on 127.0.0.1 that takes one request.
 *
 * ```ts
 * import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
 * import { OAuth } from "effect-deepagents/net"
 * import * as LoopbackRedirect from "effect-deepagents/net/LoopbackRedirect"
 * import { Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 *
 * const credentials = Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])
 *
 * const oauth = Layer.provide(OAuth.layer({ redirect: LoopbackRedirect.redirect }), [credentials, FetchHttpClient.layer])
 * ```
 *
 * It needs Node. Its address is `http://127.0.0.1:PORT/callback`, with a port of the moment: register the client as a
 * native one, with `http://127.0.0.1/callback`, for which servers must take any port (RFC 8252). It is closed after one
 * request, after 300 seconds, and when the sign-in is over.
 */
import { loopback } from "../support/http/loopback.ts"
import type { Redirect } from "../support/http/redirect.ts"

export type { Redirect }

/** The redirect of programs that run where the person's browser runs. */
export const redirect: Redirect = loopback
