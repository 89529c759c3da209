/**
 * Indexes documents: a folder of any backend, or a stream. An unchanged document costs a hash.
 *
 * A killed indexer resumes: each document is stored wholly or not at all, with the hash of its content.
 * Any number of indexers may work on one namespace.
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
 * import { Documents } from "effect-deepagents/documents"
 * import { RagIndex, Indexer, MemoryIndex } from "effect-deepagents/rag"
 *
 * const program = Effect.gen(function* () {
 *   const space = yield* RagIndex.RagIndex.use((index) => index.space("handbook"))
 *   yield* Indexer.folder(space, "/", { formats: Documents.formats }).pipe(
 *     Stream.runForEach(({ document, outcome }) => Effect.log(outcome, document))
 *   )
 *   return yield* space.sources()
 * }).pipe(Effect.provide([MemoryIndex.layer, FilesystemBackend.layer({ root: "./docs" })]))
 * ```
 */
import type { AiError } from "effect/ai/AiError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import type { Format } from "../core/Document.ts"
import { check } from "../support/options/check.ts"
import { sha256 } from "../support/store/hash.ts"
import { type Document, inContext } from "./Chunk.ts"
import { chunk, type Splitter } from "./Chunker.ts"
import { embedPassages } from "./internal/embedding.ts"
import { findDocumentProblem } from "./internal/entries.ts"
import { beginningOf, type Item, listFiles, loadFiles } from "./internal/files.ts"
import * as shapes from "./internal/shapes.ts"
import type { RagError } from "./RagError.ts"
import type { Embeds, Entry, Model, Space } from "./RagIndex.ts"

/**
 * One document and its outcome. The counts are of all documents so far; `total` is missing for streams.
 */
export interface Progress {
  readonly document: string
  readonly outcome: "indexed" | "unchanged" | "removed" | "failed"
  /** Why it failed. */
  readonly problem?: string | undefined
  readonly done: number
  readonly total?: number | undefined
  readonly indexed: number
  readonly unchanged: number
  readonly removed: number
  readonly failed: number
  /** The chunks that were stored. */
  readonly chunks: number
}

/** How documents are split. A change indexes them anew. */
export interface Splitting {
  /** The most tokens of a chunk. Default: 512. */
  readonly tokens?: number | undefined
  /** The tokens that two chunks share. Default: 64. */
  readonly overlap?: number | undefined
  /** A text to change when your splitter changes: all documents are indexed anew. Default: none. */
  readonly version?: string | undefined
}

/** Options of {@link run}. */
export interface RunOptions extends Splitting {
  /** Splits each document. Default: `Chunker.parts`. */
  readonly split?: Splitter | undefined
  /** The source whose other documents are removed at the end of the stream. Default: nothing is removed. */
  readonly complete?: string | undefined
}

/** Options of {@link folder}. */
export interface FolderOptions extends Splitting {
  /** Formats of documents, such as `Documents.formats`. Default: text only. */
  readonly formats?: ReadonlyArray<Format> | undefined
  /** The files to index, as a glob. Default: all but hidden ones, and those that ignore files name. */
  readonly glob?: string | undefined
  /** The name of the source. Default: the path. */
  readonly source?: string | undefined
  /** Splits files of code, such as `CodeSplitter.load` gives. Default: they are split as other texts. */
  readonly code?: Splitter | undefined
  /** The most files. Beyond, no document is removed. Default: 100,000. */
  readonly most?: number | undefined
}

/** Grows when chunks of the same text and options change. */
const version = 2

/** The chunks that are stored at once, and the documents. */
const batch = { chunks: 200, documents: 16 }

const hashOf = (space: Space, item: Item<unknown, unknown>, { overlap, tokens, version: own }: Splitting) => {
  const { model } = space
  const modelParts = model === undefined ? [] : [model.id, model.dimensions, model.passage ?? ""]
  return sha256(
    JSON.stringify([
      version,
      item.content,
      tokens ?? null,
      overlap ?? null,
      own ?? "",
      item.split?.name ?? "",
      modelParts
    ])
  )
}

/** The next step of an indexing. */
type Step = Pick<Progress, "document" | "outcome" | "problem"> & { readonly chunks: number }

const failed = (document: string, problem: string): Step => ({ document, outcome: "failed", problem, chunks: 0 })

/** Stores entries with their vectors. */
const store = Effect.fnUntraced(function* <M extends Model | undefined>(
  space: Space<M>,
  entries: ReadonlyArray<Entry>
) {
  const texts = entries.flatMap(({ chunks, document }) => chunks.map((one) => inContext(document.title, one)))
  const vectors = yield* embedPassages(space, texts)
  let from = 0
  yield* space.put(
    entries.map((entry) => {
      const to = from + entry.chunks.length
      const own = vectors?.slice(from, to)
      from = to
      return own === undefined ? entry : { ...entry, vectors: own }
    })
  )
  return entries.map(({ chunks, document }): Step => ({
    document: document.id,
    outcome: "indexed",
    chunks: chunks.length
  }))
})

