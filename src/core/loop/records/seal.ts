/**
 * Signs the part of a thread that gates decide by, and finds changes. It needs a `SigningKey` in the context.
 *
 * Slots that gates read (those with `ifTampered`) are always signed. While a call is open, the signature also covers
 * the last turn and all state: requests with their arguments and tool digests, decisions, records of sub-agents. It is
 * bound to the thread and numbered. A `Ledger` in the context keeps the last number too, so that an older state of the
 * thread is found.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { sha256Sync } from "../../../support/store/sha256.ts"
import type { AnySlot } from "../../AgentState.ts"
import { always } from "../../Approval.ts"
import { type Checkpoint } from "../../Checkpoint.ts"
import { type Entry, type Thread } from "../../Journal.ts"
import { type Json } from "../../Json.ts"
import { Ledger, type LedgerError } from "../../Ledger.ts"
import * as Message from "../../Message.ts"
import { canonical } from "../../schema/jsonTree.ts"
import { make, type SessionError } from "../../SessionError.ts"
import { applyState } from "../../thread/parts.ts"
import { SigningKey } from "../../thread/signingKey.ts"
import { isOpenCallSlot } from "../../thread/suspension.ts"

/** The slot of the signature. No agent declares it, and none reads it. */
const sealSlot = "deepagents/seal"

/** A signature: its number in the thread, and the slots that it covers. */
const Seal = Schema.Struct({ number: Schema.Int, names: Schema.Array(Schema.String), mac: Schema.String })
type Seal = typeof Seal.Type

const decodeSeal = Schema.decodeUnknownResult(Seal)

type Slots = ReadonlyMap<string, Json>

interface Signer {
  readonly key: SigningKey["Service"]
  readonly ledger: Ledger["Service"] | undefined
  /** The slots that gates read. */
  readonly gated: ReadonlyArray<AnySlot>
}

export interface SealedThread {
  readonly thread: Thread
  /** The reason why slots that gates read were set back. */
  readonly problem?: string | undefined
  /** The entries that set them back, to be written with the first step. */
  readonly repairs: ReadonlyArray<Entry>
}

const isOpen = (slots: Slots): boolean => [...slots].some(([name, value]) => value !== null && isOpenCallSlot(name))

const isBelow = (name: string, { name: parent }: AnySlot): boolean => name === parent || name.startsWith(`${parent}/`)

const namesIn = (slots: Slots, gated: ReadonlyArray<AnySlot>): ReadonlyArray<string> => {
  const names = [...slots.keys()].filter((name) => name !== sealSlot)
  return isOpen(slots) ? names : names.filter((name) => gated.some((one) => isBelow(name, one)))
}

/** The text that is signed: of data as it is read back. */
const textOf = (
  threadId: string,
  number: number,
  turn: Message.Message | undefined,
  slots: Slots,
  names: ReadonlyArray<string>
): string => {
  const state: Json = names.map((name) => [name, slots.get(name) ?? null])
  const openTurn = turn === undefined || !isOpen(slots) ? null : Message.encode(turn)
  const body: Json = JSON.parse(JSON.stringify([openTurn, state]))
  return canonical(["thread", 2, threadId, number, body])
}

const lastTurn = (messages: ReadonlyArray<Message.Message>) => messages.findLast(({ role }) => role === "ai")

const markOf = (threadId: string): string => `seal/${sha256Sync(threadId)}`

const unavailable = (threadId: string) => (error: LedgerError) =>
  make("open", threadId, { _tag: "Unavailable", problem: `its signature can't be checked: ${error.message}` }, error)

/** Finds the problem of a signature; `undefined` for a valid one. */
const problemOf = Effect.fnUntraced(function* (
  threadId: string,
  { messages, state }: Checkpoint,
  seal: Seal | undefined,
  mark: number,
  { gated, key }: Signer
) {
  const slots = new Map(Object.entries(state))
  const names = namesIn(slots, gated)
  if (seal === undefined) {
    const isNew = names.length === 0 && mark === 0 && lastTurn(messages) === undefined
    return isNew ? undefined : "the state that gates read has no signature"
  }
  const text = textOf(threadId, seal.number, lastTurn(messages), slots, seal.names)
  if (!(yield* key.isSigned(text, seal.mac))) {
    return "the state that gates read was changed, or was signed with another key or for another thread"
  }
  const covered = new Set(seal.names)
  if (names.some((name) => !covered.has(name))) return "state that gates read was added without a signature"
  return seal.number < mark ? "it is an older state of the thread, put back" : undefined
})

