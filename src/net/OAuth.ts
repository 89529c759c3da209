/**
 * Signs people in to services by OAuth 2.1. A tool asks the person during its call; the model never sees tokens.
 *
 * ```ts
 * import { Effect, Redacted } from "effect"
 * import { HttpClient, HttpClientRequest } from "effect/http"
 * import { Tool } from "effect-deepagents"
 * import { OAuth } from "effect-deepagents/net"
 *
 * const calendar: OAuth.Provider = {
 *   name: "calendar",
 *   server: "https://accounts.example.com",
 *   clientId: "…",
 *   scopes: ["calendar.read"]
 * }
 *
 * const today = Tool.make("events_today", {
 *   description: "Lists the events of today",
 *   parameters: {},
 *   execute: Effect.fnUntraced(function* () {
 *     const token = yield* OAuth.connect(calendar, { tenant: "user/ada" })
 *     const response = yield* HttpClient.execute(
 *       HttpClientRequest.bearerToken(HttpClientRequest.get("https://api.example.com/today"), Redacted.value(token))
 *     )
 *     return yield* response.text
 *   })
 * })
 * ```
 *
 * It supports the authorisation code with PKCE, and the device flow (RFC 8628). It needs the package `oauth4webapi`.
 * Servers must use https, except on this machine.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type { ToolContext } from "../core/ToolContext.ts"
import type { ToolError } from "../core/ToolError.ts"
import type { CredentialStore } from "../stores/CredentialStore.ts"
import type { StoreError } from "../stores/StoreError.ts"
import * as Way from "../support/http/redirect.ts"
import type { Redirect } from "../support/http/redirect.ts"
import { makeEffectCheck, makeLayerCheck } from "../support/options/check.ts"
import type { Account, Provider, Service, SignIn } from "./internal/oauth/model.ts"
import { make } from "./internal/oauth/signIns.ts"
import * as shapes from "./internal/shapes.ts"
import type { OAuthError } from "./OAuthError.ts"

export type { Account, SignIn } from "./internal/oauth/model.ts"

export type { Provider } from "./internal/oauth/model.ts"

export type { Redirect }

/**
 * Redirects to a page of the application. The page passes its address to {@link complete}, in any process that shares the
 * credential store.
 */
export const redirectTo = (address: string): Redirect => Way.fixed(address)

/** Signs people in, and stores tokens by tenant and account in the `CredentialStore`. */
export class OAuth extends Context.Service<OAuth, Service>()("effect-deepagents/OAuth") {}

const refuseLayer = makeLayerCheck("OAuth.layer", shapes.oAuthLayer)

/** Provides the service. Without a `redirect`, only the device flow works. Pending sign-ins end with the layer. */
export const layer = (options?: {
  /** The way back from a sign-in page. Default: the device flow only. */
  readonly redirect?: Redirect | undefined
}): Layer.Layer<OAuth, never, CredentialStore | HttpClient> =>
  refuseLayer(options) ?? Layer.effect(OAuth, make(options?.redirect))

/**
 * Returns a token inside of a tool. If the account is not signed in, or lacks scopes, it asks the person by
 * `ToolContext.ask` to open a page. The sign-in withdraws the question; a suspended run resumes with the answer. Parallel
 * calls share one sign-in. It fails as {@link accessToken}, with `Declined` or `Expired`, and with a `ToolError` if nobody
 * can be asked.
 */
export const connect = (
  provider: Provider,
  account: Account
): Effect.Effect<Redacted.Redacted, OAuthError | StoreError | ToolError, OAuth | ToolContext> =>
  OAuth.use((oauth) => oauth.connect(provider, account))

const refuseAccessToken = makeEffectCheck("OAuth.accessToken", shapes.oAuthAccessToken)

/**
 * Returns a token. It renews a token that expires within a minute, or that a service `refused`. Processes share one
 * renewal. It never asks: without a sign-in, it fails with `NotConnected`.
 */
export const accessToken = (
  provider: Provider,
  account: Account,
  options?: {
    /** The token that a service refused: it is renewed. Default: the current token, if it is valid for a minute. */
    readonly refused?: Redacted.Redacted | undefined
  }
): Effect.Effect<Redacted.Redacted, OAuthError | StoreError, OAuth> =>
  refuseAccessToken(options) ?? OAuth.use((oauth) => oauth.accessToken(provider, account, options))

/**
 * Begins a sign-in outside of a tool, for a page or a command of the application. It returns a pending sign-in again. A
 * sign-in expires after 300 seconds; the server of the device flow chooses its own limit.
 */
export const begin = (provider: Provider, account: Account): Effect.Effect<SignIn, OAuthError | StoreError, OAuth> =>
  OAuth.use((oauth) => oauth.begin(provider, account))

/**
 * Completes a sign-in once, with the full address of the callback. Your page must require the session of the person who
 * began, so that nobody completes the sign-in of others.
 */
export const complete = (callback: string): Effect.Effect<void, OAuthError | StoreError, OAuth> =>
  OAuth.use((oauth) => oauth.complete(callback))

/**
 * Signs out. It revokes and removes the tokens (`revoked`), or only removes them if the server can't revoke
 * (`forgotten`). If the server fails, they stay.
 */
export const revoke = (
  provider: Provider,
  account: Account
): Effect.Effect<"revoked" | "forgotten" | "none", OAuthError | StoreError, OAuth> =>
  OAuth.use((oauth) => oauth.revoke(provider, account))
