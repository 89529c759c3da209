import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { AnySlot, Slot, Snapshot, Store } from "../AgentState.ts"
import type { InvalidEncoding } from "../InvalidEncoding.ts"
import type { Json } from "../Json.ts"

interface Cell {
  readonly slot: AnySlot
  value: unknown
  readonly encode: () => Json
}

/** The cells that a tree of agents works on together. */
export type Shared = Map<string, Cell>

/** A store with what the loop needs beside it. */
export interface StateStore extends Store {
  readonly shared: Shared
  readonly snapshot: () => Snapshot
}

/**
 * Makes the state of a run. What is in `saved` is decoded when its slot is declared (here) or first used; what is never
 * used is carried along as it is, so that a run that does not know a slot does not lose it.
 */
export const make = (
  saved: Snapshot,
  declared: ReadonlyArray<AnySlot>,
  shared: Shared,
  onChange: (slot: string, value: () => Json) => Effect.Effect<void>
): Result.Result<StateStore, InvalidEncoding> => {
  const own = new Map<string, Cell>()
  for (const slot of declared) {
    const json = saved[slot.name]
    if (json === undefined) continue
    const decoded = slot.decode(json)
    if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
  }

  const cell = <A>(slot: Slot<A>): Cell => {
    const cells = slot.merge === undefined ? own : shared
    const found = cells.get(slot.name)
    if (found !== undefined) return found
    const json = saved[slot.name]
    const value = json === undefined ? slot.initial : Result.getOrThrow(slot.decode(json))
    const made: Cell = { slot, value, encode: () => slot.encode(made.value as A) }
    cells.set(slot.name, made)
    return made
  }
  // A cell is only ever reached through the slot that it was made with, or one of the same name and schema.
  const read = <A>(slot: Slot<A>): A => cell(slot).value as A

  const write = <A>(slot: Slot<A>, next: (current: A) => A): Effect.Effect<void> =>
    Effect.suspend(() => {
      const target = cell(slot)
      target.value = next(target.value as A)
      return onChange(slot.name, target.encode)
    })

  return Result.succeed({
    shared,
    get: (slot) => Effect.sync(() => read(slot)),
    set: (slot, value) => write(slot, (current) => (slot.merge === undefined ? value : slot.merge(current, value))),
    update: write,
    snapshot: () => {
      const snapshot: { [slot: string]: Json } = { ...saved }
      for (const cells of [own, shared]) for (const [name, one] of cells) snapshot[name] = one.encode()
      return snapshot
    }
  })
}
