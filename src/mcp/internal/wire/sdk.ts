/** The official client of the protocol, loaded when the first server is asked for. */
import type * as Client from "@modelcontextprotocol/client"
import type * as Effect from "effect/Effect"
import { loadPeer } from "../../../support/effect/peer.ts"
import { McpError } from "../../McpError.ts"

/** The module. */
export type Sdk = typeof Client

/** Loads the module for a server. */
export const load = (server: string): Effect.Effect<Sdk, McpError> =>
  loadPeer(
    "@modelcontextprotocol/client",
    () => import("@modelcontextprotocol/client"),
    (message, cause) => new McpError({ server, reason: "MissingPackage", message, cause })
  )
