/**
 * Files for tests: kept in memory, given and looked at as a record, with failures where a test wants them.
 *
 * It keeps to the whole contract of `Backend`, in the shortest way: what other backends do can be compared with it.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Backend } from "effect-deepagents"
 * import { TestBackend } from "effect-deepagents/testing"
 *
 * const test = Effect.gen(function* () {
 *   const backend = yield* Backend.Backend
 *   yield* backend.edit("/notes.md", [{ old: "Ada", new: "Grace" }])
 *   const files = yield* TestBackend.files
 *   const [first] = yield* TestBackend.requests
 *   return [files["/notes.md"], first?.operation]
 * }).pipe(
 *   Effect.provide(
 *     TestBackend.layer({
 *       files: { "/notes.md": "Dear Ada" },
 *       fail: ({ operation }) => (operation === "write" ? { _tag: "Unavailable" } : undefined)
 *     })
 *   )
 * )
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Backend from "../core/Backend.ts"
import { make as makeError, type Reason } from "../core/BackendError.ts"
import { fakeOf, type Outcome, type Request as AnyRequest } from "./internal/backend/fake.ts"
import { normalize } from "./internal/backend/paths.ts"

/** One operation as it was asked for. `path` is normalised, if it is valid; for a search it is where to look. */
export type Request = AnyRequest

/** What the files of a test are. */
export interface Options {
  /** What there is at the beginning, by path. A path that is not valid is a defect. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** Is given each request before it is done, and the file of an upload or a download; a reason makes it fail. */
  readonly fail?: (request: Request) => Reason | undefined
  /** How many bytes a file of an upload or a download may have; 10 MiB by default. */
  readonly maxFileSize?: number
}

/** What a {@link layer} was asked for, and what is in it. */
export class TestFiles extends Context.Service<
  TestFiles,
  {
    readonly requests: Effect.Effect<ReadonlyArray<Request>>
    readonly files: Effect.Effect<Readonly<Record<string, string | Uint8Array>>>
  }
>()("effect-deepagents/testing/TestFiles") {}

/** All requests so far, in order; those that failed too. */
export const requests: Effect.Effect<ReadonlyArray<Request>, never, TestFiles> = TestFiles.use((it) => it.requests)

/** All files by path, in the order of paths: texts as texts, others as bytes. */
export const files: Effect.Effect<Readonly<Record<string, string | Uint8Array>>, never, TestFiles> = TestFiles.use(
  (it) => it.files
)

/** Files in memory, and a record of what is asked. */
export const layer = (options?: Options): Layer.Layer<Backend.Backend | TestFiles> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const fake = fakeOf(options?.maxFileSize ?? 10 * 1024 * 1024)
      for (const [path, content] of Object.entries(options?.files ?? {})) {
        const put = fake.write(path, typeof content === "string" ? new TextEncoder().encode(content) : content)
        if (Result.isFailure(put)) {
          return yield* Effect.die(new Error(`TestBackend: ${makeError("write", path, put.failure).message}`))
        }
      }
      const seen: Array<Request> = []

      const ask = <A>(request: Request, answer: () => Outcome<A>) =>
        Effect.suspend(() => {
          const recorded = { ...request, path: Result.getOrElse(normalize(request.path), () => request.path) }
          seen.push(recorded)
          const reason = options?.fail?.(recorded)
          const outcome = reason === undefined ? answer() : Result.fail(reason)
          return Result.isSuccess(outcome)
            ? Effect.succeed(outcome.success)
            : Effect.fail(makeError(request.operation, request.path, outcome.failure))
        })

      const transfer = <A>(request: Request, answer: () => Outcome<A>): Effect.Effect<Backend.Transfer<A>> =>
        Effect.match(ask(request, answer), {
          onFailure: (error) => ({ path: request.path, ok: false, error }),
          onSuccess: (value) => ({
            path: Result.getOrElse(normalize(request.path), () => request.path),
            ok: true,
            value
          })
        })

      const backend = Backend.Backend.of({
        ls: (path) => ask({ operation: "ls", path }, () => fake.ls(path)),
        read: (path, window = {}) => ask({ operation: "read", path, window }, () => fake.read(path, window)),
        write: (path, content, how = {}) =>
          ask({ operation: "write", path, content, options: how }, () =>
            fake.write(path, new TextEncoder().encode(content), how)
          ),
        edit: (path, replacements, how = {}) =>
          ask({ operation: "edit", path, replacements, options: how }, () => fake.edit(path, replacements, how)),
        delete: (path, how = {}) =>
          ask({ operation: "delete", path, options: how }, () => fake.remove(path, how.recursive === true)),
        move: (path, to) => ask({ operation: "move", path, to }, () => fake.move(path, to)),
        grep: (query) => ask({ operation: "grep", path: query.path ?? "/", query }, () => fake.grep(query)),
        glob: (query) => ask({ operation: "glob", path: query.path ?? "/", query }, () => fake.glob(query)),
        upload: Effect.forEach(({ content, path }) =>
          transfer({ operation: "upload", path, content }, () => fake.upload(path, content))
        ),
        download: Effect.forEach((path) => transfer({ operation: "download", path }, () => fake.download(path)))
      })
      const recorder = TestFiles.of({ requests: Effect.sync(() => seen.slice()), files: Effect.sync(fake.snapshot) })
      return Context.make(Backend.Backend, backend).pipe(Context.add(TestFiles, recorder))
    })
  )