/** Indexes items in groups. Unchanged items are not read. */
const indexItems = <M extends Model | undefined, E, R>(
  space: Space<M>,
  items: Stream.Stream<Item<E, R>, E, R>,
  options: Splitting
): Stream.Stream<Step, E | RagError | AiError, R | Embeds<M>> => {
  const readGroup = Effect.fnUntraced(function* (group: ReadonlyArray<Item<E, R>>) {
    const hashes = yield* space.hashes({ documents: group.map(({ id }) => id) })
    const steps: Array<Step> = []
    let entries: Array<Entry> = []
    let chunks = 0
    const flush = Effect.suspend(() => {
      const some = entries
      entries = []
      chunks = 0
      return some.length === 0
        ? Effect.void
        : Effect.map(store(space, some), (newSteps) => {
            steps.push(...newSteps)
          })
    })
    const shared = { tokens: options.tokens, overlap: options.overlap }
    for (const item of group) {
      const hash = yield* hashOf(space, item, options)
      if (hashes.get(item.id) === hash) {
        steps.push({ document: item.id, outcome: "unchanged", chunks: 0 })
        continue
      }
      const document = yield* item.read
      if (typeof document === "string") {
        steps.push(failed(item.id, document))
        continue
      }
      const entry: Entry = { document, hash, chunks: chunk(document, { ...shared, split: item.split }) }
      const problem = findDocumentProblem(entry)
      if (problem !== undefined) {
        steps.push(failed(item.id, problem))
        continue
      }
      if (chunks + entry.chunks.length > batch.chunks) yield* flush
      entries.push(entry)
      chunks += entry.chunks.length
    }
    yield* flush
    return steps
  })
  return items.pipe(Stream.grouped(batch.documents), Stream.mapEffect(readGroup), Stream.flatMap(Stream.fromIterable))
}

/** Removes the documents of some sources, and below a path, that were not seen. */
const removeOthers = (
  space: Space,
  isOwn: (source: string) => boolean,
  below: string,
  seen: ReadonlySet<string>
): Stream.Stream<Step, RagError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const sources = (yield* space.sources()).map(({ source }) => source).filter(isOwn)
      const hashes = yield* space.hashes({ sources })
      const goneIds = [...hashes.keys()].filter((id) => id.startsWith(below) && !seen.has(id))
      if (goneIds.length > 0) yield* space.remove(goneIds)
      return Stream.fromIterable(goneIds.map((document): Step => ({ document, outcome: "removed", chunks: 0 })))
    })
  )

const count = <E, R>(steps: Stream.Stream<Step, E, R>, total?: number): Stream.Stream<Progress, E, R> =>
  Stream.mapAccum(
    steps,
    () => ({ done: 0, indexed: 0, unchanged: 0, removed: 0, failed: 0, chunks: 0 }),
    (sums, { chunks, document, outcome, problem }) => {
      const next = {
        ...sums,
        done: sums.done + (outcome === "removed" ? 0 : 1),
        [outcome]: sums[outcome] + 1,
        chunks: sums.chunks + chunks
      }
      return [next, [{ ...next, document, outcome, problem, total }]] as const
    }
  )

const checkRun = check(shapes.indexerRun)
const checkFolder = check(shapes.indexerFolder)
const checkWatch = check(shapes.indexerWatch)

/** Fails as the check of options does elsewhere: wrong options are a defect. */
const refuse = (problem: string | undefined) => (problem === undefined ? undefined : Stream.die(new Error(problem)))

/** Indexes the documents of a stream. */
export const run = <M extends Model | undefined, E = never, R = never>(
  space: Space<M>,
  documents: Stream.Stream<Document, E, R>,
  options: RunOptions = {}
): Stream.Stream<Progress, E | RagError | AiError, R | Embeds<M>> =>
  refuse(checkRun(options)) ??
  Stream.suspend(() => {
    const seen = new Set<string>()
    const items = Stream.mapEffect(documents, (document) => {
      seen.add(document.id)
      return Effect.map(sha256(JSON.stringify(document)), (hash) => ({
        id: document.id,
        content: hash,
        read: Effect.succeed(document),
        split: options.split
      }))
    })
    const steps = indexItems<M, E, R>(space, items, options)
    const { complete } = options
    const last =
      complete === undefined
        ? Stream.empty
        : Stream.suspend(() => removeOthers(space, (source) => source === complete, "", seen))
    return count(Stream.concat(steps, last))
  })

/**
 * Indexes the files below a path, and removes documents of deleted files with this `source`. A file that can't be read is
 * reported as `failed`, and its earlier version stays. Ids are paths.
 */
export const folder = <M extends Model | undefined>(
  space: Space<M>,
  path: string,
  options: FolderOptions = {}
): Stream.Stream<Progress, RagError | AiError | BackendError, Backend | Embeds<M>> =>
  refuse(checkFolder(options)) ??
  Stream.unwrap(
    Effect.gen(function* () {
      const { formats = [], glob = "**/*", most = 100_000, source = path } = options
      const { isWhole, paths } = yield* listFiles(path, { glob, most })
      const files = loadFiles(paths, { source, formats, code: options.code })
      const steps = indexItems<M, BackendError, Backend>(space, files, options)
      const backend = yield* Backend
      const below = beginningOf(path, backend.paths)
      // The same folder, one in it, or one around it may have been indexed by its own path.
      const isRelated = (one: string) => {
        const other = beginningOf(one, backend.paths)
        return other === below || (one.startsWith("/") && (below.startsWith(other) || other.startsWith(below)))
      }
      const isOwn = (one: string) => one === source || (options.source === undefined && one !== "" && isRelated(one))
      const last = isWhole ? removeOthers(space, isOwn, below, new Set(paths)) : Stream.empty
      return count(Stream.concat(steps, last), paths.length)
    })
  )

/** Indexes a folder again and again, with a pause. Each round reports all of its files. */
export const watch = <M extends Model | undefined>(
  space: Space<M>,
  path: string,
  options: FolderOptions & {
    /** The pause between two rounds. Default: 10 seconds. */
    readonly every?: Duration.Input | undefined
  } = {}
): Stream.Stream<Progress, RagError | AiError | BackendError, Backend | Embeds<M>> => {
  const { every = "10 seconds", ...rest } = options
  return refuse(checkWatch(options)) ?? Stream.repeat(folder(space, path, rest), Schedule.spaced(every))
}
