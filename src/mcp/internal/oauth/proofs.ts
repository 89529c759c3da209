/** The key that tokens are bound to where a server takes proofs of possession (DPoP). */
import type { DpopKeyPair, OAuthDiscoveryState } from "@modelcontextprotocol/client"
import * as Predicate from "effect/Predicate"
import type { Sdk } from "../wire/sdk.ts"

/** A key, as it is kept. */
export interface Key {
  readonly privateJwk: DpopKeyPair["publicJwk"]
  readonly publicJwk: DpopKeyPair["publicJwk"]
  readonly thumbprint: string
}

const algorithm = { name: "ECDSA", namedCurve: "P-256" }

/** The pair of a key that was kept, or a new one. */
export const keyPairOf = async (sdk: Sdk, key: Key | undefined): Promise<DpopKeyPair> => {
  if (key === undefined) return sdk.generateDpopKeyPair({ alg: "ES256", extractable: true })
  const { privateJwk, publicJwk, thumbprint } = key
  const [privateKey, publicKey] = await Promise.all([
    crypto.subtle.importKey("jwk", { ...privateJwk }, algorithm, true, ["sign"]),
    crypto.subtle.importKey("jwk", { ...publicJwk }, algorithm, true, ["verify"])
  ])
  return { privateKey, publicKey, publicJwk, thumbprint, alg: "ES256" }
}

/** Tells whether an authorisation server takes the proofs that we can make. */
export const takesProofs = (metadata: OAuthDiscoveryState["authorizationServerMetadata"]): boolean => {
  const known = Predicate.hasProperty(metadata, "dpop_signing_alg_values_supported")
    ? metadata.dpop_signing_alg_values_supported
    : undefined
  return Array.isArray(known) && known.includes("ES256")
}
