/**
 * Writes the messages of a request from a normalised history: roles alternate, results come first in the turn after
 * their calls, and thinking stays in place.
 */
import type { ToolChange } from "../../../core/ChatModel.ts"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { withChanges } from "../turn/changes.ts"
import { placeholders } from "../turn/dialect.ts"
import { type Folded, makeFold } from "../turn/fold.ts"
import type { AiTurn, AnsweredCall, Turn } from "../turn/normalize.ts"
import type { ToolNames } from "../turn/toolNames.ts"
import { ownData, saidPart, shownPart, shownParts } from "./content.ts"
import { answeredBy, askedBy, isVerbatim, type Layout, toLayout } from "./layout.ts"
import type { Message, Part, RedactedThinkingPart, ThinkingPart, ToolResultPart } from "./wire.ts"

/** Thinking goes back only with what proves that Claude thought it. */
const thinkingPart = (text: string, data: JsonObject | undefined): ThinkingPart | RedactedThinkingPart | undefined => {
  const { redacted, signature } = data ?? {}
  if (typeof redacted === "string" && redacted !== "") return { type: "redacted_thinking", data: redacted }
  if (typeof signature === "string" && signature !== "") return { type: "thinking", thinking: text, signature }
  return undefined
}

const callerOf = (call: AnsweredCall): JsonObject | undefined => {
  const caller = call.data?.["caller"]
  return isObject(caller) ? caller : undefined
}

const callPart = (call: AnsweredCall, names: ToolNames, unpairedIds: ReadonlySet<string>): Part => {
  const caller = callerOf(call)
  const isLeft = typeof caller?.["tool_id"] === "string" && unpairedIds.has(caller["tool_id"])
  return {
    type: "tool_use",
    id: call.id,
    name: names.wire(call.name),
    input: call.arguments,
    ...(caller === undefined || isLeft ? {} : { caller })
  }
}

const isThinking = ({ type }: Part): boolean => type === "thinking" || type === "redacted_thinking"

/** Writes the texts and calls of the model, in their order. It drops the blocks of Anthropic's in `unpairedIds`. */
const saidParts = (turn: AiTurn, names: ToolNames, unpairedIds: ReadonlySet<string>): ReadonlyArray<Part> => {
  const parts = allParts(turn, names, unpairedIds)
  // The thoughts led to a dropped part.
  return unpairedIds.size > 0 && parts.every(isThinking) ? [] : parts
}

/** The layout that was kept, if it is that of this turn. */
const layoutOf = (turn: AiTurn): Layout => {
  const layout = toLayout(turn.data?.["layout"])
  const count = (kind: Layout[number]) => layout.filter((item) => item === kind).length
  const bad = turn.calls.filter((call) => call.raw !== undefined).length
  const fits =
    count("said") === turn.content.length && count("call") === turn.calls.length - bad && count("malformed") === bad
  return fits ? layout : []
}

const allParts = (turn: AiTurn, names: ToolNames, unpairedIds: ReadonlySet<string>): ReadonlyArray<Part> => {
  const contentParts = turn.content.map((block) =>
    block.type === "text" ? saidPart(block) : thinkingPart(block.text, ownData(block.providerData))
  )
  const good = turn.calls.filter((call) => call.raw === undefined).map((call) => callPart(call, names, unpairedIds))
  const bad = turn.calls.filter((call) => call.raw !== undefined).map((call) => callPart(call, names, unpairedIds))
  const layout = layoutOf(turn)
  if (layout.length === 0) return [...contentParts, ...good, ...bad].filter((part) => part !== undefined)
  const next = { said: contentParts.values(), call: good.values(), malformed: bad.values() }
  return layout
    .map((item) => {
      if (typeof item === "string") return next[item].next().value
      const id = askedBy(item) ?? answeredBy(item)
      return id !== undefined && unpairedIds.has(id) ? undefined : item
    })
    .filter((part) => part !== undefined)
}

