/** Parts that checks of backends share: files in and out, and rules by name. */
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Entry, Service, TextFile, Window } from "../../../../core/Backend.ts"
import type { BackendError } from "../../../../core/BackendError.ts"
import { broken, type NotConformant } from "../assert.ts"

/** The body of a check, given a backend and the ability that it needs. */
export type Body<B, A = unknown, R = Scope.Scope> = (
  backend: B,
  ability: A
) => Effect.Effect<void, BackendError | NotConformant, R>

/** Checks by their names. */
export type Rules<B, A = unknown, R = Scope.Scope> = ReadonlyArray<readonly [name: string, body: Body<B, A, R>]>

/** A check by its name. */
export const rule = <B, A, R>(
  name: string,
  body: (backend: B, ability: A) => Generator<Effect.Effect<unknown, BackendError | NotConformant, R>, void, never>
): Rules<B, A, R>[number] => [name, Effect.fnUntraced(body)]

/** Says whether two files have the same bytes. */
export const sameBytes = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, index) => byte === right[index])

/** An operation that may do as it likes, as long as it ends in a value or a `BackendError`. */
export const ends = <A>(
  operation: Effect.Effect<A, BackendError>,
  rule: string
): Effect.Effect<Result.Result<A, BackendError>, NotConformant> =>
  Effect.catchDefect(Effect.result(operation), (defect) => broken(`${rule} is no defect`, String(defect)))

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Puts files in by one upload; each must arrive. */
export const fill = Effect.fnUntraced(function* (
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

/** The bytes of a file. */
export const bytesAt = (backend: Service, path: string): Effect.Effect<Uint8Array, BackendError> =>
  Effect.flatMap(backend.download([path]), ([one]) => {
    if (one === undefined) return Effect.die(new Error("a download of one file gives one outcome"))
    return one.ok ? Effect.succeed(one.value) : Effect.fail(one.error)
  })

/** The whole text of a file as it is. */
export const textAt = (backend: Service, path: string): Effect.Effect<string, BackendError> =>
  Effect.map(bytesAt(backend, path), (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes))

/** A file that is text. */
export const readText = (
  backend: Service,
  path: string,
  window?: Window
): Effect.Effect<TextFile, BackendError | NotConformant> =>
  Effect.flatMap(backend.read(path, window), (file) =>
    file.kind === "text" ? Effect.succeed(file) : broken(`${path} is text`, file.kind)
  )

/** The paths of entries. */
export const pathsOf = ({ entries }: { readonly entries: ReadonlyArray<Entry> }): ReadonlyArray<string> =>
  entries.map(({ path }) => path)

/** The paths of what is in a folder. */
export const pathsIn = (backend: Service, folder: string): Effect.Effect<ReadonlyArray<string>, BackendError> =>
  Effect.map(backend.ls(folder), pathsOf)

/** The paths of all files, of ignored ones too. */
export const allFiles = (backend: Service): Effect.Effect<ReadonlyArray<string>, BackendError> =>
  Effect.map(backend.glob({ pattern: "**", ignored: true, limit: 100_000 }), pathsOf)
