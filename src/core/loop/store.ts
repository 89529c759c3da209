/** The state of a run: slots by name, of its own or shared by the whole tree. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { AnySlot, Slot, Snapshot, Store } from "../AgentState.ts"
import type { Json } from "../Json.ts"
import type { InvalidEncoding } from "../schema/encoding.ts"

interface Cell {
  readonly slot: AnySlot
  value: unknown
  readonly encode: () => Json
}

/** Slots that were read or written, made with the first of them, over what was saved of all. */
interface Cells {
  readonly saved: Snapshot
  byName: Map<string, Cell> | undefined
}

/** The state that a tree of agents shares: cells, and the saved values of those that are not there yet. */
export interface Shared extends Cells {
  writes: number
}

/** A store with what the loop needs beside it: the agent's own slots, and those that the whole tree works on. */
export interface StateStore extends Store {
  readonly own: Cells
  readonly shared: Shared
}

/** Puts what the cells hold into a snapshot. */
const write = (snapshot: { [slot: string]: Json }, { byName }: Cells): void => {
  if (byName !== undefined) for (const [name, one] of byName) snapshot[name] = one.encode()
}

/** The agent's own slots, without those that the whole tree works on. */
export const ownSnapshot = ({ own }: StateStore): Snapshot => {
  const snapshot = { ...own.saved }
  write(snapshot, own)
  return snapshot
}

/** The slots that the whole tree works on. */
export const sharedSnapshot = ({ shared }: StateStore): Snapshot => {
  const snapshot = { ...shared.saved }
  write(snapshot, shared)
  return snapshot
}

/** All slots. */
export const snapshot = ({ own, shared }: StateStore): Snapshot => {
  const all = { ...own.saved, ...shared.saved }
  write(all, own)
  write(all, shared)
  return all
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
  const own: Cells = { saved, byName: undefined }
  const shared: Shared = parent ?? { saved, byName: undefined, writes: 0 }
  for (const slot of declared) {
    const json = saved[slot.name]
    if (json === undefined) continue
    const decoded = slot.decode(json)
    if (Result.isFailure(decoded)) return Result.fail({ slot: slot.name, error: decoded.failure })
  }

  /** A slot that can't be used is a mistake in the program: nothing in a run can mend it. */
  const use = <A, B>(slot: Slot<A>, f: (cell: Cell) => Effect.Effect<B>): Effect.Effect<B> =>
    Effect.suspend(() => {
      const cell = cellOf(slot.merge === undefined ? own : shared, slot, unread)
      return Result.isSuccess(cell) ? f(cell.success) : Effect.die(cell.failure)
    })

  const update = <A>(slot: Slot<A>, next: (current: A) => A): Effect.Effect<void> =>
    use(slot, (target) => {
      target.value = next(target.value as A)
      shared.writes++
      return onChange(slot.name, target.encode, slot.merge !== undefined)
    })

  return Result.succeed({
    own,
    shared,
    get: <A>(slot: Slot<A>) => use(slot, (target) => Effect.succeed(target.value as A)),
    set: (slot, value) => update(slot, (current) => (slot.merge === undefined ? value : slot.merge(current, value))),
    update,
    writes: Effect.sync(() => shared.writes),
    names: (prefix) =>
      Effect.sync(() => {
        const names = new Set(
          [own, shared].flatMap(({ byName, saved }) => [...Object.keys(saved), ...(byName?.keys() ?? [])])
        )
        return [...names].filter((name) => name.startsWith(prefix))
      })
  })
}

/** The cell of a slot, made when it is first used. */
const cellOf = <A>(cells: Cells, slot: Slot<A>, unread: (one: Unread) => unknown): Result.Result<Cell, unknown> => {
  const byName = (cells.byName ??= new Map<string, Cell>())
  const found = byName.get(slot.name)
  if (found !== undefined)
    return found.slot.origin === slot.origin ? Result.succeed(found) : Result.fail(clash(slot.name))
  const json = cells.saved[slot.name]
  return Result.mapBoth(json === undefined ? Result.succeed(slot.initial) : slot.decode(json), {
    onSuccess: (value) => {
      // A cell is only reached through the slot that it was made with.
      const made: Cell = { slot, value, encode: () => slot.encode(made.value as A) }
      byName.set(slot.name, made)
      return made
    },
    onFailure: (error) => unread({ slot: slot.name, error })
  })
}
