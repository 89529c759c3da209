/** Changes threads in Redis. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { StoredEntry } from "../../../core/SessionStore.ts"
import { toJson } from "../codec.ts"
import { key } from "../ids.ts"
import type { AppendOutcome, Fault, Tables } from "../tables.ts"
import { waitsIn } from "../waits.ts"
import { mark, texts, toPart, toRecord } from "./records.ts"
import * as scripts from "./scripts.ts"
import { toList } from "./waits.ts"

/** The number of entries in one script, because the server runs nothing else meanwhile. */
const batch = 500

const keyOrNull = (id: string | null): string | null => (id === null ? null : key(id))

/** Assigns a place and a step to each entry of a new thread. */
const placeEntries = (thread: string, entries: ReadonlyArray<StoredEntry>) => {
  const places = new Map<string, { readonly place: string; readonly step: number }>()
  const records = entries.map((entry, index) => {
    const parent = places.get(entry.parentId ?? "") ?? { place: "-", step: 0 }
    places.set(entry.id, { place: `${thread}:${index}`, step: parent.step + 1 })
    return [entry.id, toRecord(entry, parent.place, parent.step + 1), entry.entry._tag === "Label" ? 1 : 0] as const
  })
  return { places, records }
}

/** The operations that change threads. */
export const makeChanges = (
  run: scripts.Run,
  find: Tables["find"]
): Pick<
  Tables,
  "insert" | "fork" | "append" | "addLabel" | "move" | "update" | "remove" | "moved" | "close" | "reopen"
> => {
  /** Reads the reply of a script that appends. */
  const settle = (threadId: string, reply: unknown): Effect.Effect<AppendOutcome, Fault> => {
    const [step = "", takenId] = texts(reply)
    return step !== ""
      ? Effect.succeed({ _tag: "Done", step: Number(step) })
      : Effect.map(find(threadId), (thread) => ({
          _tag: "Refused",
          thread,
          ...(takenId === undefined ? {} : { taken: takenId })
        }))
  }

  return {
    insert: Effect.fnUntraced(function* ({ at, metadata, threadId }, content) {
      const { archived, entries, leaf, past } = content
      if (!Arr.isReadonlyArrayNonEmpty(entries) && !archived && past === undefined) {
        return (yield* run(scripts.create, threadId, at, toJson(metadata))) === 1
      }
      const thread = String(yield* run(scripts.number))
      const { places, records } = placeEntries(thread, entries)
      let start = 0
      for (const part of Arr.chunksOf(records, batch)) {
        yield* run(scripts.stage, thread, start, ...part.flat())
        start += part.length
      }
      const last = places.get(leaf ?? "") ?? { place: "-", step: 0 }
      const origin = past?.origin
      const newest = entries.reduce((latest, entry) => Math.max(latest, entry.at), 0)
      const reply = yield* run(
        ...([scripts.publish, thread, threadId, past?.createdAt ?? at, toJson(metadata), archived ? 1 : 0] as const),
        ...([last.place === "-" ? "-" : mark(leaf), last.place, last.step, entries.length, newest] as const),
        ...([past?.updatedAt ?? at, origin?.threadId ?? "", origin === undefined ? "" : mark(origin.entryId)] as const),
        toList(yield* waitsIn(content))
      )
      if (reply === -1) {
        return yield* Effect.fail<Fault>({
          reason: { _tag: "Unavailable", problem: "it took over an hour to send the entries; import it again" }
        })
      }
      return reply === 1
    }),

    fork: (source, entryId, { at, metadata, threadId }, waits) =>
      Effect.map(
        run(scripts.fork, key(source), mark(entryId), threadId, at, toJson(metadata), toList(waits)),
        (reply) => (reply === "Done" || reply === "Exists" ? reply : "Gone")
      ),

    append: (threadId, leaf, entries, at, behind, _bytes, waits) => {
      const parts: Array<string> = []
      let parentId = behind
      for (const { entry, id } of entries) {
        parts.push(id, toPart({ id, parentId, at, entry }))
        parentId = id
      }
      const where = behind === leaf ? "=" : mark(keyOrNull(behind))
      const due = waits === undefined ? "" : toList(waits)
      return Effect.flatMap(
        run(scripts.append, key(threadId), mark(keyOrNull(leaf)), where, at, due, ...parts),
        (reply) => settle(threadId, reply)
      )
    },

    addLabel: (threadId, id, label, at) => {
      const part = toPart({ id, parentId: label.target, at, entry: label })
      return Effect.flatMap(run(scripts.addLabel, key(threadId), mark(label.target), at, id, part), (reply) =>
        settle(threadId, reply)
      )
    },

    move: (threadId, from, to, at, waits) =>
      Effect.map(run(scripts.move, key(threadId), mark(from), mark(to), at, toList(waits)), (reply) => reply === 1),

    update: (threadId, change, at) => {
      const [field, value] =
        "archived" in change
          ? (["archived", change.archived ? 1 : 0] as const)
          : (["metadata", toJson(change.metadata)] as const)
      return Effect.map(run(scripts.update, key(threadId), field, value, at), (reply) => reply === 1)
    },

    remove: (threadId) => Effect.map(run(scripts.remove, key(threadId)), (reply) => reply === 1),

    moved: Effect.map(run(scripts.moved), (reply) => (reply === "" ? undefined : String(reply))),
    close: (to) => Effect.map(run(scripts.close, to), String),
    reopen: Effect.asVoid(run(scripts.reopen))
  }
}
