/** The tables of threads in JSONL files. */
import * as Effect from "effect/Effect"
import { listsBy, readsBy } from "../memory/reads.ts"
import * as Memory from "../memory/thread.ts"
import type { ThreadName, Tables } from "../tables.ts"
import { waitsAt } from "../waits.ts"
import { makeChanges, markThreads } from "./changes.ts"
import { collect, eachLog, makeFolder, withThread } from "./folder.ts"
import * as Logs from "./log.ts"
import { readMark, removeMark, writeMark } from "./mark.ts"
import { removeThread } from "./removal.ts"

/** Tables in an existing folder. */
export const make = Effect.fnUntraced(function* (place: Logs.Place) {
  const folder = yield* makeFolder(place)

  /** All open requests. Such a folder has few threads, and unchanged ones are in memory. */
  const waiting = collect(folder, ({ memory }) => {
    if (memory.archived) return Effect.succeed([])
    const { leaf, threadId } = memory
    const path = (from: string, limit: number) => Effect.sync(() => Memory.path(memory, from, limit))
    return Effect.map(waitsAt(path, leaf?.id ?? null), (waits) => waits.map((request) => ({ threadId, request })))
  })

  const names = Effect.gen(function* () {
    const list: Array<ThreadName> = []
    yield* eachLog(
      folder,
      ({ create }) =>
        Effect.sync(() => {
          if (create !== undefined) list.push({ threadId: create.threadId })
        }),
      (file, problem) => {
        const broken = Logs.empty(file)
        return Effect.map(folder.refresh(broken), () => {
          list.push({ threadId: broken.create?.threadId ?? file, problem })
        })
      }
    )
    return list
  })

  const tables: Tables = {
    ...makeChanges(folder),
    ...readsBy((threadId, absent, body) =>
      withThread(folder, threadId, absent, ({ memory }) => Effect.sync(() => body(memory)))
    ),
    ...listsBy((body) => collect(folder, ({ memory }) => body(memory)), waiting),
    remove: (threadId) => folder.structure.withPermits(1)(removeThread(folder, threadId)),
    names,
    moved: readMark(folder),
    close: (to) => Effect.tap(writeMark(folder, to), (marked) => markThreads(folder, marked)),
    reopen: Effect.andThen(markThreads(folder, undefined), removeMark(folder))
  }
  return tables
})