/** Sets the slots that gates read to the values that are safe when nobody knows who wrote them. */
const repairsOf = ({ state }: Checkpoint, gated: ReadonlyArray<AnySlot>): ReadonlyArray<Entry> =>
  gated.flatMap((one): ReadonlyArray<Entry> => {
    const names = Object.keys(state).filter((name) => name !== one.name && isBelow(name, one))
    const value = one.ifTampered?.()
    return [
      ...(one.name in state || names.length > 0 ? [{ _tag: "State" as const, slot: one.name }] : []),
      ...(value === undefined ? [] : [{ _tag: "State" as const, slot: one.name, value }])
    ]
  })

const signing = (
  threadId: string,
  thread: Thread,
  last: { readonly number: number; readonly isValid: boolean },
  { gated, key, ledger }: Signer
): Thread => {
  const slots = new Map(Object.entries(thread.checkpoint?.state ?? {}))
  let turn = lastTurn(thread.checkpoint?.messages ?? [])
  let { isValid, number } = last
  const append = Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>) {
    let isChanged = !isValid
    for (const entry of entries) {
      if (entry._tag === "State") {
        isChanged ||= isOpen(slots) || isOpenCallSlot(entry.slot) || gated.some((one) => isBelow(entry.slot, one))
        applyState(slots, entry)
      } else if (entry._tag === "Message" && entry.message.role === "ai") {
        turn = entry.message
        isChanged ||= isOpen(slots)
      }
    }
    if (!isChanged) return yield* thread.append(entries)
    number++
    const names = namesIn(slots, gated)
    const mac = yield* key.sign(textOf(threadId, number, turn, slots, names))
    const step = yield* thread.append([...entries, { _tag: "State", slot: sealSlot, value: { number, names, mac } }])
    isValid = true
    if (ledger !== undefined) {
      yield* Effect.catch(ledger.raise(markOf(threadId), number), (error) =>
        Effect.logError(`The number of a signature could not be kept: ${error.message}`)
      )
    }
    return step
  })
  return { ...thread, append }
}

/**
 * Signs a thread, if there is a key. A bad signature fails a run that would resume an open call. Otherwise the slots
 * that gates read are reset, and the run continues.
 */
export const seal = Effect.fnUntraced(function* (
  threadId: string,
  thread: Thread,
  slots: ReadonlyArray<AnySlot>,
  isResumed: boolean
): Effect.fn.Return<SealedThread, SessionError> {
  const key = Option.getOrUndefined(yield* Effect.serviceOption(SigningKey))
  if (key === undefined) return { thread, repairs: [] }
  const ledger = Option.getOrUndefined(yield* Effect.serviceOption(Ledger))
  const gated = [...slots.filter(({ ifTampered, name }) => ifTampered !== undefined && name !== always.name), always]
  const signer: Signer = { key, ledger, gated }
  const { checkpoint } = thread
  const mark = ledger === undefined ? 0 : yield* Effect.mapError(ledger.mark(markOf(threadId)), unavailable(threadId))
  if (checkpoint === undefined) {
    return { thread: signing(threadId, thread, { number: mark, isValid: false }, signer), repairs: [] }
  }
  const storedSeal = Result.getOrUndefined(decodeSeal(checkpoint.state[sealSlot]))
  const problem = yield* problemOf(threadId, checkpoint, storedSeal, mark, signer)
  if (problem === undefined) {
    const last = { number: storedSeal?.number ?? mark, isValid: storedSeal !== undefined }
    return { thread: signing(threadId, thread, last, signer), repairs: [] }
  }
  if (isResumed && isOpen(new Map(Object.entries(checkpoint.state)))) {
    return yield* make("open", threadId, { _tag: "Tampered", problem })
  }
  const repairs = repairsOf(checkpoint, gated)
  const state = new Map(Object.entries(checkpoint.state))
  for (const entry of repairs) if (entry._tag === "State") applyState(state, entry)
  const repaired = { ...thread, checkpoint: { ...checkpoint, state: Object.fromEntries(state) } }
  const last = { number: Math.max(mark, storedSeal?.number ?? 0), isValid: false }
  return { thread: signing(threadId, repaired, last, signer), problem, repairs }
})
