/** Plans a restore: each path with its state now, and whether it can be brought to its aim. */
import * as Effect from "effect/Effect"
import type { Fault } from "../tables.ts"
import { readEntry, readState } from "./disk.ts"
import { type Aim, type Change, isSame, type State } from "./entry.ts"
import { movedFrom } from "./restore.ts"
import type { Rows, Turn } from "./rows.ts"

/**
 * A path that a restore changes.
 *
 * - `now`: the state of the path; `left`: the state that the turn left; `aim`: the state to restore
 * - `ready`: it can be restored
 * - `done`: it is as it should be already
 * - `conflict`: it is neither as the turn left it nor as it should be, so somebody else changed it
 * - `lost`: its content was not kept
 */
export interface Step {
  readonly path: string
  readonly now: State
  readonly left: State
  readonly aim: State
  readonly status: "conflict" | "done" | "lost" | "ready"
}

/** Combines the changes of turns, oldest first: the state before the first and after the last. */
const combine = (turns: ReadonlyArray<ReadonlyArray<Change>>): ReadonlyArray<Change> => {
  const all = new Map<string, Change>()
  for (const change of turns.flat()) {
    const first = all.get(change.path)
    all.set(
      change.path,
      first === undefined ? change : { ...change, before: first.before, isUnsure: change.isUnsure || first.isUnsure }
    )
  }
  return [...all.values()].toSorted((left, right) => (left.path < right.path ? -1 : 1))
}

/** The aims of a direction: the state before the turns, or after them. */
const toAim = ({ after, before, path }: Change, to: "after" | "before"): Aim =>
  to === "before" ? { path, from: after, to: before } : { path, from: before, to: after }

/** Reads the changes of turns, and the state of each path. */
export const planSteps = Effect.fnUntraced(function* (
  rows: Rows,
  turns: ReadonlyArray<Pick<Turn, "number">>,
  to: "after" | "before",
  fileBytes: number
): Effect.fn.Return<ReadonlyArray<Step>, Fault> {
  const changes = combine(yield* Effect.forEach(turns, ({ number }) => rows.changes(number)))
  const aims = changes.map((change) => toAim(change, to))
  const storedHashes = yield* rows.stored(aims.flatMap((aim) => (aim.to?._tag === "File" ? (aim.to.hash ?? []) : [])))
  const canMake = ({ to: aim }: Aim): boolean =>
    aim?._tag !== "File" || (aim.hash === undefined ? movedFrom(aims, aim) !== undefined : storedHashes.has(aim.hash))
  return yield* Effect.forEach(changes, (change) =>
    Effect.map(readEntry(change.path, fileBytes), (now): Step => {
      const aim = toAim(change, to)
      const step = { path: change.path, now, left: aim.from ?? undefined, aim: aim.to ?? undefined }
      if (isSame(now, step.aim)) return { ...step, status: "done" }
      if (!canMake(aim) && !isModeOnly(now, step.aim)) return { ...step, status: "lost" }
      return { ...step, status: change.isUnsure || !isSame(now, step.left) ? "conflict" : "ready" }
    })
  )
})

/** True if a file has the right content, and only another mode. */
const isModeOnly = (now: State, aim: State): boolean =>
  now?._tag === "File" && aim?._tag === "File" && isSame({ ...now, mode: aim.mode }, aim)

/** Keeps the state that a person's yes writes over, as what the turn left: the opposite direction brings it back. */
export const keepOverwritten = Effect.fnUntraced(function* (
  rows: Rows,
  turns: ReadonlyArray<Pick<Turn, "number">>,
  to: "after" | "before",
  paths: ReadonlySet<string>,
  limits: { readonly fileBytes: number; readonly now: number }
): Effect.fn.Return<void, Fault> {
  const ordered = to === "before" ? turns.toReversed() : turns
  const due = new Set(paths)
  for (const { number } of ordered) {
    const own = (yield* rows.changes(number)).filter(({ path }) => due.has(path))
    const newChanges = yield* Effect.forEach(own, (change) =>
      Effect.flatMap(readState(change.path, limits.fileBytes), ({ blob, state }) =>
        Effect.as(blob === undefined ? Effect.void : rows.addBlobs([blob], limits.now), {
          ...change,
          isUnsure: false,
          ...(to === "before" ? { after: state ?? null } : { before: state ?? null })
        })
      )
    )
    yield* rows.putChanges(number, newChanges)
    for (const { path } of own) due.delete(path)
  }
})

/** Tells whether a restore that was cut off left the path: before its work, after it, or between. */
export const isHalfWay = ({ from, path, to }: Aim, fileBytes: number): Effect.Effect<boolean> =>
  Effect.map(
    readEntry(path, fileBytes),
    (now) =>
      now === undefined ||
      isSame(now, from ?? undefined) ||
      isSame(now, to ?? undefined) ||
      (now._tag === "Folder" && (from?._tag === "Folder" || to?._tag === "Folder"))
  )
