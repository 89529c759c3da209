/** Helpers for checks of backends. */
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Entry, Service, TextFile, Window } from "../../../../core/Backend.ts"
import type { BackendError } from "../../../../core/BackendError.ts"
import { failCheck, type NotConformant } from "../assert.ts"

/** The body of a check. */
export type Body<B, A = unknown, R = Scope.Scope> = (
  backend: B,
  ability: A
) => Effect.Effect<void, BackendError | NotConformant, R>

/** Checks by their names. */
export type Rules<B, A = unknown, R = Scope.Scope> = ReadonlyArray<readonly [name: string, body: Body<B, A, R>]>

/** Makes a check. */
export const rule = <B, A, R>(
  name: string,
  body: (backend: B, ability: A) => Generator<Effect.Effect<unknown, BackendError | NotConformant, R>, void, never>
): Rules<B, A, R>[number] => [name, Effect.fnUntraced(body)]

/** Returns true if two files have the same bytes. */
export const hasSameBytes = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, index) => byte === right[index])

/** Runs an operation that may succeed or fail, but not with a defect. */
export const runWithoutDefect = <A>(
  operation: Effect.Effect<A, BackendError>,
  rule: string
): Effect.Effect<Result.Result<A, BackendError>, NotConformant> =>
  Effect.catchDefect(Effect.result(operation), (defect) => failCheck(`${rule} is no defect`, String(defect)))

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Uploads files, and fails if one fails. */
export const putFiles = Effect.fnUntraced(function* (
  backend: Service,
  files: Readonly<Record<string, string | Uint8Array>>
) {
  const uploaded = yield* backend.upload(
    Object.entries(files).map(([path, content]) => ({
      path,
      content: typeof content === "string" ? bytesOf(content) : content
    }))
  )
  for (const one of uploaded) if (!one.ok) return yield* Effect.fail(one.error)
})

/** Reads the bytes of a file. */
export const readBytes = (backend: Service, path: string): Effect.Effect<Uint8Array, BackendError> =>
  Effect.flatMap(backend.download([path]), ([one]) => {
    if (one === undefined) return Effect.die(new Error("a download of one file gives one outcome"))
    return one.ok ? Effect.succeed(one.value) : Effect.fail(one.error)
  })

/** Reads the whole text of a file, with its byte order mark. */
export const readWhole = (backend: Service, path: string): Effect.Effect<string, BackendError> =>
  Effect.map(readBytes(backend, path), (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes))

/** Reads a window of a text file. */
export const readText = (
  backend: Service,
  path: string,
  window?: Window
): Effect.Effect<TextFile, BackendError | NotConformant> =>
  Effect.flatMap(backend.read(path, window), (file) =>
    file.kind === "text" ? Effect.succeed(file) : failCheck(`${path} is text`, file.kind)
  )

/** Lists the paths of entries. */
export const pathsOf = ({ entries }: { readonly entries: ReadonlyArray<Entry> }): ReadonlyArray<string> =>
  entries.map(({ path }) => path)

/** Lists the paths in a folder. */
export const listPaths = (backend: Service, folder: string): Effect.Effect<ReadonlyArray<string>, BackendError> =>
  Effect.map(backend.ls(folder), pathsOf)

/** Lists all files, including ignored ones. */
export const listFiles = (backend: Service): Effect.Effect<ReadonlyArray<string>, BackendError> =>
  Effect.map(backend.glob({ pattern: "**", ignored: true, limit: 100_000 }), pathsOf)
