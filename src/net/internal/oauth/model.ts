/** Values of the OAuth service. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { ToolContext } from "../../../core/ToolContext.ts"
import type { ToolError } from "../../../core/ToolError.ts"
import type { StoreError } from "../../../stores/StoreError.ts"
import type { OAuthError } from "../../OAuthError.ts"

/** The endpoints of a server without metadata. Callbacks that name an issuer must name `issuer`. */
interface Endpoints {
  readonly issuer: string
  readonly authorize?: string | undefined
  readonly token: string
  readonly device?: string | undefined
  readonly revoke?: string | undefined
}

/** A service, with the registration of this application. */
export interface Provider {
  /** Name for people, and key of the stored tokens. */
  readonly name: string
  /** The issuer, whose metadata are read, or the endpoints. */
  readonly server: string | Endpoints
  readonly clientId: string
  readonly clientSecret?: Redacted.Redacted | undefined
  /** How to send the secret. Default: as in the metadata of the server, else `basic`. */
  readonly authentication?: "basic" | "post" | undefined
  readonly scopes?: ReadonlyArray<string> | undefined
  /** More parameters of the authorisation request, such as `{ access_type: "offline" }`. */
  readonly parameters?: { readonly [name: string]: string } | undefined
  /** `device` needs no callback: the person types a code on another device. Default: `code`. */
  readonly flow?: "code" | "device" | undefined
}

/** The owner of a sign-in. */
export interface Account {
  /** Namespace of the credential store. */
  readonly tenant: string
  /** One of several accounts at the same service. Default: `default`. */
  readonly account?: string | undefined
}

/** A pending sign-in. */
export interface SignIn {
  /** The page to open. */
  readonly url: string
  readonly origin: string
  /** The code of the device flow. */
  readonly userCode: string | undefined
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
  /** Waits for the end of the sign-in, in this process. */
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
