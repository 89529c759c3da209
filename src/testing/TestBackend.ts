/**
 * Provides a backend for tests. Its files are a record, and it fails on demand.
 *
 * It wraps `MemoryBackend`, so an agent sees the same results and failures as in production.
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
import * as MemoryBackend from "../backends/MemoryBackend.ts"
import * as Backend from "../core/Backend.ts"
import { type BackendError, make as makeError, type Reason } from "../core/BackendError.ts"
import { listFiles, readBytes, bytesOf } from "./conformance/internal/backend/common.ts"
import { normalize } from "./conformance/internal/backend/paths.ts"

/** A request. `path` is normalised; for a search it is the folder to search. */
export type Request =
  | { readonly operation: "ls"; readonly path: string }
  | { readonly operation: "read"; readonly path: string; readonly window: Backend.Window }
  | {
      readonly operation: "write"
      readonly path: string
      readonly content: string
      readonly options: { readonly create?: boolean | undefined; readonly version?: string | undefined }
    }
  | {
      readonly operation: "edit"
      readonly path: string
      readonly replacements: ReadonlyArray<Backend.Replacement>
      readonly options: { readonly version?: string | undefined }
    }
  | {
      readonly operation: "delete"
      readonly path: string
      readonly options: { readonly recursive?: boolean | undefined }
    }
  | { readonly operation: "move"; readonly path: string; readonly to: string }
  | { readonly operation: "grep"; readonly path: string; readonly query: Backend.GrepQuery }
  | { readonly operation: "glob"; readonly path: string; readonly query: Backend.GlobQuery }
  | { readonly operation: "upload"; readonly path: string; readonly content: Uint8Array }
  | { readonly operation: "download"; readonly path: string }

/** The initial files, the failures and the limit of a test backend. */
export interface Options {
  /** Initial files by path. An invalid path is a defect. */
  readonly files?: Readonly<Record<string, string | Uint8Array>> | undefined
  /** Decides on each request, and each file of a transfer, before it runs. A returned reason fails it. */
  readonly fail?: ((request: Request) => Reason | undefined) | undefined
  /** Maximum bytes of a file. Default: 10 MiB. */
  readonly maxFileSize?: number | undefined
}

/** Records the requests to a {@link layer}, and its files. */
class TestFiles extends Context.Service<
  TestFiles,
  {
    readonly requests: Effect.Effect<ReadonlyArray<Request>>
    readonly files: Effect.Effect<Readonly<Record<string, string | Uint8Array>>>
  }
>()("effect-deepagents/testing/TestFiles") {}

/** Returns all requests so far, including failed ones. */
export const requests: Effect.Effect<ReadonlyArray<Request>, never, TestFiles> = TestFiles.use((it) => it.requests)

/** Returns all files in the order of their paths. Content that is not text is bytes. */
export const files: Effect.Effect<Readonly<Record<string, string | Uint8Array>>, never, TestFiles> = TestFiles.use(
  (it) => it.files
)

/** Number of bytes that are checked for binary content. */
const sniffLength = 8192

const noOutcome = new Error("a transfer of one file has one outcome")

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Decodes a text; other content stays bytes. */
const contentOf = (bytes: Uint8Array): string | Uint8Array =>
  bytes.subarray(0, sniffLength).includes(0)
    ? bytes
    : Result.getOrElse(
        Result.try(() => utf8.decode(bytes)),
        () => bytes
      )

/** Writes the initial files. */
const writeInitial = Effect.fnUntraced(function* (backend: Backend.Service, initialFiles: Options["files"] = {}) {
  for (const [path, content] of Object.entries(initialFiles)) {
    const [upload] = yield* backend.upload([
      { path, content: typeof content === "string" ? bytesOf(content) : content }
    ])
    if (upload?.ok === false) return yield* Effect.die(new Error(`TestBackend: ${upload.error.message}`))
  }
})

const snapshotOf = Effect.fnUntraced(function* (backend: Backend.Service) {
  const paths = yield* listFiles(backend)
  const contents = yield* Effect.forEach(paths, (path) => readBytes(backend, path))
  return Object.fromEntries(paths.map((path, index) => [path, contentOf(contents[index] ?? new Uint8Array())]))
}, Effect.orDie)

const normal = (path: string): string => Result.getOrElse(normalize(path), () => path)

/** Provides a memory backend that records its requests. */
export const layer = (options: Options = {}): Layer.Layer<Backend.Backend | TestFiles> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { fail, maxFileSize } = options
      const files = yield* MemoryBackend.make({ maxFileSize })
      yield* writeInitial(files, options.files)
      const recordedRequests: Array<Request> = []

      /** Records a request, and executes it unless `fail` returns a reason. */
      const ask = <A>(request: Request, answer: Effect.Effect<A, BackendError>): Effect.Effect<A, BackendError> =>
        Effect.suspend(() => {
          const recorded = { ...request, path: normal(request.path) }
          recordedRequests.push(recorded)
          const reason = fail?.(recorded)
          return reason === undefined ? answer : Effect.fail(makeError(request.operation, request.path, reason))
        })

      const transfer = <A>(
        request: Request,
        answer: Effect.Effect<ReadonlyArray<Backend.Transfer<A>>>
      ): Effect.Effect<Backend.Transfer<A>> =>
        ask(
          request,
          Effect.flatMap(answer, ([one]) => (one === undefined ? Effect.die(noOutcome) : Effect.succeed(one)))
        ).pipe(Effect.catch((error) => Effect.succeed({ path: normal(request.path), ok: false as const, error })))

      const backend = Backend.Backend.of({
        ls: (path) => ask({ operation: "ls", path }, files.ls(path)),
        read: (path, window = {}) => ask({ operation: "read", path, window }, files.read(path, window)),
        write: (path, content, how = {}) =>
          ask({ operation: "write", path, content, options: how }, files.write(path, content, how)),
        edit: (path, replacements, how = {}) =>
          ask({ operation: "edit", path, replacements, options: how }, files.edit(path, replacements, how)),
        delete: (path, how = {}) => ask({ operation: "delete", path, options: how }, files.delete(path, how)),
        move: (path, to) => ask({ operation: "move", path, to }, files.move(path, to)),
        grep: (query) => ask({ operation: "grep", path: query.path ?? "/", query }, files.grep(query)),
        glob: (query) => ask({ operation: "glob", path: query.path ?? "/", query }, files.glob(query)),
        upload: Effect.forEach(({ content, path }) =>
          transfer({ operation: "upload", path, content }, files.upload([{ path, content }]))
        ),
        download: Effect.forEach((path) => transfer({ operation: "download", path }, files.download([path])))
      })
      const recorder = TestFiles.of({ requests: Effect.sync(() => recordedRequests.slice()), files: snapshotOf(files) })
      return Context.make(Backend.Backend, backend).pipe(Context.add(TestFiles, recorder))
    })
  )
