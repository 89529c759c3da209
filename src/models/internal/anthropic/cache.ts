/**
 * Cache breakpoints: at most four a request, on the tools, the system prompt, the end of the history, and where the
 * request hints at, or else at the end of the user's turn before, which was the end of the last request.
 */
import type { Encoded, Place } from "./history.ts"
import type { CacheControl, Message, Part, Prompt } from "./wire.ts"

const limit = 4

const cacheable: ReadonlySet<string> = new Set(["text", "image", "document", "tool_use", "tool_result"])

/** The last block, up to a place, on which there may be a breakpoint: thinking may not carry one. */
const settle = (messages: ReadonlyArray<Message>, { block, message }: Place): Place | undefined => {
  const content = messages[message]?.content ?? []
  for (let at = Math.min(block, content.length - 1); at >= 0; at--) {
    if (cacheable.has(content[at]?.type ?? "")) return { message, block: at }
  }
  return undefined
}

const endOf = (messages: ReadonlyArray<Message>, message: number): Place | undefined =>
  settle(messages, { message, block: Infinity })

const lastTwo = (messages: ReadonlyArray<Message>): ReadonlyArray<Place | undefined> => {
  const ends = messages.map((_, index) => index).filter((index) => messages[index]?.role === "user")
  const last = messages.length - 1
  return [endOf(messages, last), endOf(messages, ends.findLast((index) => index < last) ?? -1)]
}

const mark = (messages: ReadonlyArray<Message>, places: ReadonlyArray<Place>, control: CacheControl) => {
  const marked = [...messages]
  for (const { block, message } of places) {
    const one = marked[message]
    const part = one?.content[block]
    if (one === undefined || part === undefined) continue
    // The parts that may carry a breakpoint were settled before.
    const own = { ...part, cache_control: control } as Part
    marked[message] = { ...one, content: one.content.with(block, own) }
  }
  return marked
}

const onLast = <A extends object>(items: ReadonlyArray<A>, control: CacheControl): ReadonlyArray<A> => {
  const last = items.at(-1)
  return last === undefined ? items : items.with(-1, { ...last, cache_control: control })
}

/** Puts the breakpoints into a prompt. */
export const withBreakpoints = <P extends Prompt>(
  prompt: P,
  places: Encoded["places"],
  hints: ReadonlyArray<number>,
  ttl: "5m" | "1h"
): P => {
  const control: CacheControl = ttl === "1h" ? { type: "ephemeral", ttl } : { type: "ephemeral" }
  const { messages, system = [], tools = [] } = prompt
  const room = limit - (tools.length > 0 ? 1 : 0) - (system.length > 0 ? 1 : 0)
  const [tail, before] = lastTwo(messages)
  const hinted = hints
    .toSorted((left, right) => right - left)
    .map((hint) => {
      const place = places.get(hint)
      return place === undefined ? undefined : settle(messages, place)
    })
  const chosen: Array<Place> = []
  for (const place of [tail, ...hinted, before]) {
    if (place === undefined || chosen.length >= room) continue
    if (!chosen.some((one) => one.message === place.message && one.block === place.block)) chosen.push(place)
  }
  return {
    ...prompt,
    ...(tools.length === 0 ? {} : { tools: onLast(tools, control) }),
    ...(system.length === 0 ? {} : { system: onLast(system, control) }),
    messages: mark(messages, chosen, control)
  }
}
