/** The state of a run: slots by name, of its own or shared by the whole tree. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { AnySlot, Slot, Snapshot, Store } from "../../AgentState.ts"
import type { Json } from "../../Json.ts"
import type { InvalidEncoding } from "../../schema/encoding.ts"

interface Cell {
  readonly slot: AnySlot
  value: unknown
  readonly encode: () => Json
}

/** The slots in use, over the saved values of all slots. */
interface Cells {
  readonly saved: Snapshot
  byName: Map<string, Cell> | undefined
}

export interface SharedCells extends Cells {
  writes: number
}

/** A store with the parts that the loop needs: the agent's own slots, and the shared slots. */
export interface StateStore extends Store {
  readonly own: Cells
  readonly shared: SharedCells
}

const write = (snapshot: { [slot: string]: Json }, { byName }: Cells): void => {
  if (byName !== undefined) for (const [name, one] of byName) snapshot[name] = one.encode()
}

/** The agent's own slots, without shared slots. */
export const ownSnapshot = ({ own }: StateStore): Snapshot => {
  const snapshot = { ...own.saved }
  write(snapshot, own)
  return snapshot
}

export const sharedSnapshot = ({ shared }: StateStore): Snapshot => {
  const snapshot = { ...shared.saved }
  write(snapshot, shared)
  return snapshot
}

export const snapshot = ({ own, shared }: StateStore): Snapshot => {
  const all = { ...own.saved, ...shared.saved }
  write(all, own)
  write(all, shared)
  return all
}

const clash = (name: string): Error =>
  new Error(`Two state slots are named "${name}". Rename one of them, or use one slot value in both places.`)

export interface Unread {
  readonly slot: string
  readonly error: InvalidEncoding
}

/**
 * Makes the state of a run. Saved values are decoded when their slot is declared (here) or first used. Unused values
 * stay as they are, so a run does not lose slots that it does not know.
 */
export const make = (
  saved: Snapshot,
  declared: ReadonlyArray<AnySlot>,
  parent: SharedCells | undefined,
  onChange: (slot: string, value: () => Json, isShared: boolean) => Effect.Effect<void>,
  unread: (one: Unread) => unknown
): Result.Result<StateStore, Unread> => {
  const own: Cells = { saved, byName: undefined }
  const shared: SharedCells = parent ?? { saved, byName: undefined, writes: 0 }
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
  const existing = byName.get(slot.name)
  if (existing !== undefined)
    return existing.slot.origin === slot.origin ? Result.succeed(existing) : Result.fail(clash(slot.name))
  const json = cells.saved[slot.name]
  return Result.mapBoth(json === undefined ? Result.succeed(slot.initial) : slot.decode(json), {
    onSuccess: (value) => {
      // A cell is only reached through the slot that it was made with.
      const cell: Cell = { slot, value, encode: () => slot.encode(cell.value as A) }
      byName.set(slot.name, cell)
      return cell
    },
    onFailure: (error) => unread({ slot: slot.name, error })
  })
}
