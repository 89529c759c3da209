/** Indexing is incremental, reports each document, and follows a folder. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Backend } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { Documents } from "effect-deepagents/documents"
import { HashingEmbedding, Indexer, MemoryIndex, RagIndex, Retriever } from "effect-deepagents/rag"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { EmbeddingModel } from "effect/ai"

const files = {
  "/docs/a.md": "# Alpha\nThe first page speaks of apples.",
  "/docs/b/b.md": "# Beta\nThe second page speaks of pears.",
  "/docs/c.csv": "name,count\nplums,3\n",
  "/docs/d.bin": "\0\0",
  "/other/e.md": "Not in the folder."
}

const layers = Layer.mergeAll(MemoryIndex.layer, HashingEmbedding.layer(), MemoryBackend.layer({ files }))

const place = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "indexer-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const sqlite = Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: ":memory:" }))

const open = RagIndex.RagIndex.use((index) => index.space("a", HashingEmbedding.model()))

const outcomes = <E, R>(progress: Stream.Stream<Indexer.Progress, E, R>) =>
  Effect.map(Stream.runCollect(progress), (all) => Object.fromEntries(all.map((one) => [one.document, one.outcome])))

describe("folder", () => {
  it.effect("indexes files once, and follows changes, renames and removals", () =>
    Effect.gen(function* () {
      const space = yield* open
      const index = outcomes(Indexer.folder(space, "/docs", { formats: Documents.formats }))
      const [a, b, c, d] = ["/docs/a.md", "/docs/b/b.md", "/docs/c.csv", "/docs/d.bin"] as const
      expect(yield* index).toEqual({ [a]: "indexed", [b]: "indexed", [c]: "indexed", [d]: "failed" })
      expect(yield* index).toEqual({ [a]: "unchanged", [b]: "unchanged", [c]: "unchanged", [d]: "failed" })
      const backend = yield* Backend.Backend
      yield* backend.write(a, "# Alpha\nNow it speaks of cherries.")
      yield* backend.move(b, "/docs/moved.md")
      yield* backend.delete(c)
      expect(yield* index).toEqual({
        [a]: "indexed",
        "/docs/moved.md": "indexed",
        [b]: "removed",
        [c]: "removed",
        [d]: "failed"
      })
      const firstHit = (yield* Retriever.search(space, "cherries", { limit: 1 }))[0]
      expect([firstHit?.chunk.document, firstHit?.title, firstHit?.source]).toEqual([a, "Alpha", "/docs"])
      expect(yield* space.sources()).toEqual([{ source: "/docs", documents: 2, chunks: 2 }])
    }).pipe(Effect.provide(layers))
  )

  it.effect("counts, and indexes anew when the splitting or the model changes", () =>
    Effect.gen(function* () {
      const space = yield* open
      const last = (options: Indexer.FolderOptions) =>
        Effect.map(Stream.runCollect(Indexer.folder(space, "/docs", options)), (all) => all.at(-1))
      expect(yield* last({})).toMatchObject({ done: 4, total: 4, indexed: 3, failed: 1, unchanged: 0, chunks: 3 })
      expect(yield* last({})).toMatchObject({ done: 4, indexed: 0, unchanged: 3 })
      expect(yield* last({ tokens: 100 })).toMatchObject({ indexed: 3, unchanged: 0 })
      expect(yield* last({ tokens: 100, glob: "*.md" })).toMatchObject({ done: 2, unchanged: 2, removed: 1 })
      const words = yield* RagIndex.RagIndex.use((index) => index.space("words"))
      const plain = yield* Stream.runCollect(Indexer.folder(words, "/docs"))
      expect(plain.at(-1)).toMatchObject({ indexed: 3 })
    }).pipe(Effect.provide(layers))
  )

  it.effect("removes deleted files of a folder, also if it was indexed by another path", () =>
    Effect.gen(function* () {
      const space = yield* open
      yield* outcomes(Indexer.folder(space, "/docs/b"))
      yield* outcomes(Indexer.folder(space, "/"))
      const backend = yield* Backend.Backend
      yield* backend.delete("/docs/b/b.md")
      expect((yield* outcomes(Indexer.folder(space, "/other")))["/docs/b/b.md"]).toBe(undefined)
      expect((yield* outcomes(Indexer.folder(space, "/docs")))["/docs/b/b.md"]).toBe("removed")
      expect([...(yield* space.hashes()).keys()].sort()).toEqual(["/docs/a.md", "/docs/c.csv", "/other/e.md"])
    }).pipe(Effect.provide(layers))
  )

  it.effect("removes deleted files of a folder with a relative path, and nothing of other sources", () =>
    Effect.gen(function* () {
      const space = yield* open
      const page = { id: "/docs/page.md", text: "Not a file.", source: "wiki" }
      const bare = { id: "/docs/bare.md", text: "Neither." }
      yield* outcomes(Indexer.run(space, Stream.make(page, bare)))
      yield* outcomes(Indexer.folder(space, "docs/./b", { source: "mine" }))
      yield* outcomes(Indexer.folder(space, "docs"))
      const backend = yield* Backend.Backend
      yield* backend.delete("/docs/a.md")
      expect((yield* outcomes(Indexer.folder(space, "docs/")))["/docs/a.md"]).toBe("removed")
      // On a machine, relative paths count from the working folder.
      const machine = { ...backend, paths: { cwd: "/docs", home: "/", scratch: "/scratch" } }
      const inDocs = (path: string) =>
        Effect.provideService(outcomes(Indexer.folder(space, path)), Backend.Backend, {
          ...machine,
          glob: (query) => backend.glob({ ...query, path: `/docs/${query.path}` })
        })
      yield* inDocs("b")
      yield* backend.write("/docs/b/c.md", "Soon gone.")
      yield* inDocs("b")
      yield* backend.delete("/docs/b/c.md")
      expect((yield* inDocs("b"))["/docs/b/c.md"]).toBe("removed")
      yield* outcomes(Indexer.folder(space, "/"))
      const ids = [...(yield* space.hashes()).keys()].sort()
      expect(ids).toEqual(["/docs/b/b.md", "/docs/bare.md", "/docs/c.csv", "/docs/page.md", "/other/e.md"])
    }).pipe(Effect.provide(layers))
  )

  it.effect("leaves hidden files out", () =>
    Effect.gen(function* () {
      const space = yield* open
      const backend = yield* Backend.Backend
      for (const path of ["/docs/.env", "/docs/.cache/a.md", "/docs/..md", "/.root/a.md"])
        yield* backend.write(path, "KEY=1")
      expect(Object.keys(yield* outcomes(Indexer.folder(space, "/docs", { glob: "**/*.md" }))).sort()).toEqual([
        "/docs/a.md",
        "/docs/b/b.md"
      ])
      // A hidden folder that is named is meant.
      expect(yield* outcomes(Indexer.folder(space, "/.root"))).toEqual({ "/.root/a.md": "indexed" })
    }).pipe(Effect.provide(layers))
  )

  it.effect("removes nothing if it could not see all files", () =>
    Effect.gen(function* () {
      const space = yield* open
      yield* outcomes(Indexer.folder(space, "/docs"))
      yield* outcomes(Indexer.folder(space, "/docs", { most: 1 }))
      expect((yield* space.hashes()).size).toBe(3)
    }).pipe(Effect.provide(layers))
  )

  it.effect("continues after a failure", () =>
    Effect.gen(function* () {
      let isAway = false
      let asked = 0
      const model = yield* EmbeddingModel.EmbeddingModel
      const failing = yield* EmbeddingModel.make({
        embedMany: ({ inputs }) => {
          asked += inputs.length
          const results = Effect.map(model.embedMany(inputs), ({ embeddings }) => ({
            usage: { inputTokens: undefined },
            results: embeddings.map(({ vector }) => [...vector])
          }))
          return isAway && asked > 20 ? Effect.die("killed") : results
        }
      })
      const space = yield* open
      const documents = Array.from({ length: 60 }, (_, at) => ({ id: `d${at}`, text: `Document ${at} has words.` }))
      const run = outcomes(Indexer.run(space, Stream.fromIterable(documents))).pipe(
        Effect.provideService(EmbeddingModel.EmbeddingModel, failing)
      )
      isAway = true
      yield* Effect.exit(run)
      const stored = (yield* space.hashes()).size
      expect(stored).toBeGreaterThan(0)
      expect(stored).toBeLessThan(60)
      isAway = false
      asked = 0
      const all = Object.values(yield* run)
      expect(all.filter((one) => one === "unchanged").length).toBe(stored)
      expect(asked).toBe(60 - stored)
    }).pipe(Effect.provide(layers))
  )

  it.live("watches a folder", () =>
    Effect.gen(function* () {
      const space = yield* open
      const seen = yield* Indexer.watch(space, "/docs", { glob: "a.md", every: "1 millis" }).pipe(
        Stream.map(({ outcome }) => outcome),
        Stream.tap((outcome) =>
          outcome === "unchanged"
            ? Backend.Backend.use((backend) => backend.write("/docs/a.md", "Changed."))
            : Effect.void
        ),
        Stream.changes,
        Stream.take(4),
        Stream.runCollect
      )
      expect(seen).toEqual(["indexed", "unchanged", "indexed", "unchanged"])
    }).pipe(Effect.provide(layers))
  )
})

