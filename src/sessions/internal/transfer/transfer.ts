/** Writes a thread as lines, and makes a thread of such lines. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { make as failure } from "../../../core/SessionError.ts"
import type { Service, StoredEntry } from "../../../core/SessionStore.ts"
import { span, streamSpan } from "../../../support/effect/span.ts"
import { limit, sizeOf } from "../../../support/text/size.ts"
import * as codec from "../codec.ts"
import { entryIdProblem } from "../ids.ts"
import { guarded, metadataOf, newId, threadOf } from "../operation.ts"
import type { Tables } from "../tables.ts"

const exportPage = 500

const placeProblem = (ids: ReadonlySet<string>, { entry, id, parentId }: StoredEntry): string | undefined => {
  const invalid = entryIdProblem(id)
  if (invalid !== undefined) return invalid
  if (ids.has(id)) return "another entry has this id"
  if (parentId !== null && !ids.has(parentId)) return "its parent is not before it"
  return entry._tag === "Label" && entry.target !== null && !ids.has(entry.target)
    ? "what it names is not before it"
    : undefined
}

/** Reads an export: a head, and entries of which each comes behind its parent. */
const imported = Effect.fnUntraced(function* <E, R>(lines: Stream.Stream<string, E, R>, ownId?: string) {
  const entries: Array<StoredEntry> = []
  const ids = new Set<string>()
  let head: codec.Head | undefined
  let number = 0
  const refuse = (problem: string) =>
    failure("import", ownId ?? head?.threadId ?? "", { _tag: "InvalidEntry", entry: `line ${number}`, problem })
  yield* Stream.runForEach(lines, (line) =>
    Effect.suspend(() => {
      number++
      if (line.trim() === "") return Effect.void
      if (head === undefined) {
        const result = codec.decodeHead(line)
        if (Result.isFailure(result)) return Effect.fail(refuse(result.failure))
        head = result.success
        return Effect.void
      }
      const result = codec.decodeLine(line)
      if (Result.isFailure(result)) return Effect.fail(refuse(result.failure))
      const bytes = sizeOf(result.success.entry)
      if (bytes > limit) {
        const what = `entry ${result.success.id}`
        const threadId = ownId ?? head.threadId
        return Effect.fail(failure("import", threadId, { _tag: "TooLarge", what, bytes, limit }))
      }
      const problem = placeProblem(ids, result.success)
      if (problem !== undefined) return Effect.fail(refuse(problem))
      ids.add(result.success.id)
      entries.push(result.success)
      return Effect.void
    })
  )
  if (head === undefined) return yield* refuse("there is no first line; give all lines of an export")
  if (head.leaf !== null && !ids.has(head.leaf)) return yield* refuse("the leaf is none of the entries")
  return { head, entries, threadId: ownId ?? head.threadId }
})

/** Exports threads, and imports them. */
export const makeTransfer = (tables: Tables): Pick<Service, "export" | "import"> => ({
  export: (threadId) => {
    const guard = guarded("export", threadId)
    const head = Effect.map(threadOf(tables, "export", threadId), ({ archived, createdAt, leaf, metadata }) =>
      codec.encodeHead({ threadId, createdAt, metadata, archived, leaf: leaf.id })
    )
    const rest = Stream.paginate(0, (cursor: number) =>
      Effect.map(
        guard(tables.entries(threadId, cursor, exportPage)),
        ({ entries, next }) => [entries.map(codec.encodeLine), Option.fromUndefinedOr(next)] as const
      )
    )
    return streamSpan("SessionStore.export")(Stream.concat(Stream.fromEffect(head), rest))
  },

  import: Effect.fnUntraced(function* (lines, options) {
    const { entries, head, threadId } = yield* imported(lines, options?.threadId)
    yield* newId("import", threadId)
    const metadata = yield* metadataOf("import", threadId, head.metadata)
    const content = { entries, leaf: head.leaf, archived: head.archived }
    const thread = { threadId, at: yield* Clock.currentTimeMillis, metadata }
    const isNew = yield* guarded("import", threadId)(tables.insert(thread, content))
    if (!isNew) return yield* failure("import", threadId, { _tag: "AlreadyExists" })
    return yield* threadOf(tables, "import", threadId)
  }, span("SessionStore.import"))
})
