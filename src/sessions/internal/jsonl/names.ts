import * as Effect from "effect/Effect"

const extension = ".jsonl"

/**
 * The file of a thread: what a person can read of its id, and the hash of the id, by which no two ids have one file, on
 * no file system, and none leads elsewhere.
 */
export const fileOf = (threadId: string): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(threadId))),
    (digest) => {
      const hash = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")
      const readable = threadId
        .slice(0, 40)
        .toLowerCase()
        .replaceAll(/[^a-z0-9]+/gu, "-")
      return `${readable}.${hash}${extension}`
    }
  )

/** Where the file goes when its thread is removed, but others were forked from it. */
export const baseOf = (file: string, by: string): string => `${file}.${by}.base`

export const isThread = (file: string): boolean => /^[a-z0-9-]*\.[0-9a-f]{64}\.jsonl$/u.test(file)
export const isBase = (file: string): boolean => /\.jsonl\.[0-9a-f-]+\.base$/u.test(file)
