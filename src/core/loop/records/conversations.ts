/** The conversations of sub-agents in the records of calls. */
import * as Effect from "effect/Effect"
import type { AgentError } from "../../AgentError.ts"
import type { Snapshot } from "../../AgentState.ts"
import { isObject, type Json } from "../../Json.ts"
import * as Message from "../../Message.ts"
import { type Spent, type Usage, zero } from "../../Usage.ts"
import type { Attempt, Live } from "../live.ts"
import { invalid, keptAt, slotsOf } from "./inside.ts"
import { note, progressOf } from "./journal.ts"
import { decodeProgress } from "./records.ts"
import { ownSnapshot } from "./store.ts"

export interface Conversation {
  readonly messages: ReadonlyArray<Message.Message>
  readonly state: Snapshot
  readonly usage: Usage
  readonly rounds: number
  readonly spent?: Spent | undefined
}

/** The key of a message that the parent has as well: the record refers to it by its id. */
const shared = "of the parent"

/** The conversation of the sub-agent at a place, if there is one. */
export const conversationOf = (attempt: Attempt, place: string): Effect.Effect<Conversation | undefined, AgentError> =>
  Effect.suspend(() => {
    const record = keptAt(attempt, place)
    if (record === undefined) return Effect.undefined
    const conversation =
      record.live === undefined
        ? readConversation(record.below, attempt.live.run.messages)
        : conversationIn(record.live)
    return Effect.mapError(conversation, (problem) => invalid(attempt.live, place, problem))
  })

/** The conversation of a sub-agent that ran in this process. It needs no decoding. */
const conversationIn = (live: Live): Effect.Effect<Conversation | undefined, string> => {
  const { messages, state } = live.run
  if (messages.length === 0) return Effect.undefined
  return Effect.mapBoth(Effect.fromResult(decodeProgress(progressOf(live))), {
    onFailure: ({ message }) => message,
    onSuccess: (progress) => ({
      messages: messages.slice(),
      state: { ...ownSnapshot(state), ...slotsOf(live) },
      ...progress
    })
  })
}

const readConversation = Effect.fnUntraced(function* (
  below: ReadonlyMap<string, Json>,
  ofParent: ReadonlyArray<Message.Message>
) {
  const messages: Array<Message.Message> = []
  let byId: ReadonlyMap<string, Message.Message> | undefined
  for (let at = 0; ; at++) {
    const json = below.get(`m/${at}`)
    if (json === undefined) break
    const id = isObject(json) ? json[shared] : undefined
    if (typeof id === "string") {
      byId ??= new Map(ofParent.map((message) => [message.id, message]))
      const message = byId.get(id)
      if (message === undefined) return yield* Effect.fail(`the conversation has no message "${id}" any more`)
      messages.push(message)
      continue
    }
    messages.push(yield* Effect.mapError(Message.decode(json), (error) => error.message))
  }
  const state: Snapshot = Object.fromEntries(
    [...below].flatMap(([name, value]) => (name.startsWith("s/") ? [[name.slice(2), value] as const] : []))
  )
  if (messages.length === 0) return undefined
  // A crash may come between its first message and its first step.
  const used = below.get("u") ?? { usage: { ...zero }, rounds: 0 }
  const progress = yield* Effect.mapError(Effect.fromResult(decodeProgress(used)), (error) => error.message)
  return { messages, state, ...progress } satisfies Conversation
})

/**
 * Binds a sub-agent's run to its record. Synchronises the journal with the child's conversation: it may begin with
 * messages, and a resumed child discards the partial turn.
 */
export const attach = (
  { call, live }: Attempt,
  place: string,
  child: Live,
  storedMessages: ReadonlyArray<Message.Message>
): void => {
  const record = live.records.inside?.get(call.id)?.get(place)
  if (record !== undefined) record.live = child
  if (child.records.place === undefined) return
  const { messages } = child.run
  const ofParent = messages.length > storedMessages.length ? new Set(live.run.messages) : undefined
  for (let at = 0; at < Math.max(messages.length, storedMessages.length); at++) {
    const message = messages[at]
    const slot = `${child.records.place}/m/${at}`
    if (message === undefined) note(child.records, { _tag: "State", slot })
    else if (message !== storedMessages[at]) {
      const value = ofParent?.has(message) === true ? { [shared]: message.id } : Message.encode(message)
      note(child.records, { _tag: "State", slot, value })
    }
  }
}
