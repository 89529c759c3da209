/**
 * Receives the callback of a sign-in on this machine, by a listener on 127.0.0.1 that accepts one request.
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
 * It needs Node. Its address is `http://127.0.0.1:PORT/callback`, with a random port. Register the client as a native one
 * with `http://127.0.0.1/callback`: servers must accept any port for it (RFC 8252). The listener closes after one request,
 * after 300 seconds, and with the sign-in.
 */
import { loopback } from "../support/http/loopback.ts"
import type { Redirect } from "../support/http/redirect.ts"

/** Redirects to a program on the same machine as the browser. */
export const redirect: Redirect = loopback
