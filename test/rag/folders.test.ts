/** Folders of a machine with files that can't be indexed, and with files that change meanwhile. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Backend } from "effect-deepagents"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { Indexer, RagIndex, Retriever } from "effect-deepagents/rag"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"

const place = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "folders-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const indexIn = (root: string) =>
  SqliteIndex.layer.pipe(Layer.provide(SqliteClient.layer({ file: join(root, "index.db") })))

const outcomes = <E, R>(progress: Stream.Stream<Indexer.Progress, E, R>) =>
  Effect.map(Stream.runCollect(progress), (all) => Object.fromEntries(all.map((one) => [one.document, one.outcome])))

it.live(
  "an index in the folder that it indexes, a pipe and a huge file stop nothing, and say why they are left out",
  () =>
    Effect.gen(function* () {
      const root = yield* place
      writeFileSync(join(root, "good.md"), "# Leave\nThirty days.")
      writeFileSync(join(root, "huge.txt"), "x")
      truncateSync(join(root, "huge.txt"), 2 ** 30)
      if (process.platform !== "win32") execFileSync("mkfifo", [join(root, "pipe.md")])
      yield* Effect.gen(function* () {
        const space = yield* RagIndex.RagIndex.use((index) => index.space("a"))
        // The second round has a log beside the file, which the first one wrote.
        for (const outcome of ["indexed", "unchanged"]) {
          const progress = yield* Stream.runCollect(Indexer.folder(space, "/"))
          const byName = new Map(progress.map((one) => [one.document, one]))
          assert.strictEqual(byName.get("/good.md")?.outcome, outcome)
          assert.isFalse(byName.has("/pipe.md"))
          assert.include(byName.get("/index.db")?.problem, "open as an SQLite database")
          assert.include(byName.get("/huge.txt")?.problem, "bytes")
          const others = progress.filter(({ document }) => document !== "/good.md")
          assert.isTrue(others.every((one) => one.outcome === "failed" && one.problem !== undefined))
        }
        assert.lengthOf(yield* Retriever.words(space, "thirty days"), 1)
      }).pipe(Effect.provide([indexIn(root), FilesystemBackend.layer({ root })]))
    }).pipe(Effect.scoped)
)

it.live("a file that changes or vanishes while it is indexed is stored as it was read, or stays as it was", () =>
  Effect.gen(function* () {
    const root = yield* place
    const write = (name: string, text: string) => writeFileSync(join(root, name), text)
    for (const name of ["changed.md", "gone.md", "kept.md"]) write(name, `The first version of ${name}.`)
    yield* Effect.gen(function* () {
      const space = yield* RagIndex.RagIndex.use((index) => index.space("a"))
      const backend = yield* Backend.Backend
      const index = outcomes(Indexer.folder(space, "/", { glob: "*.md" }))
      yield* index
      // Listed, but changed before they are read.
      const changing = Effect.provideService(index, Backend.Backend, {
        ...backend,
        download: (paths) =>
          Effect.suspend(() => {
            write("changed.md", "The second version of it.")
            rmSync(join(root, "gone.md"), { force: true })
            return backend.download(paths)
          })
      })
      assert.deepStrictEqual(yield* changing, {
        "/changed.md": "indexed",
        "/gone.md": "failed",
        "/kept.md": "unchanged"
      })
      const texts = Effect.map(Retriever.words(space, "version"), (hits) => hits.map(({ chunk }) => chunk.text).sort())
      assert.deepStrictEqual(yield* texts, [
        "The first version of gone.md.",
        "The first version of kept.md.",
        "The second version of it."
      ])
      assert.deepStrictEqual(yield* index, {
        "/changed.md": "unchanged",
        "/gone.md": "removed",
        "/kept.md": "unchanged"
      })
    }).pipe(Effect.provide([indexIn(root), FilesystemBackend.layer({ root })]))
  }).pipe(Effect.scoped)
)
