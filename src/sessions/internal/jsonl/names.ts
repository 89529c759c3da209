/** Names of the files of threads. */
import * as Effect from "effect/Effect"
import { fileNameOf } from "../../../support/store/hash.ts"

/** The names that are remembered: to make one takes a thread of the pool. */
const remembered = 4_096

/** Gives the file of a thread. */
export const makeFileOf = (): ((threadId: string) => Effect.Effect<string>) => {
  const names = new Map<string, string>()
  return (threadId) =>
    Effect.suspend(() => {
      const known = names.get(threadId)
      if (known !== undefined) return Effect.succeed(known)
      return Effect.map(fileNameOf(threadId), (name) => {
        if (names.size === remembered) names.clear()
        names.set(threadId, `${name}.jsonl`)
        return `${name}.jsonl`
      })
    })
}

/** The name that a file gets when its thread is removed, but others were forked from it. */
export const baseOf = (file: string, by: string): string => `${file}.${by}.base`

export const isThread = (file: string): boolean => /^[a-z0-9-]*\.[0-9a-f]{64}\.jsonl$/u.test(file)
export const isBase = (file: string): boolean => /\.jsonl\.[0-9a-f-]+\.base$/u.test(file)
