/** Streams the frames of a thread to its readers: from the log while it has them, or else from the store. */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { isTerminal } from "../../core/AgentEvent.ts"
import type { Leaf } from "../../core/SessionStore.ts"
import { orNothing } from "../../durable/planning.ts"
import { fromPull } from "../../support/effect/pulled.ts"
import * as Log from "./log.ts"
import * as Position from "./position.ts"
import { readPath, rebuild, type StoredEvent } from "./rebuild.ts"
import * as Repeats from "./repeats.ts"
import type { Runs } from "./service.ts"
import { openThread } from "./taking.ts"
import type { NamedThread } from "./tenant.ts"
import { forget, isAtWork, nowhere, refuse, type Registry, workOf } from "./works.ts"

/** The frames that a reader gets at once. */
const slice = 512

/** The time between two looks into the store, for readers of a thread whose mail another process has. */
const pause = "500 millis"

/** Reports whether a frame leaves nothing behind the last save. */
const isSave = (frame: Position.Frame): boolean =>
  frame._tag === "Event" &&
  frame.event.path.length === 1 &&
  (frame.event._tag === "CheckpointSaved" || isTerminal(frame.event))

const toStored = (place: Position.Place): Position.Place => ({ ...place, epoch: Position.storeEpoch, told: 0 })

/** Gives the frames of stored events behind a place, and the place at their end. */
const framesBehind = (events: ReadonlyArray<StoredEvent>, after: Position.Place) => {
  const frames: Array<Position.Frame> = []
  let at = toStored(after)
  for (const { event, id, step } of events) {
    const isEnd = step === after.step && isTerminal(event) && !after.isOver
    if (step <= after.step && !isEnd) continue
    if (event._tag === "CheckpointSaved") at = { ...at, step, leaf: Position.markOf(id), isOver: false }
    if (isTerminal(event)) at = { ...at, isOver: true }
    frames.push({ _tag: "Event", position: Position.write(at), event })
  }
  return { frames, at }
}

/** Reads the frames behind a place from the store. */
const readStored = Effect.fnUntraced(function* (
  registry: Registry,
  { baseId, store }: NamedThread,
  id: string,
  { isSaved, place }: { readonly place: Position.Place | undefined; readonly isSaved: boolean }
) {
  const isWorking = yield* isAtWork(registry, baseId)
  const leaf = yield* isWorking ? orNothing(store.leaf(id), nowhere) : store.leaf(id)
  let after = place ?? Position.beginning
  let path = yield* readPath(store, id, leaf, after.step)
  const last = path.entries[after.step - 1 - path.first]
  const isKnown = after.step === 0 || (last !== undefined && Position.markOf(last.id) === after.leaf)
  if (!isKnown) {
    after = Position.beginning
    path = yield* readPath(store, id, leaf, 0)
  }
  const isComplete = isKnown && after.isOver && leaf.step === after.step && !isWorking
  const isVoid = place !== undefined && !isComplete && !(isKnown && isSaved)
  const reset: ReadonlyArray<Position.Frame> = isVoid
    ? [{ _tag: "Reset", position: Position.write(toStored(after)), to: isKnown ? "checkpoint" : "beginning" }]
    : []
  const events = Array.from(rebuild(id, path))
  const ended = events.findLast(({ event }) => isTerminal(event) && event.path.length === 1)?.event.runId
  const { at, frames } = framesBehind(events, after)
  return { frames: [...reset, ...frames], leaf, at, ended, counts: Repeats.countSubagents(events) }
})

