/** Parts of a thread that a journal and its readers share: streamed turns, slots of the state, locks. */
import * as Context from "effect/Context"
import * as Schema from "effect/Schema"
import * as Content from "../Content.ts"
import type { Json } from "../Json.ts"
import { ai, type AiMessage } from "../Message.ts"

/** A piece of a streamed text: `from` is the length of the text before it, in UTF-16 units. */
const piece = { from: Schema.Finite, text: Schema.String }

/**
 * The streamed part of a turn since the part before. `turn` identifies the turn. Pieces may overlap: after a failure, a
 * part is stored again with the next.
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
 * Puts the parts of a turn together: a partial answer (`Message.isPartial`), never a finished one. Calls that were being
 * written are in `malformedToolCalls`, so that none of them can run. `undefined` where nothing was said yet.
 */
export const partial = (parts: ReadonlyArray<Part>): AiMessage | undefined => {
  const last = parts.at(-1)
  const texts = { Text: "", Reasoning: "" }
  const calls = new Map<string, { readonly name: string; raw: string }>()
  for (const part of parts) {
    if (part.turn !== last?.turn) continue
    for (const one of part.pieces) {
      if (one._tag !== "Call") {
        texts[one._tag] = texts[one._tag].slice(0, one.from) + one.text
        continue
      }
      const call = calls.get(one.id) ?? { name: one.name, raw: "" }
      call.raw = call.raw.slice(0, one.from) + one.text
      calls.set(one.id, call)
    }
  }
  if (last === undefined || (texts.Text === "" && texts.Reasoning === "" && calls.size === 0)) return undefined
  const content = [
    ...(texts.Reasoning === "" ? [] : [Content.reasoning(texts.Reasoning)]),
    ...(texts.Text === "" ? [] : [Content.text(texts.Text)])
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
  { slot, value }: { readonly slot: string; readonly value?: Json }
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
 * The locks of the runs that this one is inside of, as `hold` gave them: a run inside of a run can't wait for that one.
 */
export const Held = Context.Reference<ReadonlyArray<unknown>>("effect-deepagents/Journal/Held", {
  defaultValue: () => []
})
