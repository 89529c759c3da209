/** Authorises the requests to HTTP servers. Without a layer they get no authorisation. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FetchLike } from "../support/http/fetchLike.ts"
import type { HttpServer } from "./McpConfig.ts"
import type { McpError } from "./McpError.ts"

/**
 * Wraps the `fetch` of one server: adds the authorisation that the server wants, and requests it if it is missing. It
 * runs once per connection, in the scope of the connection. A rejection of the promise is the cause of an {@link
 * McpError}; an `McpError` stays as it is.
 */
export type Authorize = (
  server: { readonly name: string; readonly config: HttpServer },
  fetch: FetchLike
) => Effect.Effect<FetchLike, McpError, Scope.Scope>

/** The authorisation of the servers of `McpServers.layer`. */
export const McpAuthorization = Context.Reference<Authorize | undefined>("effect-deepagents/mcp/McpAuthorization", {
  defaultValue: () => undefined
})
