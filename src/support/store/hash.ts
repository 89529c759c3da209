/** Names that are made of what they name. */
import * as Effect from "effect/Effect"
import * as Hex from "effect/encoding/Hex"

/** The SHA-256 of a text or of bytes, in hexadecimal digits. */
export const sha256 = (data: string | Uint8Array<ArrayBuffer>): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() =>
      globalThis.crypto.subtle.digest("SHA-256", typeof data === "string" ? new TextEncoder().encode(data) : data)
    ),
    (digest) => Hex.encode(new Uint8Array(digest))
  )

/**
 * The name of a file for a text that callers choose: what a person can read of it, and its hash. No two texts have the
 * same file, on no file system, and none leads to another folder.
 */
export const fileNameOf = (text: string): Effect.Effect<string> => {
  const readable = text
    .slice(0, 40)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/gu, "-")
  return Effect.map(sha256(text), (hash) => `${readable}.${hash}`)
}
