/** Operations as data, to run the same on two backends and compare the results. */
import { Effect, Predicate, Result } from "effect"
import type { Backend, BackendError } from "effect-deepagents"
import type { TestBackend } from "effect-deepagents/testing"

/** In the place of a version: the file's current one. */
const current = "current"

const only = <A>(transfers: ReadonlyArray<Backend.Transfer<A>>) =>
  Effect.flatMap(Effect.fromNullishOr(transfers[0]).pipe(Effect.orDie), (one) =>
    one.ok ? Effect.succeed(one.value) : Effect.fail(one.error)
  )

const perform = (
  backend: Backend.Service,
  request: TestBackend.Request,
  version: string
): Effect.Effect<unknown, BackendError.BackendError> => {
  const at = <O extends { readonly version?: string | undefined }>(options: O): O =>
    options.version === current ? { ...options, version } : options
  switch (request.operation) {
    case "ls":
      return backend.ls(request.path)
    case "read":
      return backend.read(request.path, request.window)
    case "write":
      return backend.write(request.path, request.content, at(request.options))
    case "edit":
      return backend.edit(request.path, request.replacements, at(request.options))
    case "delete":
      return backend.delete(request.path, request.options)
    case "move":
      return backend.move(request.path, request.to)
    case "grep":
      return backend.grep({ ...request.query, path: request.path })
    case "glob":
      return backend.glob({ ...request.query, path: request.path })
    case "upload":
      return Effect.flatMap(backend.upload([{ path: request.path, content: request.content }]), only)
    case "download":
      return Effect.flatMap(backend.download([request.path]), only)
  }
}

/** The comparable parts of results: no versions and times. */
export const comparable = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return [...value]
  if (Array.isArray(value)) return value.map(comparable)
  if (!Predicate.isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== "version" && key !== "modifiedAt")
      .map(([key, inner]) => [key, comparable(inner)])
  )
}

/** A backend's answer to a request, as data: its result, or its failure with reason and path. */
export const outcome = (backend: Backend.Service, request: TestBackend.Request) =>
  Effect.gen(function* () {
    const before = yield* Effect.result(backend.read(request.path, { limit: 0 }))
    const done = yield* Effect.result(
      perform(backend, request, Result.isSuccess(before) ? before.success.version : current)
    )
    return Result.isSuccess(done)
      ? { ok: comparable(done.success ?? "done") }
      : { failed: done.failure.reason._tag, at: done.failure.path, operation: done.failure.operation }
  })

/** All files of a backend with their bytes. */
export const files = (backend: Backend.Service) =>
  Effect.gen(function* () {
    const { entries } = yield* backend.glob({ pattern: "**", ignored: true, limit: 100_000 })
    const transfers = yield* backend.download(entries.map(({ path }) => path))
    return transfers.map((transfer) => [transfer.path, transfer.ok ? new TextDecoder().decode(transfer.value) : "?"])
  })
