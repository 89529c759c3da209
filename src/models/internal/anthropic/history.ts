/**
 * The messages of a request, from a history that was made valid for any provider: roles alternate, results come first in
 * the turn behind their calls, thinking is where it was thought.
 */
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { placeholders } from "../dialect.ts"
import type { AiTurn, AnsweredCall, Turn } from "../normalize.ts"
import type { ToolNames } from "../toolNames.ts"
import { ownData, saidPart, shownPart } from "./content.ts"
import { isVerbatim, type Layout, toLayout } from "./layout.ts"
import type { Message, Part, RedactedThinkingPart, ThinkingPart, ToolResultPart } from "./wire.ts"

/** Thinking goes back only with what proves that Claude thought it. */
const thinkingPart = (text: string, data: JsonObject | undefined): ThinkingPart | RedactedThinkingPart | undefined => {
  const { redacted, signature } = data ?? {}
  if (typeof redacted === "string" && redacted !== "") return { type: "redacted_thinking", data: redacted }
  if (typeof signature === "string" && signature !== "") return { type: "thinking", thinking: text, signature }
  return undefined
}

const callPart = (call: AnsweredCall, names: ToolNames): Part => {
  const caller = call.data?.["caller"]
  return {
    type: "tool_use",
    id: call.id,
    name: names.wire(call.name),
    input: call.arguments,
    ...(isObject(caller) ? { caller } : {})
  }
}

/** What the model said and called, in the order in which it did. */
const saidParts = (turn: AiTurn, names: ToolNames): ReadonlyArray<Part> => {
  const said = turn.content.map((block) =>
    block.type === "text" ? saidPart(block) : thinkingPart(block.text, ownData(block.providerData))
  )
  const good = turn.calls.filter((call) => call.raw === undefined).map((call) => callPart(call, names))
  const bad = turn.calls.filter((call) => call.raw !== undefined).map((call) => callPart(call, names))
  const layout = toLayout(turn.data?.["layout"])
  const count = (kind: Layout[number]) => layout.filter((item) => item === kind).length
  const fits = count("said") === said.length && count("call") === good.length && count("malformed") === bad.length
  if (layout.length === 0 || !fits) return [...said, ...good, ...bad].filter((part) => part !== undefined)
  const next = { said: said.values(), call: good.values(), malformed: bad.values() }
  return layout
    .map((item) => (typeof item === "string" ? next[item].next().value : item))
    .filter((part) => part !== undefined)
}

/** The results of a turn's calls, and the media that may not be in a result: an error is told in text only. */
const resultParts = (turn: AiTurn): ReadonlyArray<Part> => {
  const results: Array<ToolResultPart> = []
  const media: Array<Part> = []
  for (const { answer, id, name } of turn.calls) {
    const texts = answer.content.filter((block) => block.type === "text")
    if (!answer.isError) {
      results.push({ type: "tool_result", tool_use_id: id, content: answer.content.map(shownPart) })
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

interface Spoken {
  readonly assistant: ReadonlyArray<Part>
  readonly user: ReadonlyArray<Part>
}

const spoken = (turn: Turn, names: ToolNames): Spoken => {
  switch (turn.role) {
    case "system":
      return { assistant: [], user: [shownPart(placeholders.systemAsHuman(turn.text))] }
    case "human":
      return { assistant: [], user: turn.content.map(shownPart) }
    case "ai":
      return { assistant: saidParts(turn, names), user: resultParts(turn) }
  }
}

/** Where something of the history ended up: the block of a message. */
export interface Place {
  readonly message: number
  readonly block: number
}

export interface Encoded {
  readonly messages: ReadonlyArray<Message>
  /** The last block of each message of the history that is asked for, by its index. */
  readonly places: ReadonlyMap<number, Place>
}

/**
 * Makes an encoder for one session. A turn that it has seen is not encoded again: the normaliser keeps the identity of
 * turns. `wanted` are indices of the history of which the place is asked.
 */
export const makeHistoryEncoder = () => {
  let known = new WeakMap<Turn, Spoken>()
  let namesKey: ToolNames | undefined

  return (turns: ReadonlyArray<Turn>, names: ToolNames, wanted: ReadonlySet<number>): Encoded => {
    if (names !== namesKey) {
      known = new WeakMap()
      namesKey = names
    }
    const messages: Array<{ readonly role: Message["role"]; readonly content: Array<Part> }> = []
    const places = new Map<number, Place>()
    const say = (role: Message["role"], content: ReadonlyArray<Part>): void => {
      if (content.length === 0) return
      const last = messages.at(-1)
      if (last?.role === role) last.content.push(...content)
      else messages.push({ role, content: [...content] })
    }
    const here = (index: number, back = 0): void => {
      const message = messages.length - 1
      const block = (messages[message]?.content.length ?? 0) - 1 - back
      if (wanted.has(index) && block >= 0) places.set(index, { message, block })
    }
    for (const turn of turns) {
      const parts = known.get(turn) ?? spoken(turn, names)
      known.set(turn, parts)
      say("assistant", parts.assistant)
      if (turn.role === "ai" && wanted.size > 0) here(turn.index)
      say("user", parts.user)
      if (wanted.size === 0) continue
      if (turn.role !== "ai") here(turn.index)
      else
        turn.calls.forEach(({ answer }, at) => {
          if (answer.index !== undefined) here(answer.index, parts.user.length - 1 - at)
        })
    }
    const last = messages.at(-1)
    // A turn in which Anthropic's own tools were paused goes on when it is sent back as it is.
    if (last?.role !== "user" && last?.content.some(isVerbatim) !== true) say("user", [shownPart(placeholders.goOn)])
    return { messages, places }
  }
}