/** The results of a turn's calls, and the media that may not be in a result: an error is told in text only. */
const resultParts = (turn: AiTurn): ReadonlyArray<Part> => {
  const results: Array<ToolResultPart> = []
  const media: Array<Part> = []
  for (const { answer, id, name } of turn.calls) {
    const texts = answer.content.filter((block) => block.type === "text")
    if (!answer.isError) {
      results.push({ type: "tool_result", tool_use_id: id, content: shownParts(answer.content, answer.options) })
      continue
    }
    const others = answer.content.filter((block) => block.type !== "text")
    if (others.length > 0) media.push(shownPart(placeholders.movedMedia(name)), ...others.map(shownPart))
    const content = others.length > 0 ? [...texts, placeholders.mediaBelow] : texts
    results.push({
      type: "tool_result",
      tool_use_id: id,
      content: content.map((block) => ({ type: "text", text: block.text })),
      is_error: true
    })
  }
  return [...results, ...media]
}

interface SpokenParts {
  readonly assistant: ReadonlyArray<Part>
  readonly user: ReadonlyArray<Part>
}

/** The ids of a block of Anthropic's own tools. */
interface ToolPairing {
  readonly asked?: string | undefined
  readonly answered?: string | undefined
}

/** A turn with blocks of Anthropic's own tools, and their ids in order. */
interface PairedTurn {
  readonly turn: AiTurn
  readonly ids: ReadonlyArray<ToolPairing>
}

const findPairs = (found: Array<PairedTurn>, turn: Turn): void => {
  if (turn.role !== "ai") return
  const ids = layoutOf(turn).flatMap((item) =>
    typeof item === "string" ? [] : [{ asked: askedBy(item), answered: answeredBy(item) }]
  )
  if (ids.length > 0) found.push({ turn, ids })
}

/**
 * Finds parts to drop: calls of Anthropic's own tools without an answer, and answers without a call. The API rejects
 * both, except in a paused turn and for calls of a running tool.
 */
const unpaired = (
  paired: ReadonlyArray<PairedTurn>,
  last: Turn | undefined
): ReadonlyMap<Turn, ReadonlySet<string>> => {
  const open = new Map<string, AiTurn>()
  const unpairedIds = new Map<Turn, Set<string>>()
  const leave = (turn: AiTurn | undefined, id: string): void => {
    if (turn !== undefined) unpairedIds.set(turn, (unpairedIds.get(turn) ?? new Set()).add(id))
  }
  for (const { ids, turn } of paired) {
    for (const { answered, asked } of ids) {
      if (asked !== undefined) {
        leave(open.get(asked), asked)
        open.set(asked, turn)
      } else if (answered !== undefined && !open.delete(answered)) leave(turn, answered)
    }
  }
  const calls = last?.role === "ai" ? last.calls : []
  const running = new Set(calls.map((call) => callerOf(call)?.["tool_id"]))
  // A search of Anthropic's that was asked for beside calls is answered with the results of the calls.
  const goesOn =
    last?.role === "ai" && (calls.length === 0 ? last.stopReason === "pause" : last.stopReason === "toolCalls")
  for (const [id, turn] of open) if (turn !== last || !(goesOn || running.has(id))) leave(turn, id)
  return unpairedIds
}

const nothing: ReadonlySet<string> = new Set()

/** A turn without the blocks of Anthropic's tools in `ids`. */
interface CutTurn {
  readonly turn: Turn
  readonly ids: ReadonlySet<string>
}

type Item = Turn | CutTurn | ToolChange

/** Makes the cutter of one session. A turn that is cut in the same way is the same item. */
const makeCutter = () => {
  const cuts = new WeakMap<Turn, CutTurn>()
  return (item: Turn | ToolChange, unpairedIds: ReadonlyMap<Turn, ReadonlySet<string>>): Item => {
    const ids = "role" in item ? unpairedIds.get(item) : undefined
    if (ids === undefined || !("role" in item)) return item
    const last = cuts.get(item)
    if (last !== undefined && [...last.ids].join() === [...ids].join()) return last
    const cut: CutTurn = { turn: item, ids }
    cuts.set(item, cut)
    return cut
  }
}

const turnOf = (item: Item | undefined): Turn | undefined =>
  item === undefined || "after" in item ? undefined : "turn" in item ? item.turn : item

const say = (messages: Array<Message>, role: Message["role"], content: ReadonlyArray<Part>): void => {
  if (content.length === 0) return
  const last = messages[messages.length - 1]
  if (last?.role === role) messages[messages.length - 1] = { role, content: [...last.content, ...content] }
  else messages.push({ role, content })
}

