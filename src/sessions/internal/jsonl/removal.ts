/** Removes threads. The file of a removed thread stays under another name as long as forks of it exist. */
import * as Effect from "effect/Effect"
import type { Fault } from "../tables.ts"
import { unlessMoved } from "./changes.ts"
import { collect, filesOf, type Folder, withThread } from "./folder.ts"
import * as Logs from "./log.ts"
import { baseOf, isBase } from "./names.ts"

/** Reads which creations threads were forked from, and the files of removed threads. */
const readOrigins = Effect.fnUntraced(function* (folder: Folder) {
  const used = new Set(
    yield* collect(folder, ({ create: { origin } }) => Effect.succeed(origin === undefined ? [] : [origin.by]))
  )
  const bases: Array<{ readonly file: string; readonly by: string; readonly from: string | undefined }> = []
  for (const file of yield* filesOf(folder, isBase)) {
    const log = Logs.empty(file)
    yield* folder.refresh(log)
    if (log.create !== undefined) bases.push({ file, by: log.create.by, from: log.create.origin?.by })
  }
  return { used, bases }
})

/** Removes the files of removed threads that no fork needs any more. */
const sweep = Effect.fnUntraced(function* (folder: Folder) {
  const { bases, used } = yield* readOrigins(folder)
  let rest = bases
  for (;;) {
    const needed = new Set([...used, ...rest.flatMap(({ from }) => (from === undefined ? [] : [from]))])
    const unused = rest.filter(({ by }) => !needed.has(by))
    if (unused.length === 0) return
    for (const { file } of unused) yield* Logs.faulty(folder.fs.remove(folder.path.join(folder.folder, file)))
    rest = rest.filter((base) => !unused.includes(base))
  }
})

/** Removes a thread. `false`: it is gone. */
export const removeThread = Effect.fnUntraced(function* (
  folder: Folder,
  threadId: string
): Effect.fn.Return<boolean, Fault> {
  const { cache, fs, path } = folder
  const { bases, used } = yield* readOrigins(folder)
  const isDone = yield* withThread(folder, threadId, false, (log) =>
    unlessMoved(
      log,
      Effect.suspend(() => {
        const { by } = log.create
        const isUsed = used.has(by) || bases.some(({ from }) => from === by)
        const from = path.join(folder.folder, log.file)
        cache.drop(log.file)
        const removed = isUsed ? fs.rename(from, path.join(folder.folder, baseOf(log.file, by))) : fs.remove(from)
        return Effect.as(Logs.faulty(removed), true)
      })
    )
  )
  if (isDone) yield* sweep(folder)
  return isDone
})
