/**
 * The state of a run: slots by name, of its own or shared by the whole tree.
 */
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

/** The state that a tree of agents shares: cells, and the saved values of those that are not there yet. */
export interface Shared {
  readonly cells: Map<string, Cell>
  readonly saved: Snapshot
  writes: number
}

/** A store with what the loop needs beside it. */
export interface StateStore extends Store {
  readonly shared: Shared
  readonly snapshot: () => Snapshot
  /** The agent's own slots, without those that the whole tree works on. */
  readonly ownSnapshot: () => Snapshot
  /** Those that the whole tree works on. */
  readonly sharedSnapshot: () => Snapshot
}

const clash = (name: string): Error =>
  new Error(`Two state slots are named "${name}". Rename one of them, or use one slot value in both places.`)

/** A saved value that its slot can't read. */
export interface Unread {
  readonly slot: string
  readonly error: InvalidEncoding
}

/**
 * Makes the state of a run. What is in `saved` is decoded when its slot is declared (here) or first used; what is never
 * used is carried along as it is, so that a run that does not know a slot does not lose it.
 */
export const make = (
  saved: Snapshot,
  declared: ReadonlyArray<AnySlot>,
  parent: Shared | undefined,
  onChange: (slot: string, value: () => Json, isShared: boolean) => Effect.Effect<void>,
  unread: (one: Unread) => unknown
): Result.Result<StateStore, Unread> => {
  const own = new Map<string, Cell>()
  const shared = parent ?? { cells: new Map<string, Cell>(), saved, writes: 0 }
  for (const slot of declared) {
    const json = saved[slot.name]
    if (json === undefined) continue
    const decoded = slot.decode(json)
    if (Result.isFailure(decoded)) return Result.fail({ slot: slot.name, error: decoded.failure })
  }

  const cell = <A>(slot: Slot<A>): Result.Result<Cell, unknown> => {
    const [cells, values] = slot.merge === undefined ? [own, saved] : [shared.cells, shared.saved]
    const found = cells.get(slot.name)
    if (found !== undefined)
      return found.slot.origin === slot.origin ? Result.succeed(found) : Result.fail(clash(slot.name))
    const json = values[slot.name]
    return Result.mapBoth(json === undefined ? Result.succeed(slot.initial) : slot.decode(json), {
      onSuccess: (value) => {
        // A cell is only reached through the slot that it was made with.
        const made: Cell = { slot, value, encode: () => slot.encode(made.value as A) }
        cells.set(slot.name, made)
        return made
      },
      onFailure: (error) => unread({ slot: slot.name, error })
    })
  }

  /** A slot that can't be used is a mistake in the program: nothing in a run can mend it. */
  const use = <A, B>(slot: Slot<A>, f: (cell: Cell) => Effect.Effect<B>): Effect.Effect<B> =>
    Effect.suspend(() => Result.match(cell(slot), { onSuccess: f, onFailure: Effect.die }))

  const write = <A>(slot: Slot<A>, next: (current: A) => A): Effect.Effect<void> =>
    use(slot, (target) => {
      target.value = next(target.value as A)
      shared.writes++
      return onChange(slot.name, target.encode, slot.merge !== undefined)
    })

  return Result.succeed({
    shared,
    get: <A>(slot: Slot<A>) => use(slot, (target) => Effect.succeed(target.value as A)),
    set: (slot, value) => write(slot, (current) => (slot.merge === undefined ? value : slot.merge(current, value))),
    update: write,
    writes: Effect.sync(() => shared.writes),
    names: (prefix) =>
      Effect.sync(() => {
        const names = new Set([
          ...Object.keys(saved),
          ...Object.keys(shared.saved),
          ...own.keys(),
          ...shared.cells.keys()
        ])
        return [...names].filter((name) => name.startsWith(prefix))
      }),
    ownSnapshot: () => {
      const snapshot: { [slot: string]: Json } = { ...saved }
      for (const [name, one] of own) snapshot[name] = one.encode()
      return snapshot
    },
    sharedSnapshot: () => {
      const snapshot: { [slot: string]: Json } = { ...shared.saved }
      for (const [name, one] of shared.cells) snapshot[name] = one.encode()
      return snapshot
    },
    snapshot: () => {
      const snapshot: { [slot: string]: Json } = { ...saved, ...shared.saved }
      for (const cells of [own, shared.cells]) for (const [name, one] of cells) snapshot[name] = one.encode()
      return snapshot
    }
  })
}
