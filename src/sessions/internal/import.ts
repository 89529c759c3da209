/**
 * Reads an exported thread.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { make as failure } from "../../core/SessionError.ts"
import type { Stored } from "../../core/SessionStore.ts"
import { limit, sizeOf } from "../../support/size.ts"
import * as codec from "./codec.ts"
import { entryIdProblem } from "./ids.ts"

const placeProblem = (known: ReadonlySet<string>, { entry, id, parentId }: Stored): string | undefined => {
  const invalid = entryIdProblem(id)
  if (invalid !== undefined) return invalid
  if (known.has(id)) return "another entry has this id"
  if (parentId !== null && !known.has(parentId)) return "its parent is not before it"
  return entry._tag === "Label" && entry.target !== null && !known.has(entry.target)
    ? "what it names is not before it"
    : undefined
}

/** Reads an export: a head, and entries of which each comes behind its parent. */
export const imported = Effect.fnUntraced(function* <E, R>(lines: Stream.Stream<string, E, R>, given?: string) {
  const entries: Array<Stored> = []
  const known = new Set<string>()
  let head: codec.Head | undefined
  let number = 0
  const refuse = (problem: string) =>
    failure("import", given ?? head?.threadId ?? "", { _tag: "InvalidEntry", entry: `line ${number}`, problem })
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
        const threadId = given ?? head.threadId
        return Effect.fail(failure("import", threadId, { _tag: "TooLarge", what, bytes, limit }))
      }
      const problem = placeProblem(known, result.success)
      if (problem !== undefined) return Effect.fail(refuse(problem))
      known.add(result.success.id)
      entries.push(result.success)
      return Effect.void
    })
  )
  if (head === undefined) return yield* refuse("there is no first line; give all lines of an export")
  if (head.leaf !== null && !known.has(head.leaf)) return yield* refuse("the leaf is none of the entries")
  return { head, entries, threadId: given ?? head.threadId }
})
