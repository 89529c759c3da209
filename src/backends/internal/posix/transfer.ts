/** Contents on their way to and from a remote shell: small ones go within a command, others by upload and download. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Semaphore from "effect/Semaphore"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import type { Locks } from "../files/locks.ts"
import { decodeText } from "../files/mime.ts"
import * as Path from "../files/path.ts"
import { maxArguments, portionsOf, type Remote, type Subject } from "./remote.ts"
import * as Scripts from "./scripts.ts"
import { failureOf, quote, type Reader, reader, stagePath } from "./shell.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** The parts that the operations are made from. `maxFileSize` is in bytes. */
export interface Source {
  readonly remote: Remote
  readonly locks: Locks
  /** Held while a file is compared and replaced: links give a file more names than a lock on paths knows. */
  readonly commits: Semaphore.Semaphore
  readonly maxFileSize: number
}

/** A content for a path. `inputPath` is the path as the caller wrote it. */
interface Placement {
  readonly path: string
  readonly inputPath: string
  readonly mode: "create" | "edit" | "write"
  readonly version?: string | undefined
  readonly bytes: Uint8Array
}

/** So many bytes of contents come with the answer of a command. */
const inlineBudget = 256 * 1024

/** The number of concurrent files. */
const concurrency = 8

export const checkSize = (source: Source, subject: Subject, size: number): Failing<void> =>
  size > source.maxFileSize
    ? Effect.fail(
        BackendError.make(subject.operation, subject.path, { _tag: "TooLarge", size, limit: source.maxFileSize })
      )
    : Effect.void

type Outcome<A> = Result.Result<A, BackendError.BackendError>

/** A content within the command, if it is text and short. */
const inlined = (bytes: Uint8Array): string | undefined => {
  if (bytes.length > maxArguments / 4 || bytes.includes(0)) return undefined
  const text = decodeText("", bytes)
  return Result.isSuccess(text) ? text.success : undefined
}

/** A file on its way: with its text if that goes within the command. */
interface PackedFile {
  readonly placing: Placement
  readonly text: string | undefined
}

type Batch = ReadonlyArray<PackedFile>

/** Parts files so that each part fits into a command. */
const batchesOf = (placings: ReadonlyArray<Placement>): ReadonlyArray<Batch> =>
  portionsOf(
    placings.map((placing): PackedFile => ({ placing, text: inlined(placing.bytes) })),
    ({ placing, text }) => quote(placing.path).length * 3 + (text === undefined ? 64 : quote(text).length * 3) + 64,
    maxArguments * 1.5
  )

const isText = (file: { readonly text: string | undefined }): boolean => file.text !== undefined

/** The outcome for a file. */
interface PlacedFile {
  readonly created: boolean
  readonly version: string
}

const statusOf = (operation: string, placing: Placement, records: Reader): Outcome<PlacedFile> => {
  const status = records.text()
  const created = records.text() === "1"
  const version = records.text()
  return status === "ok"
    ? Result.succeed({ created, version })
    : Result.fail(failureOf(operation, placing.inputPath, status))
}

/** Puts contents in their places. */
const putBatch = Effect.fnUntraced(function* (
  source: Source,
  operation: string,
  batch: Batch
): Effect.fn.Return<ReadonlyArray<Outcome<PlacedFile>>> {
  const { remote } = source
  const id = yield* remote.nonce
  const staged = batch.flatMap((file, index) => (isText(file) ? [] : [stagePath(id, index)]))
  const carried = yield* Effect.forEach(
    batch,
    ({ placing, text }, index) =>
      text === undefined
        ? Effect.result(remote.upload({ operation, path: placing.inputPath }, stagePath(id, index), placing.bytes))
        : Effect.succeed(Result.void),
    { concurrency }
  ).pipe(Effect.onInterrupt(() => remote.discard(staged)))
  const ready = batch.flatMap((file, index) =>
    Result.isSuccess(carried[index] ?? Result.void) ? [{ file, index }] : []
  )
  const args = ready.flatMap(({ file: { placing, text }, index }) => [
    placing.path,
    placing.mode,
    placing.version ?? "",
    text === undefined ? "file" : "text",
    text ?? stagePath(id, index)
  ])
  const subject = { operation, path: batch[0]?.placing.inputPath ?? "/" }
  const answer = yield* Effect.result(
    ready.length === 0
      ? Effect.succeed(new Uint8Array())
      : source.commits.withPermits(1)(remote.run(subject, Scripts.commit, args))
  ).pipe(Effect.onInterrupt(() => remote.discard(staged)))
  if (Result.isFailure(answer) || ready.length < batch.length) yield* remote.discard(staged)
  const records = reader(Result.isSuccess(answer) ? answer.success : new Uint8Array())
  return batch.map(({ placing }, index) => {
    const came = carried[index]
    if (came !== undefined && Result.isFailure(came)) return Result.fail(came.failure)
    if (Result.isFailure(answer)) return Result.fail(BackendError.at(answer.failure, operation, placing.inputPath))
    return statusOf(operation, placing, records)
  })
})

/** Puts one content in its place. */
export const placeContent = (source: Source, operation: string, placing: Placement): Failing<PlacedFile> =>
  Effect.flatMap(
    Effect.forEach(batchesOf([placing]), (batch) => putBatch(source, operation, batch)),
    (outcomes) => {
      const outcome = outcomes[0]?.[0]
      return outcome === undefined
        ? Effect.fail(BackendError.make(operation, placing.inputPath, { _tag: "Unavailable" }))
        : Effect.fromResult(outcome)
    }
  )

interface FetchRequest {
  readonly inputPath: string
  readonly path: string
}

type FetchedFile = { readonly version: string } & ({ readonly here: Uint8Array } | { readonly at: string })