describe("run", () => {
  it.effect("removes the documents of a source that a complete stream no longer has", () =>
    Effect.gen(function* () {
      const space = yield* open
      const documents = ["a", "b"].map((id) => ({ id, text: `Text of ${id}.`, source: "site" }))
      yield* outcomes(
        Indexer.run(space, Stream.fromIterable([...documents, { id: "z", text: "Text.", source: "else" }]))
      )
      const again = Indexer.run(space, Stream.fromIterable(documents.slice(1)), { complete: "site" })
      expect(yield* outcomes(again)).toEqual({ b: "unchanged", a: "removed" })
      expect([...(yield* space.hashes()).keys()].sort()).toEqual(["b", "z"])
    }).pipe(Effect.provide(layers))
  )

  it.effect("stores the new time of a document whose text is the same", () =>
    Effect.gen(function* () {
      const space = yield* open
      const index = (at: number) => outcomes(Indexer.run(space, Stream.make({ id: "a", text: "Text of a.", at })))
      yield* index(1)
      expect([yield* index(2), yield* index(2)]).toEqual([{ a: "indexed" }, { a: "unchanged" }])
      expect((yield* space.around("a::0"))[0]?.at).toBe(2)
    }).pipe(Effect.provide(layers))
  )

  it.effect("reports a document that can't be stored, and indexes the others", () =>
    Effect.gen(function* () {
      const space = yield* open
      const documents = [
        { id: "", text: "No id." },
        { id: "a\nb", text: "A wrong id." },
        { id: "good", text: "Good." }
      ]
      expect(yield* outcomes(Indexer.run(space, Stream.fromIterable(documents)))).toEqual({
        "": "failed",
        "a\nb": "failed",
        good: "indexed"
      })
    }).pipe(Effect.provide(layers))
  )
})

