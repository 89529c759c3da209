/**
 * Signs what a thread waits for, and refuses what was changed: with a `SigningKey` in the context of its runs.
 *
 * While something waits, each write to the thread has an HMAC of the turn that waits and of all state: the requests with
 * their tools' digests and arguments, the decisions so far, what sub-agents have come to. It is bound to the thread.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { suspension } from "../internal/suspension.ts"
import { applyState, type Entry, type Thread } from "../Journal.ts"
import { canonical, type Json } from "../Json.ts"
import * as Message from "../Message.ts"
import { make, type SessionError } from "../SessionError.ts"
import { SigningKey } from "../SigningKey.ts"

/** The slot of the signature. No agent declares it, and none reads it. */
const slot = "deepagents/seal"

type Key = SigningKey["Service"]

const waits = (slots: ReadonlyMap<string, Json>): boolean => (slots.get(suspension.name) ?? null) !== null

/** The text that is signed: of data as it is read back. */
const textOf = (threadId: string, turn: Message.Message | undefined, slots: ReadonlyMap<string, Json>): string => {
  const state: Json = Object.fromEntries([...slots].filter(([name]) => name !== slot))
  const body: Json = JSON.parse(JSON.stringify([turn === undefined ? null : Message.encode(turn), state]))
  return canonical(["thread", 1, threadId, body])
}

const lastTurn = (messages: ReadonlyArray<Message.Message>) => messages.findLast(({ role }) => role === "ai")

/** Checks the seal of a thread that something waits in. */
const check = Effect.fnUntraced(function* (
  threadId: string,
  { messages, state }: NonNullable<Thread["checkpoint"]>,
  { isSigned }: Key
): Effect.fn.Return<void, SessionError> {
  const slots = new Map(Object.entries(state))
  if (!waits(slots)) return
  const mac = slots.get(slot)
  const refuse = (problem: string) => Effect.fail(make("open", threadId, { _tag: "Tampered", problem }))
  if (typeof mac !== "string") return yield* refuse("what it waits for has no signature")
  if (!(yield* isSigned(textOf(threadId, lastTurn(messages), slots), mac))) {
    return yield* refuse("what it waits for was changed, or was signed with another key or for another thread")
  }
})

const signing = (threadId: string, thread: Thread, { sign }: Key): Thread => {
  const slots = new Map(Object.entries(thread.checkpoint?.state ?? {}))
  let turn = lastTurn(thread.checkpoint?.messages ?? [])
  const append = Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>) {
    let isChanged = false
    for (const entry of entries) {
      if (entry._tag === "Message" && entry.message.role === "ai") turn = entry.message
      else if (entry._tag === "State") applyState(slots, entry)
      else continue
      isChanged = true
    }
    if (!isChanged || !waits(slots)) return yield* thread.append(entries)
    const value = yield* sign(textOf(threadId, turn, slots))
    return yield* thread.append([...entries, { _tag: "State", slot, value }])
  })
  return { ...thread, append }
}

/** A thread that is signed, if there is a key; one that a run goes on with where it waited is checked before. */
export const sealed = Effect.fnUntraced(function* (
  threadId: string,
  thread: Thread,
  isResumed: boolean
): Effect.fn.Return<Thread, SessionError> {
  const key = Option.getOrUndefined(yield* Effect.serviceOption(SigningKey))
  if (key === undefined) return thread
  if (isResumed && thread.checkpoint !== undefined) yield* check(threadId, thread.checkpoint, key)
  return signing(threadId, thread, key)
})
