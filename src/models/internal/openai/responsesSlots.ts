/** The output items of a response while it is streamed, each once, however a server numbers and names them. */
import type { JsonObject } from "../../../core/Json.ts"
import { merge, objectOf, objectsOf, placeOf, stringOf } from "../wire/read.ts"

/** An output item while it is streamed. Text is that of each content part, or of the reasoning, or the arguments. */
export interface Slot {
  item: JsonObject
  /** Its place among the others. */
  readonly at: number
  readonly texts: Map<number, string>
  started: boolean
}

/** The items of one response. */
export interface Slots {
  /** The item that an event is about, which may be a new one. */
  readonly of: (event: JsonObject) => Slot
  /** Merges the fields of an event into its item. */
  readonly learn: (slot: Slot, item: JsonObject) => void
  /** Takes in the list of items with which a response ends. */
  readonly conclude: (output: ReadonlyArray<JsonObject>) => void
  /** All of them, in order. */
  readonly all: () => ReadonlyArray<Slot>
}

type Key = "id" | "call_id" | "type"

const keyOf = (item: JsonObject | undefined, key: Key): string | undefined => stringOf(item?.[key]) || undefined

const compare = (left: JsonObject, right: JsonObject, key: Key): "same" | "other" | "unknown" => {
  const [one, two] = [keyOf(left, key), keyOf(right, key)]
  return one === undefined || two === undefined ? "unknown" : one === two ? "same" : "other"
}

/**
 * Reports whether an item can't be the one of a slot. Of a call the call's id and the type decide: items of it have
 * changing ids, and its output has the id of the call.
 */
const isOther = ({ item }: Slot, newItem: JsonObject): boolean => {
  const call = compare(item, newItem, "call_id")
  if (call === "same" && compare(item, newItem, "type") === "other") return true
  return call === "other" || (call === "unknown" && compare(item, newItem, "id") === "other")
}

/** Reports whether a text that was streamed may be this one: servers leave deltas out, and trim. */
const isTextOf = (streamed: string | undefined, finalText: string | undefined): boolean => {
  const [before, whole] = [(streamed ?? "").trim(), (finalText ?? "").trim()]
  return whole.startsWith(before) || before.startsWith(whole)
}

/** Reports whether an item may be a slot that was streamed under another id. Some servers renumber. */
const mayBe = ({ item, texts }: Slot, newItem: JsonObject): boolean =>
  compare(item, newItem, "call_id") !== "other" &&
  compare(item, newItem, "type") !== "other" &&
  (keyOf(newItem, "type") !== "message" ||
    objectsOf(newItem["content"]).every((part, at) => isTextOf(texts.get(at), stringOf(part["text"]))))

/** The key of a call: its output has the same id, and another type. */
const callKeyOf = (item: JsonObject): string | undefined => {
  const call = keyOf(item, "call_id")
  return call === undefined ? undefined : `${keyOf(item, "type") ?? ""} ${call}`
}

/** Makes an empty collection. */
export const makeSlots = (): Slots => {
  const slots: Array<Slot> = []
  const byIndex = new Map<number, Slot>()
  const byId = new Map<string, Slot>()
  const byCall = new Map<string, Slot>()

  const add = (at: number): Slot => {
    const slot: Slot = { item: {}, at, texts: new Map(), started: false }
    slots.push(slot)
    return slot
  }

  const learn = (slot: Slot, item: JsonObject): void => {
    slot.item = merge(slot.item, item)
    const id = keyOf(item, "id")
    const call = callKeyOf(slot.item)
    if (id !== undefined) byId.set(id, slot)
    if (call !== undefined && !byCall.has(call)) byCall.set(call, slot)
  }

  const find = (event: JsonObject, index: number | undefined): Slot | undefined => {
    const isNew = event["type"] === "response.output_item.added"
    const item = objectOf(event["item"]) ?? {}
    const id = stringOf(event["item_id"]) ?? keyOf(item, "id") ?? ""
    const there = index === undefined ? undefined : byIndex.get(index)
    if (there !== undefined && keyOf(there.item, "id") === id && !isOther(there, item)) return there
    const named = byId.get(id) ?? (id === "" ? byCall.get(callKeyOf(item) ?? "") : undefined)
    if (named !== undefined && !isOther(named, item)) return named
    // A new item at a taken index has a wrong index. For other events, the item's id changed.
    if (there !== undefined && !(isNew && isOther(there, item))) return there
    return index === undefined && !isNew ? slots.at(-1) : undefined
  }

  const of = (event: JsonObject): Slot => {
    const index = placeOf(event["output_index"])
    const existingSlot = find(event, index)
    if (existingSlot !== undefined) return existingSlot
    const slot = add(index ?? slots.length)
    if (index !== undefined) byIndex.set(index, slot)
    return slot
  }

  const conclude = (output: ReadonlyArray<JsonObject>): void => {
    const claims = new Map<Slot, JsonObject>()
    const claim = (slot: Slot | undefined, item: JsonObject): Slot | undefined => {
      if (slot === undefined) return undefined
      const before = claims.get(slot)
      if (before !== undefined && before["arguments"] !== item["arguments"]) return undefined
      claims.set(slot, item)
      return slot
    }
    const named = output.map((item) => {
      const slot = byCall.get(callKeyOf(item) ?? "") ?? byId.get(keyOf(item, "id") ?? "")
      return slot === undefined || isOther(slot, item) ? undefined : claim(slot, item)
    })
    // Without an id that is known it is what stands there, or the next of its kind that nobody claimed.
    const kinds = new Map<string, Array<Slot>>()
    for (const slot of slots.toReversed()) {
      const kind = keyOf(slot.item, "type") ?? ""
      const others = kinds.get(kind)
      if (others === undefined) kinds.set(kind, [slot])
      else others.push(slot)
    }
    const next = (kind: string): Slot | undefined => {
      const waiting = kinds.get(kind) ?? []
      for (let one = waiting.at(-1); one !== undefined && claims.has(one); one = waiting.at(-1)) waiting.pop()
      return waiting.at(-1)
    }
    // An item that was not streamed stands behind the items before it in the list.
    let last = 0
    output.forEach((item, position) => {
      const free = [byIndex.get(position), next(keyOf(item, "type") ?? ""), next("")].find(
        (slot) => slot !== undefined && !claims.has(slot) && mayBe(slot, item)
      )
      const slot = named[position] ?? claim(free, item) ?? add(Math.max(last, position))
      learn(slot, item)
      last = slot.at
    })
  }

  return { of, learn, conclude, all: () => slots.toSorted((left, right) => left.at - right.at) }
}
