/** The types of keys and proofs without `oauth4webapi`: declarations must not need the optional package. */

/** A key of Web Crypto, as the runtime declares it. */
type Key = typeof globalThis extends {
  readonly crypto: { readonly subtle: { generateKey(...args: ReadonlyArray<never>): Promise<infer Made> } }
}
  ? Extract<Made, { readonly type: string }>
  : never

/** The key pair of a client. */
export interface KeyPair {
  readonly privateKey: Key
  readonly publicKey: Key
}

/** Proves that a client has the key of its tokens (DPoP, RFC 9449). */
export interface Proofs {
  /** Calculates the thumbprint of the public key (RFC 7638). */
  calculateThumbprint(): Promise<string>
}
