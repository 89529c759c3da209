/** The values that signing in is told and gives. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { ToolContext } from "../../../core/ToolContext.ts"
import type { ToolError } from "../../../core/ToolError.ts"
import type { StoreError } from "../../../stores/StoreError.ts"
import type { OAuthError } from "../../OAuthError.ts"

/**
 * The endpoints of a server that publishes no metadata. `issuer` tells servers apart, and is what a callback that names
 * one is checked with.
 */
export interface Endpoints {
  readonly issuer: string
  readonly authorize?: string | undefined
  readonly token: string
  readonly device?: string | undefined
  readonly revoke?: string | undefined
}

/**
 * A service to sign in to, and this application as its server knows it. `server` is the issuer, whose metadata are
 * read, or the endpoints. `parameters` are further ones of the authorisation request: `{ access_type: "offline" }`.
 */
export interface Provider {
  /** The name that a person reads, and that tokens are kept by. */
  readonly name: string
  readonly server: string | Endpoints
  readonly clientId: string
  readonly clientSecret?: Redacted.Redacted | undefined
  /** Way of sending the secret: as the server's metadata say by default, and as `basic` where they say nothing. */
  readonly authentication?: "basic" | "post" | undefined
  readonly scopes?: ReadonlyArray<string> | undefined
  readonly parameters?: { readonly [name: string]: string } | undefined
  /** `device` is for where no browser can come back to: a code is typed in on any other device. `code` by default. */
  readonly flow?: "code" | "device" | undefined
}

/**
 * The owner of a sign-in: `tenant` is the namespace of the store of credentials, `account` one of several of the same
 * service (`default` by default).
 */
export interface Account {
  readonly tenant: string
  readonly account?: string | undefined
}

/**
 * A sign-in that was begun: the page to open, whose it is, and the code to type in there, if it is a device's.
 * `finished` waits for its end, in this process.
 */
export interface SignIn {
  readonly url: string
  readonly origin: string
  readonly userCode: string | undefined
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
  readonly finished: Effect.Effect<void, OAuthError | StoreError>
}

/** The operations of `OAuth`. */
export interface Service {
  readonly connect: (
    provider: Provider,
    account: Account
  ) => Effect.Effect<Redacted.Redacted, OAuthError | StoreError | ToolError, ToolContext>
  readonly accessToken: (
    provider: Provider,
    account: Account,
    options?: { readonly refused?: Redacted.Redacted | undefined }
  ) => Effect.Effect<Redacted.Redacted, OAuthError | StoreError>
  readonly begin: (provider: Provider, account: Account) => Effect.Effect<SignIn, OAuthError | StoreError>
  readonly complete: (callback: string) => Effect.Effect<void, OAuthError | StoreError>
  readonly revoke: (
    provider: Provider,
    account: Account
  ) => Effect.Effect<"revoked" | "forgotten" | "none", OAuthError | StoreError>
}
