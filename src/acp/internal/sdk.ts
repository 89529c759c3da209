/** The package of the protocol, loaded at its first use. */
import type * as Effect from "effect/Effect"
import { loadPeer } from "../../support/effect/peer.ts"
import { AcpError } from "../AcpError.ts"

/** The stable version 1 of the protocol. */
export const loadSdk = loadPeer(
  "@agentclientprotocol/sdk",
  () => import("@agentclientprotocol/sdk"),
  (detail) => new AcpError({ reason: "NotInstalled", detail })
)

export type Sdk = Effect.Success<typeof loadSdk>
