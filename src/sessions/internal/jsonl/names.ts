/** Names of the files of threads. */
import * as Effect from "effect/Effect"
import { fileNameOf } from "../../../support/store/hash.ts"

/** The most remembered names. A hash uses a thread of the pool. */
const remembered = 4_096

/** Makes the function from a thread to its file. */
export const makeFileOf = (): ((threadId: string) => Effect.Effect<string>) => {
  const names = new Map<string, string>()
  return (threadId) =>
    Effect.suspend(() => {
      const cachedName = names.get(threadId)
      if (cachedName !== undefined) return Effect.succeed(cachedName)
      return Effect.map(fileNameOf(threadId), (name) => {
        if (names.size === remembered) names.clear()
        names.set(threadId, `${name}.jsonl`)
        return `${name}.jsonl`
      })
    })
}

/** The new name of the file of a removed thread with forks. */
export const baseOf = (file: string, by: string): string => `${file}.${by}.base`

export const isThread = (file: string): boolean => /^[a-z0-9-]*\.[0-9a-f]{64}\.jsonl$/u.test(file)
export const isBase = (file: string): boolean => /\.jsonl\.[0-9a-f-]+\.base$/u.test(file)
