/**
 * The change that a call would make to a file, before a person decides on it.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { type Approval, Backend } from "effect-deepagents"
 * import { Change } from "effect-deepagents/view"
 *
 * declare const request: Approval.Request
 *
 * const change = Effect.flatMap(Backend.Backend, (backend) => Change.ofCall(backend, request))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as MemoryBackend from "../backends/MemoryBackend.ts"
import type { Request } from "../core/Approval.ts"
import type * as Backend from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"

/** The text of a file before and after a change. `before` is `undefined` for a new file. */
export interface Change {
  readonly path: string
  readonly before: string | undefined
  readonly after: string
}

/** The longest text that is compared, in characters. */
const comparable = 1_000_000

/** The text of bytes with the line ends of a program; `undefined` for bytes that are no plain text. */
const textOf = (bytes: Uint8Array): string | undefined => {
  const text = new TextDecoder().decode(bytes)
  return text.length > comparable || /[\uFFFD\0]/.test(text) ? undefined : text.replaceAll("\r\n", "\n")
}

/** The part of a backend that is read. */
type Files = Pick<Backend.Service, "download">

const bytesOf = (backend: Files, path: string) =>
  Effect.map(backend.download([path]), ([file]) => (file?.ok === true ? file.value : undefined))

/** Edits a copy of a file in memory, as the tool would. `undefined` if it would not. */
const editCopy = Effect.fnUntraced(function* (path: string, bytes: Uint8Array, replacement: Backend.Replacement) {
  const place = path.startsWith("/") ? path : `/${path}`
  const memory = yield* MemoryBackend.make()
  yield* memory.upload([{ path: place, content: bytes }])
  const edited = yield* Effect.result(memory.edit(place, [replacement]))
  return Result.isFailure(edited) ? undefined : yield* bytesOf(memory, place)
})

/** Gives the change of a call that edits or writes a file; `undefined` for other calls, and for files that are no plain text. */
export const ofCall = Effect.fnUntraced(function* (
  backend: Files,
  call: Pick<Request, "arguments" | "editsFiles">
): Effect.fn.Return<Change | undefined, BackendError> {
  const { content, file_path: path, new_string: to, old_string: from, replace_all: isAll } = call.arguments
  if (call.editsFiles !== true || typeof path !== "string") return undefined
  const bytes = yield* bytesOf(backend, path)
  const before = bytes === undefined ? undefined : textOf(bytes)
  if (bytes !== undefined && before === undefined) return undefined
  if (typeof content === "string") return { path, before, after: content.replaceAll("\r\n", "\n") }
  if (bytes === undefined || typeof from !== "string" || typeof to !== "string") return undefined
  const edited = yield* editCopy(path, bytes, { old: from, new: to, replaceAll: isAll === true })
  const after = edited === undefined ? undefined : textOf(edited)
  return after === undefined ? undefined : { path, before, after }
})
