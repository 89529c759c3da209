/** The share of the input of threads that came from the provider's cache, and the reasons for misses. */
import type { AiMessage } from "../../core/Message.ts"
import type { StoredEntry } from "../../core/SessionStore.ts"

/** The events between two rounds, if the second round did not find the first in the cache. */
export type Break = "summary" | "model" | "pause" | "run" | "request" | "none"

/** The use of the cache by one thread or more. */
export interface CacheUse {
  /** Tokens of rounds that could have found the round before. */
  readonly input: number
  /** The tokens among them that were read from the cache. */
  readonly read: number
  readonly breaks: ReadonlyArray<Break>
}

/** Shorter prompts are cached by no provider. */
const shortest = 2_048

/** The time for which providers keep a prompt unless they are paid for more, in milliseconds. */
const keepTime = 5 * 60_000

interface Round {
  readonly message: AiMessage
  readonly at: number
}

const breakOf = (before: Round, after: Round, between: ReadonlyArray<StoredEntry>, isCached: boolean): Break => {
  if (!isCached) return "none"
  if (between.some(({ entry }) => entry._tag === "Compaction")) return "summary"
  if (before.message.model !== after.message.model) return "model"
  if (after.at - before.at > keepTime) return "pause"
  return between.some(({ entry }) => entry._tag === "RunStarted") ? "run" : "request"
}

/** Reads the use of the cache from the entries of a thread, in their order. */
export const cacheUseOf = (entries: ReadonlyArray<StoredEntry>): CacheUse => {
  const breaks: Array<Break> = []
  const isCached = entries.some(
    ({ entry }) =>
      entry._tag === "Message" && entry.message.role === "ai" && (entry.message.usage?.cacheReadTokens ?? 0) > 0
  )
  let [input, read] = [0, 0]
  let last: Round | undefined
  let between: Array<StoredEntry> = []
  for (const one of entries) {
    const { at, entry } = one
    if (entry._tag !== "Message" || entry.message.role !== "ai" || entry.message.usage === undefined) {
      between.push(one)
      continue
    }
    const round = { message: entry.message, at }
    const { cacheReadTokens, inputTokens } = entry.message.usage
    const before = last?.message.usage?.inputTokens ?? 0
    if (last !== undefined && before >= shortest) {
      input += inputTokens
      read += Math.min(cacheReadTokens, inputTokens)
      if (cacheReadTokens < Math.min(before, inputTokens) / 2) breaks.push(breakOf(last, round, between, isCached))
    }
    last = round
    between = []
  }
  return { input, read, breaks }
}

/** Adds the uses of threads. */
export const addUses = (uses: ReadonlyArray<CacheUse>): CacheUse => ({
  input: uses.reduce((sum, one) => sum + one.input, 0),
  read: uses.reduce((sum, one) => sum + one.read, 0),
  breaks: uses.flatMap(({ breaks }) => breaks)
})

/** Each break in words, and the remedy. */
const words: Readonly<Record<Break, readonly [what: string, advice: string]>> = {
  pause: ["a pause of more than 5 minutes", "let the model's layer cache for an hour where its provider can"],
  summary: ["a summary of the conversation", "take a model with a larger window, or summarise later"],
  model: ["a change of the model", "keep one model for a session"],
  run: ["a prompt or tools that differ from those of the run before", "keep times and listings out of prompts"],
  request: ["a prompt or tools that changed inside of a run", "use stableTools of ToolSelection"],
  none: ["answers of a server that reports no cache", "set cacheMarks, if it is Claude at a gateway"]
}

/**
 * Describes a use: its share, and the reasons for misses, the most frequent first. `undefined` if too little was asked.
 */
export const describeUse = ({
  breaks,
  input,
  read
}: CacheUse): { readonly share: number; readonly detail: string; readonly advice: string | undefined } | undefined => {
  if (input === 0) return undefined
  const share = read / input
  const counts = Array.from(new Set(breaks), (name) => ({
    words: words[name],
    count: breaks.filter((one) => one === name).length
  })).sort((left, right) => right.count - left.count)
  const causes = counts.map(({ count, words: [what] }) => `after ${what} (${count} ×)`).join(", ")
  const paid = causes === "" ? "" : `; the rest cost its full price, ${causes}`
  const detail = `recent sessions sent the same text again and again, and the provider gave a lower price for ${Math.round(share * 100)} % of it${paid}`
  const advice = counts[0]?.words[1]
  return { share, detail, advice: advice && `nothing is broken; to pay less: ${advice}` }
}
