/**
 * Cache breakpoints: at most four a request, after messages that ask for one, on the tools, the system prompt, the end
 * of the history, and at the hints of the request, or else at the end of the user's turn before, which was the end of
 * the last request.
 */
import type { EncodedHistory, Place } from "./history.ts"
import type { CacheControl, Message, Part, Prompt } from "./wire.ts"

const limit = 4

type Lifetime = "5m" | "1h"

/** A breakpoint of a lifetime. */
export const cacheControl = (ttl: Lifetime = "5m"): CacheControl =>
  ttl === "1h" ? { type: "ephemeral", ttl } : { type: "ephemeral" }

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
  // A change of the tools carries no breakpoint.
  const last = messages.findLastIndex(({ role }) => role !== "system")
  const before = messages.findLastIndex(({ role }, index) => index < last && role === "user")
  return [endOf(messages, last), endOf(messages, before)]
}

/** Messages with a breakpoint, by the messages without: their text is kept by their identity. */
const markedMessages = new WeakMap<Message, Pick<Mark, "block" | "ttl"> & { readonly marked: Message }>()

const markMessage = (message: Message, { block, ttl }: Mark): Message => {
  const last = markedMessages.get(message)
  if (last?.block === block && last.ttl === ttl) return last.marked
  const part = message.content[block]
  if (part === undefined) return message
  // The parts that may carry a breakpoint were settled before.
  const own = { ...part, cache_control: cacheControl(ttl) } as Part
  const marked = { ...message, content: message.content.with(block, own) }
  markedMessages.set(message, { block, ttl, marked })
  return marked
}

const mark = (messages: ReadonlyArray<Message>, marks: ReadonlyArray<Mark>): ReadonlyArray<Message> => {
  const marked = [...messages]
  for (const one of marks) {
    const message = marked[one.message]
    if (message !== undefined) marked[one.message] = markMessage(message, one)
  }
  return marked
}

const onLast = <A extends object>(items: ReadonlyArray<A>, control: CacheControl): ReadonlyArray<A> => {
  // A tool that is loaded on demand may not carry a breakpoint.
  const at = items.findLastIndex((item) => !("defer_loading" in item && item.defer_loading === true))
  const last = items[at]
  return last === undefined ? items : items.with(at, { ...last, cache_control: control })
}

/** A breakpoint, and its lifetime. */
interface Mark extends Place {
  readonly ttl: Lifetime
}

/** Finds the places of breakpoints: first the caller's, then the automatic ones. */
const placesOf = ({ messages, ...prompt }: Prompt, { hints, own, places, ttl }: Marks): ReadonlyArray<Mark> => {
  const isMarked = (tool: object): boolean => "cache_control" in tool
  const { system = [], tools = [] } = prompt
  const marked = tools.filter(isMarked).length
  const isAutomatic = ttl !== undefined
  const onTools = marked > 0 ? marked : isAutomatic && tools.length > 0 ? 1 : 0
  const room = limit - onTools - (isAutomatic && system.length > 0 ? 1 : 0)
  const [tail, before] = lastTwo(messages)
  const latest = (indices: Iterable<number>) => [...indices].sort((left, right) => right - left)
  const at = (index: number): Place | undefined => {
    const place = places.get(index)
    return place === undefined ? undefined : settle(messages, place)
  }
  const ownMarks = latest(own.keys()).map((index) => [at(index), own.get(index) ?? "5m"] as const)
  const automatic = ttl === undefined ? [] : [tail, ...latest(hints).map(at), before].map((one) => [one, ttl] as const)
  const marks: Array<Mark> = []
  for (const [place, lifetime] of [...ownMarks, ...automatic]) {
    if (place === undefined || marks.length >= room) continue
    if (marks.some((one) => one.message === place.message && one.block === place.block)) continue
    marks.push({ ...place, ttl: lifetime })
  }
  return marks
}

/** The API wants breakpoints that last longer before the others. */
const inOrder = (marks: ReadonlyArray<Mark>): ReadonlyArray<Mark> => {
  const last = marks.findLast(({ ttl }) => ttl === "1h")
  if (last === undefined) return marks
  const isBefore = ({ block, message }: Mark) =>
    message < last.message || (message === last.message && block <= last.block)
  return marks.map((mark) => (isBefore(mark) ? { ...mark, ttl: "1h" } : mark))
}

/**
 * The wanted breakpoints. `hints` are indices of the history, `own` the indices of messages whose options ask for one,
 * with its lifetime. `ttl` is that of automatic breakpoints, `undefined` for none.
 */
interface Marks {
  readonly places: EncodedHistory["places"]
  readonly hints: ReadonlyArray<number>
  readonly own: ReadonlyMap<number, Lifetime>
  readonly ttl: Lifetime | undefined
}

/** Puts the breakpoints into a prompt. */
export const withBreakpoints = <P extends Prompt>(prompt: P, wanted: Marks): P => {
  const { messages, system = [], tools = [] } = prompt
  const sortedMarks = placesOf(prompt, wanted).toSorted(
    (left, right) => left.message - right.message || left.block - right.block
  )
  const marks = inOrder(sortedMarks)
  const marked = mark(messages, marks)
  if (wanted.ttl === undefined) return { ...prompt, messages: marked }
  const control = cacheControl(marks.some(({ ttl }) => ttl === "1h") ? "1h" : wanted.ttl)
  const isMarked = tools.some((tool) => "cache_control" in tool)
  return {
    ...prompt,
    ...(tools.length === 0 || isMarked ? {} : { tools: onLast(tools, control) }),
    ...(system.length === 0 ? {} : { system: onLast(system, control) }),
    messages: marked
  }
}
