/**
 * Writes the messages of a request from a normalised history: roles alternate, results come first in the turn after
 * their calls, and thinking stays in place.
 */
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { placeholders } from "../turn/dialect.ts"
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

interface ToolPairing {
  readonly asked?: string | undefined
  readonly answered?: string | undefined
}

/** The ids that a turn's blocks of Anthropic's own tools have, in order. */
const verbatimIds = (turn: Turn): ReadonlyArray<ToolPairing> => {
  const layout = turn.role === "ai" ? layoutOf(turn) : []
  return layout.flatMap((item) =>
    typeof item === "string" ? [] : [{ asked: askedBy(item), answered: answeredBy(item) }]
  )
}

/**
 * Finds parts to drop: calls of Anthropic's own tools without an answer, and answers without a call. The API rejects
 * both, except in a paused turn and for calls of a running tool.
 */
const unpaired = (
  turns: ReadonlyArray<Turn>,
  idsOf: (turn: Turn) => ReadonlyArray<ToolPairing>
): ReadonlyMap<Turn, ReadonlySet<string>> => {
  const open = new Map<string, Turn>()
  const unpairedIds = new Map<Turn, Set<string>>()
  const leave = (turn: Turn | undefined, id: string): void => {
    if (turn !== undefined) unpairedIds.set(turn, (unpairedIds.get(turn) ?? new Set()).add(id))
  }
  for (const turn of turns) {
    for (const { answered, asked } of idsOf(turn)) {
      if (asked !== undefined) {
        leave(open.get(asked), asked)
        open.set(asked, turn)
      } else if (answered !== undefined && !open.delete(answered)) leave(turn, answered)
    }
  }
  const last = turns.at(-1)
  const calls = last?.role === "ai" ? last.calls : []
  const running = new Set(calls.map((call) => callerOf(call)?.["tool_id"]))
  // A search of Anthropic's that was asked for beside calls is answered with the results of the calls.
  const goesOn =
    last?.role === "ai" && (calls.length === 0 ? last.stopReason === "pause" : last.stopReason === "toolCalls")
  for (const [id, turn] of open) if (turn !== last || !(goesOn || running.has(id))) leave(turn, id)
  return unpairedIds
}

const nothing: ReadonlySet<string> = new Set()

/** Messages that were written, by the parts with which they end: their text is kept by their identity. */
const begunWith = new WeakMap<ReadonlyArray<Part>, Message>()
const continuedWith = new WeakMap<ReadonlyArray<Part>, { readonly before: Message; readonly whole: Message }>()

const beginMessage = (role: Message["role"], content: ReadonlyArray<Part>): Message => {
  const cachedMessage = begunWith.get(content)
  if (cachedMessage?.role === role) return cachedMessage
  const message: Message = { role, content }
  begunWith.set(content, message)
  return message
}

const continued = (before: Message, content: ReadonlyArray<Part>): Message => {
  const cachedPair = continuedWith.get(content)
  if (cachedPair?.before === before) return cachedPair.whole
  const whole: Message = { role: before.role, content: [...before.content, ...content] }
  continuedWith.set(content, { before, whole })
  return whole
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

export interface EncodedHistory {
  readonly messages: ReadonlyArray<Message>
  /** The last block of each message of the history that is asked for, by its index. */
  readonly places: ReadonlyMap<number, Place>
}

/**
 * Makes an encoder for one session. A turn that it has seen is not encoded again: the normaliser keeps the identity of
 * turns. `wanted` are indices of the history of which the place is asked.
 */
export const makeHistoryEncoder = () => {
  let cache = new WeakMap<Turn, SpokenParts & { readonly unpairedKey: string }>()
  const ids = new WeakMap<Turn, ReadonlyArray<ToolPairing>>()
  let namesKey: ToolNames | undefined

  return (
    turns: ReadonlyArray<Turn>,
    names: ToolNames,
    wanted: ReadonlySet<number>,
    changesOf: (turn: Turn) => ReadonlyArray<Part>
  ): EncodedHistory => {
    if (names !== namesKey) {
      cache = new WeakMap()
      namesKey = names
    }
    const messages: Array<Message> = []
    const places = new Map<number, Place>()
    const say = (role: Message["role"], content: ReadonlyArray<Part>): void => {
      if (content.length === 0) return
      const last = messages[messages.length - 1]
      if (last?.role === role) messages[messages.length - 1] = continued(last, content)
      else messages.push(beginMessage(role, content))
    }
    const markPlace = (index: number, back = 0): void => {
      const message = messages.length - 1
      const block = (messages[message]?.content.length ?? 0) - 1 - back
      if (wanted.has(index) && block >= 0) places.set(index, { message, block })
    }
    const idsOf = (turn: Turn): ReadonlyArray<ToolPairing> => {
      const own = ids.get(turn) ?? verbatimIds(turn)
      ids.set(turn, own)
      return own
    }
    const unpairedIds = unpaired(turns, idsOf)
    for (const turn of turns) {
      const turnIds = unpairedIds.get(turn) ?? nothing
      const key = [...turnIds].join()
      const before = cache.get(turn)
      const parts = before?.unpairedKey === key ? before : { ...encodeTurn(turn, names, turnIds), unpairedKey: key }
      cache.set(turn, parts)
      say("assistant", parts.assistant)
      if (turn.role === "ai" && wanted.size > 0) markPlace(turn.index)
      say("user", parts.user)
      const changes = changesOf(turn)
      if (changes.length > 0) messages.push(beginMessage("system", changes))
      if (wanted.size === 0) continue
      if (turn.role !== "ai") markPlace(turn.index)
      else
        turn.calls.forEach(({ answer }, at) => {
          if (answer.index !== undefined) markPlace(answer.index, parts.user.length - 1 - at)
        })
    }
    const last = messages.findLast(({ role }) => role !== "system")
    // A turn in which Anthropic's own tools were paused goes on when it is sent back as it is.
    if (last?.role !== "user" && last?.content.some(isVerbatim) !== true) say("user", [shownPart(placeholders.goOn)])
    return { messages, places }
  }
}