/** Makes the streams of frames. */
export const makeObserve =
  (registry: Registry): Runs["Service"]["observe"] =>
  (thread, options) =>
    fromPull((scope) =>
      Effect.gen(function* () {
        const named = yield* openThread(thread)
        const { baseId } = named
        const { after, follow = false } = options ?? {}
        let place = after === undefined ? undefined : Position.parse(after)
        if (after !== undefined && place === undefined) {
          return yield* refuse("InvalidInput", thread.id, "this is no position of an event")
        }
        if (!(yield* isAtWork(registry, baseId))) yield* named.store.leaf(thread.id)
        const reader: Log.Reader = { cursor: -1 }
        let epoch = ""
        /** The frames that the store told, which the log may tell again. */
        let repeats: Repeats.ToldFrames | undefined
        /** The leaf that the store had for a reader whose events another process tells. */
        let remote: Leaf | undefined
        /** True if the reader has nothing behind a save: then nothing is void. */
        let isSaved = false
        const work = workOf(registry, baseId)
        work.log.readers.add(reader)
        const leave = Effect.sync(() => {
          work.log.readers.delete(reader)
          if (work.log.frames.length === 0) forget(registry, baseId, work)
        })
        yield* Scope.addFinalizer(scope, leave)
        /** Finds the reader's place in the log, or gives the frames of the store. */
        const enter = Effect.gen(function* () {
          const { log } = work
          if (place?.epoch === log.epoch && place.told >= Log.firstOf(log) && place.told <= log.next) {
            reader.cursor = place.told
            epoch = log.epoch
            isSaved = false
            return []
          }
          const isOwn = yield* registry.owner.isOwn
          const { frames, leaf, ...stored } = yield* readStored(registry, named, thread.id, { place, isSaved })
          remote = isOwn ? undefined : leaf
          const newestFrame = frames.at(-1)
          if (newestFrame !== undefined) isSaved = isSave(newestFrame)
          const save = log.saves.findLast(
            ({ leaf: mark, step }) => step === leaf.step && mark === Position.markOf(leaf.id)
          )
          const newest = log.saves.at(-1)
          // The log of a run that is over stays behind when its thread is rewound: only a run at work makes the leaf older.
          const isOlder = work.isBegun && save === undefined && newest !== undefined && newest.step > leaf.step
          const { at } = stored
          place = at
          const before = Repeats.make(stored, frames)
          repeats = before
          epoch = log.epoch
          // Behind an older leaf, the store has more by now: it is read again.
          if (isOlder || (save !== undefined && save.from < Log.firstOf(log))) epoch = ""
          // A log without a save has only runs that could not begin, which the store does not have.
          else {
            const cursor = save?.from ?? (newest === undefined ? Log.firstOf(log) : log.next)
            reader.cursor = Repeats.skipTold(before, log.frames, cursor)
          }
          const open = Log.openFrames(log, save ?? newest ?? { step: 0, leaf: "", from: 0 }).filter(
            ({ frame }) => !Repeats.isTold(before, frame)
          )
          if (open.length > 0) isSaved = false
          return [...frames, ...open.map(({ frame }) => ({ ...frame, position: Position.write(at) }))]
        })
        return Effect.gen(function* () {
          for (;;) {
            const { log } = work
            const isGained = remote !== undefined && (yield* registry.owner.isOwn)
            if (isGained || epoch !== log.epoch || reader.cursor < Log.firstOf(log)) {
              const frames = yield* enter
              if (Arr.isReadonlyArrayNonEmpty(frames)) return frames
              continue
            }
            if (reader.cursor < log.next) {
              const at = reader.cursor - Log.firstOf(log)
              const part = log.frames.slice(at, at + slice)
              const last = part.at(-1)
              if (last === undefined) continue
              reader.cursor = last.n + 1
              place = last.place
              isSaved = false
              const fresh = part.filter((one) => {
                const isRepeat = repeats !== undefined && Repeats.isRepeat(repeats, one)
                if (repeats?.isPast === true) repeats = undefined
                return !isRepeat
              })
              const frames = fresh.map(({ frame }) => frame)
              if (Arr.isReadonlyArrayNonEmpty(frames)) return frames
              continue
            }
            const isOver = !follow && !(yield* isAtWork(registry, baseId))
            // Entries that came before the end are read before it.
            if (remote !== undefined && (yield* orNothing(named.store.leaf(thread.id), nowhere)).id !== remote.id) {
              epoch = ""
              continue
            }
            if (isOver) return yield* Cause.done()
            yield* remote === undefined ? Log.nextChange(log) : Effect.sleep(pause)
          }
        })
      }).pipe(Effect.catch((failure) => Effect.succeed(Effect.fail(failure))))
    )
