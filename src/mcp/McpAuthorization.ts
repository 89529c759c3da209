/** The place where the requests to HTTP servers get their authorisation: by nothing, unless a layer says otherwise. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FetchLike } from "../support/http/fetchLike.ts"
import type { HttpServer } from "./McpConfig.ts"
import type { McpError } from "./McpError.ts"

/**
 * Wraps the `fetch` of one server: adds what the server wants to see, and asks for it where it is missing. It is called
 * once a connection, in the scope of the connection. What the promise is rejected with reaches the user as the cause of
 * an {@link McpError}, or as it is, if it is one.
 */
export type Authorize = (
  server: { readonly name: string; readonly config: HttpServer },
  fetch: FetchLike
) => Effect.Effect<FetchLike, McpError, Scope.Scope>

/** The authorisation of the servers of `McpServers.layer`. */
export const McpAuthorization = Context.Reference<Authorize | undefined>("effect-deepagents/mcp/McpAuthorization", {
  defaultValue: () => undefined
})
