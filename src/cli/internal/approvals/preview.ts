/** The change of an edit or a write before it is approved, as a diff. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as TextDiff from "effect/TextDiff"
import * as MemoryBackend from "../../../backends/MemoryBackend.ts"
import type * as Approval from "../../../core/Approval.ts"
import type * as Backend from "../../../core/Backend.ts"
import { escapeUnseen } from "../../../support/text/clean.ts"

/** The diff of a change. */
export interface Preview {
  readonly path: string
  readonly isNew: boolean
  readonly lines: ReadonlyArray<string>
}

/** The longest text that is compared, in characters. */
const comparable = 1_000_000

/** The text of bytes with the line ends of a program; `undefined` for bytes that are no plain text. */
const textOf = (bytes: Uint8Array): string | undefined => {
  const text = new TextDecoder().decode(bytes)
  return text.length > comparable || /[\uFFFD\0]/.test(text) ? undefined : text.replaceAll("\r\n", "\n")
}

const diffOf = (path: string, before: string, after: string, isNew: boolean): Preview => ({
  path,
  isNew,
  lines: escapeUnseen(TextDiff.unified(TextDiff.lines(before, after, { maxEdits: 2_000 })))
    .split("\n")
    .filter((line) => line !== "" && !/^(?:---|\+\+\+) /.test(line))
})

const bytesOf = (backend: Backend.Service, path: string) =>
  Effect.map(backend.download([path]), ([found]) => (found?.ok === true ? found.value : undefined))

/** Edits a copy of a file in memory, as the tool would. `undefined` if it would not. */
const editCopy = Effect.fnUntraced(function* (path: string, bytes: Uint8Array, replacement: Backend.Replacement) {
  const place = path.startsWith("/") ? path : `/${path}`
  const memory = yield* MemoryBackend.make()
  yield* memory.upload([{ path: place, content: bytes }])
  const edited = yield* Effect.result(memory.edit(place, [replacement]))
  return Result.isFailure(edited) ? undefined : yield* bytesOf(memory, place)
})

/** The change of a call that edits or writes a file; `undefined` for other calls, and for files that are no plain text. */
export const previewOf = Effect.fnUntraced(function* (backend: Backend.Service, request: Approval.Request) {
  const { content, file_path: path, new_string: to, old_string: from, replace_all: isAll } = request.arguments
  if (request.editsFiles !== true || typeof path !== "string") return undefined
  const bytes = yield* bytesOf(backend, path)
  const before = bytes === undefined ? "" : textOf(bytes)
  if (before === undefined) return undefined
  if (typeof content === "string") return diffOf(path, before, content.replaceAll("\r\n", "\n"), bytes === undefined)
  if (typeof from !== "string" || typeof to !== "string") return undefined
  const edited =
    bytes === undefined ? undefined : yield* editCopy(path, bytes, { old: from, new: to, replaceAll: isAll === true })
  const after = edited === undefined ? undefined : textOf(edited)
  return after === undefined ? undefined : diffOf(path, before, after, false)
})