describe("a folder of a machine", () => {
  it.live("with links out, endless lines and odd names is indexed without outside files", () =>
    Effect.gen(function* () {
      const root = yield* place
      const outside = yield* place
      mkdirSync(join(outside, "inner"))
      writeFileSync(join(outside, "secret.md"), "The secret is zanzibar.")
      writeFileSync(join(outside, "inner", "other.md"), "Another zanzibar.")
      symlinkSync(join(outside, "secret.md"), join(root, "link.md"))
      symlinkSync(join(outside, "inner"), join(root, "inner"))
      symlinkSync("circle", join(root, "circle"))
      writeFileSync(join(root, "line.txt"), "x".repeat(1_000_000))
      writeFileSync(join(root, "words.txt"), "word ".repeat(200_000))
      writeFileSync(join(root, "-rf 'a\"b.md"), '# It\'s "odd"\nIt speaks of kiwis.')
      writeFileSync(join(root, "two\nlines.md"), "It speaks of mangos.")
      const space = yield* RagIndex.RagIndex.use((index) => index.space("machine"))
      const source = `it's "a" %_\\`
      const found = yield* outcomes(Indexer.folder(space, "/", { source })).pipe(
        Effect.provide(FilesystemBackend.layer({ root }).pipe(Layer.provide(NodeServices.layer)))
      )
      expect(found).toEqual({
        "/-rf 'a\"b.md": "indexed",
        "/line.txt": "indexed",
        "/two\nlines.md": "failed",
        "/words.txt": "indexed"
      })
      const words = (text: string) => Retriever.words(space, text, { filter: { sources: [source] } })
      expect((yield* words("kiwis")).map(({ title }) => title)).toEqual([`It's "odd"`])
      expect(yield* words("zanzibar")).toEqual([])
    }).pipe(Effect.provide(sqlite), Effect.scoped)
  )
})