/** A file, and its version just before. */
interface Got {
  readonly bytes: Uint8Array
  readonly version: string
}

const fetchedOf = (source: Source, operation: string, request: FetchRequest, records: Reader): Outcome<FetchedFile> => {
  const status = records.text()
  const { inputPath } = request
  if (status === "TooLarge") {
    const size = records.number()
    return Result.fail(BackendError.make(operation, inputPath, { _tag: "TooLarge", size, limit: source.maxFileSize }))
  }
  if (status !== "ok") return Result.fail(failureOf(operation, inputPath, status))
  const version = records.text()
  const size = records.number()
  const way = records.text()
  if (way === "at") return Result.succeed({ version, at: records.text() })
  const here = records.take(size)
  return way === "here" && here.length === size
    ? Result.succeed({ version, here: here.slice() })
    : Result.fail(failureOf(operation, inputPath, "nonsense"))
}

const sizeOfPath = ({ path }: FetchRequest): number => quote(path).length * 3 + 8

/** Requests several files. It fetches a file by itself if the answer is too large. */
const getBatch = Effect.fnUntraced(function* (
  source: Source,
  operation: string,
  requests: ReadonlyArray<FetchRequest>
): Effect.fn.Return<ReadonlyArray<Outcome<Got>>> {
  const { remote } = source
  const args = [String(source.maxFileSize), String(inlineBudget), ...requests.map(({ path }) => path)]
  const answer = yield* Effect.result(
    remote.run({ operation, path: requests[0]?.inputPath ?? "/" }, Scripts.fetch, args)
  )
  if (Result.isFailure(answer)) {
    const { failure } = answer
    return requests.map(({ inputPath }) => Result.fail(BackendError.at(failure, operation, inputPath)))
  }
  const records = reader(answer.success)
  const fetched = requests.map((one) => fetchedOf(source, operation, one, records))
  return yield* Effect.forEach(
    fetched,
    (outcome, index): Effect.Effect<Outcome<Got>> => {
      if (Result.isFailure(outcome)) return Effect.succeed(Result.fail(outcome.failure))
      const { version } = outcome.success
      if ("here" in outcome.success) return Effect.succeed(Result.succeed({ bytes: outcome.success.here, version }))
      const subject = { operation, path: requests[index]?.inputPath ?? "/" }
      return remote.download(subject, outcome.success.at).pipe(
        Effect.tap((bytes) => checkSize(source, subject, bytes.length)),
        Effect.map((bytes) => ({ bytes, version })),
        Effect.result
      )
    },
    { concurrency }
  )
})

/** The whole of one file. */
export const get = (source: Source, operation: string, inputPath: string, path: string): Failing<Got> =>
  Effect.flatMap(getBatch(source, operation, [{ inputPath, path }]), ([outcome]) =>
    outcome === undefined
      ? Effect.fail(BackendError.make(operation, inputPath, { _tag: "Unavailable" }))
      : Effect.fromResult(outcome)
  )

const transferOf = <A>(path: string, outcome: Outcome<A>): Backend.Transfer<A> =>
  Result.isSuccess(outcome) ? { path, ok: true, value: outcome.success } : { path, ok: false, error: outcome.failure }

export const download =
  (source: Source): Backend.Service["download"] =>
  (paths) =>
    Effect.gen(function* () {
      const normal = paths.map((inputPath) => ({ inputPath, path: Path.normalize("download", inputPath) }))
      const requests = normal.flatMap(({ inputPath, path }) =>
        Result.isSuccess(path) ? [{ inputPath, path: path.success }] : []
      )
      const batches = yield* Effect.forEach(portionsOf(requests, sizeOfPath), (part) =>
        getBatch(source, "download", part)
      )
      const outcomes = batches.flat()
      let next = 0
      return normal.map(({ inputPath, path }): Backend.Transfer<Uint8Array> => {
        if (Result.isFailure(path)) return { path: inputPath, ok: false, error: path.failure }
        const outcome = outcomes[next++] ?? Result.fail(failureOf("download", inputPath, "nonsense"))
        return transferOf(
          path.success,
          Result.map(outcome, ({ bytes }) => bytes)
        )
      })
    })

export const upload =
  (source: Source): Backend.Service["upload"] =>
  (files) => {
    const planned = files.map(({ content, path: inputPath }): Outcome<Placement> => {
      const path = Path.normalize("upload", inputPath)
      if (Result.isFailure(path)) return Result.fail(path.failure)
      if (path.success === "/") return Result.fail(BackendError.make("upload", inputPath, { _tag: "IsDirectory" }))
      const size = content.length
      return size > source.maxFileSize
        ? Result.fail(BackendError.make("upload", inputPath, { _tag: "TooLarge", size, limit: source.maxFileSize }))
        : Result.succeed({ path: path.success, inputPath, mode: "write", bytes: content })
    })
    const placings = planned.flatMap((plan) => (Result.isSuccess(plan) ? [plan.success] : []))
    return Effect.gen(function* () {
      const batches = yield* Effect.forEach(batchesOf(placings), (batch) => putBatch(source, "upload", batch))
      const outcomes = batches.flat()
      let next = 0
      return planned.map((plan, index): Backend.Transfer<Backend.WriteResult> => {
        const inputPath = files[index]?.path ?? ""
        if (Result.isFailure(plan)) return { path: inputPath, ok: false, error: plan.failure }
        const { path } = plan.success
        const outcome = outcomes[next++] ?? Result.fail(failureOf("upload", inputPath, "nonsense"))
        return transferOf(
          path,
          Result.map(outcome, (placed) => ({ path, ...placed }))
        )
      })
    }).pipe(source.locks.hold(placings.map(({ path }) => path)))
  }
