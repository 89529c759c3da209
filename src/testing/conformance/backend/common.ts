/**
 * How checks of backends say what does not hold.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Service, TextFile, Window } from "../../../core/Backend.ts"
import type { BackendError, Reason } from "../../../core/BackendError.ts"

/** A rule that a backend broke. */
export class NotConformant extends Schema.TaggedError<NotConformant>()("NotConformant", {
  rule: Schema.String,
  found: Schema.String
}) {
  override get message(): string {
    return `${this.rule}; found ${this.found}`
  }
}

/** What a check does with a backend, and with what it needs beside it. */
export type Body<B, A = unknown, R = Scope.Scope> = (
  backend: B,
  ability: A
) => Effect.Effect<void, BackendError | NotConformant, R>

/** Checks by their names. */
export type Rules<B, A = unknown, R = Scope.Scope> = ReadonlyArray<readonly [name: string, body: Body<B, A, R>]>

const render = (found: unknown): string =>
  (
    JSON.stringify(found, (_, value: unknown) =>
      value instanceof Uint8Array ? `${value.length} bytes ${String(value.subarray(0, 20))}` : value
    ) ?? "nothing"
  ).slice(0, 600)

/** Fails with the rule unless it holds. */
export const hold = (holds: boolean, rule: string, found: unknown): Effect.Effect<void, NotConformant> =>
  holds ? Effect.void : Effect.fail(new NotConformant({ rule, found: render(found) }))

/** Data with its keys in order, and bytes as numbers. */
const ordered = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return Array.from(value)
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return entries.sort(([left], [right]) => (left < right ? -1 : 1)).map(([key, inner]) => [key, ordered(inner)])
}

/** Fails with the rule unless both are the same data. */
export const same = (found: unknown, expected: unknown, rule: string): Effect.Effect<void, NotConformant> =>
  hold(
    JSON.stringify(ordered(found)) === JSON.stringify(ordered(expected)),
    `${rule}: it is ${render(expected)}`,
    found
  )

/** Whether two files have the same bytes. */
export const sameBytes = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, index) => byte === right[index])

/** The reason for which an operation fails, which must be one of these. */
export const fails = <A, R, T extends Reason["_tag"]>(
  operation: Effect.Effect<A, BackendError, R>,
  rule: string,
  ...tags: ReadonlyArray<T>
): Effect.Effect<Extract<Reason, { readonly _tag: T }>, NotConformant, R> => {
  const isWanted = (reason: Reason): reason is Extract<Reason, { readonly _tag: T }> =>
    tags.some((tag) => tag === reason._tag)
  const broken = (found: string) =>
    Effect.fail(new NotConformant({ rule: `${rule} fails with ${tags.join(" or ")}`, found }))
  return Effect.matchEffect(operation, {
    onFailure: ({ message, reason }) =>
      isWanted(reason) ? Effect.succeed(reason) : broken(`${reason._tag} (${message})`.slice(0, 600)),
    onSuccess: (value) => broken(render(value))
  })
}

/** An operation that may do as it likes, as long as it ends in a value or a `BackendError`. */
export const ends = <A>(
  operation: Effect.Effect<A, BackendError>,
  rule: string
): Effect.Effect<Result.Result<A, BackendError>, NotConformant> =>
  Effect.catchDefect(Effect.result(operation), (defect) =>
    Effect.fail(new NotConformant({ rule: `${rule} is no defect`, found: String(defect) }))
  )

/** Runs to its end, which must come within so many milliseconds. */
export const within = <A, E, R>(
  milliseconds: number,
  rule: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | NotConformant, R> =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    const value = yield* effect
    const took = (yield* Clock.currentTimeMillis) - began
    yield* hold(took <= milliseconds, `${rule} ends within ${milliseconds} ms`, `${took} ms`)
    return value
  })

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
    file.kind === "text"
      ? Effect.succeed(file)
      : Effect.fail(new NotConformant({ rule: `${path} is text`, found: file.kind }))
  )

/** The paths of all files, of ignored ones too. */
export const allFiles = (backend: Service): Effect.Effect<ReadonlyArray<string>, BackendError> =>
  Effect.map(backend.glob({ pattern: "**", ignored: true, limit: 100_000 }), ({ entries }) =>
    entries.map(({ path }) => path)
  )
