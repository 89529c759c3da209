/**
 * The journal of a run: it writes down what it does, as it does it, so that its thread outlives it.
 *
 * A run with a `threadId` needs a journal: it begins with what the thread has come to, and each of its steps is stored
 * before the next begins. A session store gives one (`effect-deepagents/sessions`).
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Decision, Request } from "./Approval.ts"
import type { Checkpoint } from "./Checkpoint.ts"
import * as Content from "./Content.ts"
import { Json } from "./Json.ts"
import { ai, type AiMessage, Message } from "./Message.ts"
import type { SessionError } from "./SessionError.ts"
import { Spent, Usage } from "./Usage.ts"

/** A piece of what a turn has said: `from` is how much of it was said before, in UTF-16 units. */
const piece = { from: Schema.Finite, text: Schema.String }

/**
 * The part of a turn that was streamed since the part before. `turn` tells turns apart; a part of another one begins anew.
 * Pieces may overlap with what is known: a part whose storing failed is stored again with the next.
 */
export const Part = Schema.TaggedStruct("Part", {
  turn: Schema.String,
  model: Schema.String,
  pieces: Schema.Array(
    Schema.Union([
      Schema.TaggedStruct("Text", piece),
      Schema.TaggedStruct("Reasoning", piece),
      Schema.TaggedStruct("Call", { id: Schema.String, name: Schema.String, ...piece })
    ])
  )
})
export interface Part extends Schema.Schema.Type<typeof Part> {}

/**
 * An entry of the journal. `State` is a slot's new value (without one, the slot is gone, and every slot whose name begins
 * with its name and a `/`), `Compaction` what the model sees of the history (tokens,
 * estimated), `Request` and `Decision` are of approvals, `Step` is how much was used so far. A message without an
 * answer yet for each of its calls is one that a crash cut off, and so is a turn of which there are only parts.
 */
export const Entry = Schema.Union([
  Schema.TaggedStruct("Message", { message: Message }),
  Schema.TaggedStruct("State", { slot: Schema.String, value: Schema.optionalKey(Json) }),
  Schema.TaggedStruct("Compaction", { tokensBefore: Schema.Finite, tokensAfter: Schema.Finite }),
  Schema.TaggedStruct("Request", { request: Request }),
  Schema.TaggedStruct("Decision", { decision: Decision }),
  Schema.TaggedStruct("RunStarted", { runId: Schema.String, agent: Schema.String }),
  Schema.TaggedStruct("Step", { usage: Usage, rounds: Schema.Finite, spent: Schema.optionalKey(Spent) }),
  Schema.TaggedStruct("RunSettled", { runId: Schema.String, outcome: Schema.String }),
  Part
])
export type Entry = typeof Entry.Type

/**
 * Puts the parts of a turn together: a partial answer (`Message.isPartial`), never a finished one. Calls that were being
 * written are in `malformedToolCalls`, so that none of them can run. `undefined` where nothing was said yet.
 */
export const partial = (parts: ReadonlyArray<Part>): AiMessage | undefined => {
  const last = parts.at(-1)
  const said = { Text: "", Reasoning: "" }
  const calls = new Map<string, { readonly name: string; raw: string }>()
  for (const part of parts) {
    if (part.turn !== last?.turn) continue
    for (const one of part.pieces) {
      if (one._tag !== "Call") {
        said[one._tag] = said[one._tag].slice(0, one.from) + one.text
        continue
      }
      const call = calls.get(one.id) ?? { name: one.name, raw: "" }
      call.raw = call.raw.slice(0, one.from) + one.text
      calls.set(one.id, call)
    }
  }
  if (last === undefined || (said.Text === "" && said.Reasoning === "" && calls.size === 0)) return undefined
  const content = [
    ...(said.Reasoning === "" ? [] : [Content.reasoning(said.Reasoning)]),
    ...(said.Text === "" ? [] : [Content.text(said.Text)])
  ]
  const malformedToolCalls = [...calls].map(([id, call]) => ({
    id,
    ...call,
    problem: "the turn was cut off inside of it"
  }))
  return ai(content, { id: last.turn, model: last.model, stopReason: "interrupted", malformedToolCalls })
}

/** Applies a `State` entry to the slots that came before it. */
export const applyState = (
  slots: Map<string, Json>,
  { slot, value }: Extract<Entry, { readonly _tag: "State" }>
): void => {
  if (value !== undefined) {
    slots.set(slot, value)
    return
  }
  slots.delete(slot)
  const below = `${slot}/`
  for (const name of slots.keys()) if (name.startsWith(below)) slots.delete(name)
}

/**
 * A thread that a run writes to. `checkpoint` is what it had come to, `undefined` for a new one; `ended` is the outcome
 * of its last run (`RunSettled`), if nothing was written after it. `append` stores entries in one go, all or none, and
 * gives the number of entries that the thread has then; it fails with `Conflict` if somebody else wrote meanwhile.
 *
 * With `part`, what the model streams is stored while it does, at most 100 ms late. A part is lost or stored, as the
 * store is able to; the next message takes the place of all parts before it. `append` and `part` are
 * not called at once.
 */
export interface Thread {
  readonly checkpoint: Checkpoint | undefined
  readonly ended?: string | undefined
  readonly step: number
  readonly append: (entries: ReadonlyArray<Entry>) => Effect.Effect<number, SessionError>
  readonly part?: ((part: Part) => Effect.Effect<void, SessionError>) | undefined
}

/**
 * The journal: opens threads, and makes those that are not there. `hold` takes the turn of a thread until its scope is
 * closed: a run takes it before it opens the thread, so that of two runs one waits, or fails with `Busy` before it asks
 * or stores anything.
 */
export class Journal extends Context.Service<
  Journal,
  {
    readonly open: (threadId: string) => Effect.Effect<Thread, SessionError>
    readonly hold?: ((threadId: string) => Effect.Effect<unknown, SessionError, Scope.Scope>) | undefined
  }
>()("effect-deepagents/Journal") {}

/**
 * The locks of the runs that this one is inside of, as `hold` gave them: a run inside of a run can't wait for that one.
 */
export const Held = Context.Reference<ReadonlyArray<unknown>>("effect-deepagents/Journal/Held", {
  defaultValue: () => []
})