const encodeTurn = (turn: Turn, names: ToolNames, unpairedIds: ReadonlySet<string>): SpokenParts => {
  switch (turn.role) {
    case "system":
      return { assistant: [], user: [shownPart(placeholders.systemAsHuman(turn.text))] }
    case "human":
      return { assistant: [], user: shownParts(turn.content, turn.options) }
    case "ai":
      return { assistant: saidParts(turn, names, unpairedIds), user: resultParts(turn) }
  }
}

/** The place of a message of the history on the wire: a block of a message. */
export interface Place {
  readonly message: number
  readonly block: number
}

/** Finds the last block of a message of the history, by its index. */
const placeOf = (
  index: number,
  items: ReadonlyArray<Item>,
  { ends, lasts, output }: Folded<Message>,
  speeches: WeakMap<Item, SpokenParts>
): Place | undefined => {
  const at = items.findLastIndex((item) => {
    const own = turnOf(item)?.index ?? -1
    return own >= 0 && own <= index
  })
  const [item, end = 0] = [items[at], ends[at]]
  const turn = turnOf(item)
  const parts = item === undefined ? undefined : speeches.get(item)
  if (turn === undefined || parts === undefined) return undefined
  const length = lasts[at]?.content.length ?? 0
  const call = turn.role === "ai" ? turn.calls.findIndex(({ answer }) => answer.index === index) : -1
  if (turn.index !== index && call < 0) return undefined
  if (call >= 0) return { message: end - 1, block: length - parts.user.length + call }
  if (turn.role !== "ai" || parts.user.length === 0) return { message: end - 1, block: length - 1 }
  // The results are in a message of their own, unless the model said nothing before them.
  const message = parts.assistant.length > 0 ? end - 2 : (ends[at - 1] ?? 0) - 1
  const own = parts.assistant.length > 0 ? output[message] : lasts[at - 1]
  return { message, block: (own?.content.length ?? 0) - 1 }
}

export interface EncodedHistory {
  readonly messages: ReadonlyArray<Message>
  /** The last block of each message of the history that is asked for, by its index. */
  readonly places: ReadonlyMap<number, Place>
}

/**
 * Makes an encoder for one session. It encodes the turns that changed since the request before: the normaliser keeps the identity of
 * turns. `wanted` are indices of the history of which the place is asked.
 */
export const makeHistoryEncoder = (writeChange: (change: ToolChange, names: ToolNames) => ReadonlyArray<Part>) => {
  const pairsOf = makeFold(findPairs)
  const cut = makeCutter()
  const speeches = new WeakMap<Item, SpokenParts>()
  const encode = makeFold<Item, Message, ToolNames>((messages, item, { before, key: names }) => {
    if ("after" in item) {
      const parts = writeChange(item, names)
      // Changes behind one turn are one message.
      if (before !== undefined && "after" in before) say(messages, "system", parts)
      else if (parts.length > 0) messages.push({ role: "system", content: parts })
      return
    }
    const [turn, ids] = "turn" in item ? [item.turn, item.ids] : [item, nothing]
    const parts = encodeTurn(turn, names, ids)
    speeches.set(item, parts)
    say(messages, "assistant", parts.assistant)
    say(messages, "user", parts.user)
  })

  return (
    turns: ReadonlyArray<Turn>,
    names: ToolNames,
    wanted: ReadonlyArray<number>,
    changes: ReadonlyMap<Turn, ReadonlyArray<ToolChange>>
  ): EncodedHistory => {
    const unpairedIds = unpaired(pairsOf(turns).output, turns.at(-1))
    const changed = withChanges(turns, changes)
    const items = unpairedIds.size === 0 ? changed : changed.map((item) => cut(item, unpairedIds))
    const encoded = encode(items, names)
    const messages = [...encoded.output]
    const places = new Map<number, Place>()
    for (const index of wanted) {
      const place = placeOf(index, items, encoded, speeches)
      if (place !== undefined && place.message >= 0 && place.block >= 0) places.set(index, place)
    }
    const last = messages.findLast(({ role }) => role !== "system")
    // A turn in which Anthropic's own tools were paused goes on when it is sent back as it is.
    if (last?.role !== "user" && last?.content.some(isVerbatim) !== true) {
      say(messages, "user", [shownPart(placeholders.goOn)])
    }
    return { messages, places }
  }
}
