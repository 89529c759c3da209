/**
 * Names of the files of threads.
 */
import * as Effect from "effect/Effect"
import { fileNameOf } from "../../../support/hash.ts"

/** The file of a thread. */
export const fileOf = (threadId: string): Effect.Effect<string> =>
  Effect.map(fileNameOf(threadId), (name) => `${name}.jsonl`)

/** The name that a file gets when its thread is removed, but others were forked from it. */
export const baseOf = (file: string, by: string): string => `${file}.${by}.base`

export const isThread = (file: string): boolean => /^[a-z0-9-]*\.[0-9a-f]{64}\.jsonl$/u.test(file)
export const isBase = (file: string): boolean => /\.jsonl\.[0-9a-f-]+\.base$/u.test(file)
