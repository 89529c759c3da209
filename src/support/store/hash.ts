/** Hashes, and file names made of them. */
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

/** Makes a file name of any text: a readable part and a hash. Different texts have different files, on every file system. */
export const fileNameOf = (text: string): Effect.Effect<string> => {
  const readable = text
    .slice(0, 40)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/gu, "-")
  return Effect.map(sha256(text), (hash) => `${readable}.${hash}`)
}
