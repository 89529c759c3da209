/** Types of signing in. */
import type { Effect, Redacted } from "effect"
import type { ToolContext, ToolError } from "effect-deepagents"
import { OAuth, type OAuthError } from "effect-deepagents/net"
import type { StoreError } from "effect-deepagents/stores"
import { expectTypeOf } from "vitest"

declare const provider: OAuth.Provider

expectTypeOf(OAuth.connect(provider, { tenant: "ada" })).toEqualTypeOf<
  Effect.Effect<
    Redacted.Redacted,
    OAuthError.OAuthError | StoreError.StoreError | ToolError.ToolError,
    OAuth.OAuth | ToolContext.ToolContext
  >
>()

expectTypeOf(OAuth.accessToken(provider, { tenant: "ada" })).toEqualTypeOf<
  Effect.Effect<Redacted.Redacted, OAuthError.OAuthError | StoreError.StoreError, OAuth.OAuth>
>()

// @ts-expect-error a flow is one of two
OAuth.begin({ ...provider, flow: "implicit" }, { tenant: "ada" })
