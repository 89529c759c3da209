/** What an SQLite file holds when indexing processes are killed, and when several write at once. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HashingEmbedding, RagIndex, Retriever } from "effect-deepagents/rag"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { bundle } from "../bundle.ts"
import { linesOf, runChild } from "../child.ts"
import { isFull } from "../scale.ts"

/** Indexes in a process, and kills it after so many lines. */
const index = (file: string, namespace: string, round: number, killAfter = Infinity) =>
  Effect.map(
    runChild(
      bundle(new URL("children/indexer.ts", import.meta.url)),
      [file, namespace, String(round)],
      (text, child) => {
        if (text.split("\n").length > killAfter) child.kill("SIGKILL")
      }
    ),
    ({ text }) => linesOf(text)
  )

/** Checks that each document is there wholly, in all tables. */
const checkFile = (file: string) =>
  Effect.sync(() => {
    const database = new DatabaseSync(file)
    const one = (sql: string) => Object.values(database.prepare(sql).get() ?? {})[0]
    expect(one("PRAGMA integrity_check")).toBe("ok")
    for (const { name, pk } of database.prepare("SELECT pk, name FROM rag_spaces").all()) {
      const chunks = one(
        `SELECT count(*) FROM rag_chunks c JOIN rag_documents d ON d.pk = c.document WHERE d.space = ${String(pk)}`
      )
      expect([name, one(`SELECT count(*) FROM rag_signs WHERE space = ${String(pk)}`)]).toEqual([name, chunks])
      expect([name, one(`SELECT count(*) FROM rag_texts_${String(pk)}_docsize`)]).toEqual([name, chunks])
      database.exec(`INSERT INTO rag_texts_${String(pk)}(rag_texts_${String(pk)}) VALUES ('integrity-check')`)
    }
    expect(one("SELECT (SELECT count(*) FROM rag_vectors) - (SELECT count(*) FROM rag_chunks)")).toBe(0)
    expect(
      one("SELECT count(*) FROM rag_chunks c WHERE NOT EXISTS (SELECT 1 FROM rag_documents d WHERE d.pk = c.document)")
    ).toBe(0)
    expect(
      one("SELECT count(*) FROM rag_documents d WHERE NOT EXISTS (SELECT 1 FROM rag_chunks c WHERE c.document = d.pk)")
    ).toBe(0)
    database.close()
  })

const makeFile = () => join(mkdtempSync(join(tmpdir(), "rag-")), "index.db")

const layerOf = (file: string) =>
  Layer.merge(SqliteIndex.layer.pipe(Layer.provide(SqliteClient.layer({ file }))), HashingEmbedding.layer())

/** RAG_KILLS sets how often the processes are killed. */
const kills = Number(process.env["RAG_KILLS"] ?? (isFull ? 2 : 1))

describe("processes", () => {
  it.live(
    "kill -9 of two indexers of one file leaves whole documents, and the next ones go on",
    () =>
      Effect.gen(function* () {
        const file = makeFile()
        for (let round = 0; round < kills; round++) {
          yield* Effect.all(
            [index(file, "a", round, 8 + ((round * 37) % 60)), index(file, "b", round, 8 + ((round * 53) % 60))],
            {
              concurrency: 2
            }
          )
          yield* checkFile(file)
        }
        const last = kills - 1
        const [first, second] = yield* Effect.all([index(file, "a", last), index(file, "a", last)], { concurrency: 2 })
        yield* checkFile(file)
        expect([first.length, second.length]).toEqual([80, 80])
        const again = yield* index(file, "a", last)
        expect(new Set(again)).toEqual(new Set(["unchanged"]))
        yield* Effect.gen(function* () {
          const space = yield* RagIndex.RagIndex.use((one) => one.space("a", HashingEmbedding.model()))
          const hits = yield* Retriever.search(space, "aonly bonly topic7", { limit: 50 })
          expect(hits.length).toBe(50)
          expect(hits.filter(({ chunk }) => chunk.text.includes("bonly"))).toEqual([])
        }).pipe(Effect.provide(layerOf(file)))
      }),
    120_000
  )

  it.live(
    "searches find whole documents while another process replaces them",
    () =>
      Effect.gen(function* () {
        const file = makeFile()
        yield* index(file, "a", 0)
        const space = yield* RagIndex.RagIndex.use((one) => one.space("a", HashingEmbedding.model())).pipe(
          Effect.provide(yield* Layer.build(layerOf(file)))
        )
        const read = Effect.map(space.around("d0::0", { below: 50 }), (hits) => hits.map(({ chunk }) => chunk.text))
        const before = yield* read
        const writing = yield* Effect.forkChild(index(file, "a", 1))
        for (let reads = 0; writing.pollUnsafe() === undefined; reads++) {
          const texts = yield* read
          expect(texts.slice(1)).toEqual(before.slice(1))
          expect(texts[0]?.replace("aonly 1", "aonly 0")).toBe(before[0])
          if (reads % 20 === 0) expect(yield* Retriever.words(space, "aonly topic7", { limit: 50 })).toHaveLength(50)
          yield* Effect.sleep("1 millis")
        }
        expect((yield* read)[0]).toContain("aonly 1")
      }).pipe(Effect.scoped),
    60_000
  )

  it.live("follows what other connections store and remove", () =>
    Effect.gen(function* () {
      const file = makeFile()
      const open = Effect.flatMap(Layer.build(Layer.fresh(layerOf(file))), (context) =>
        RagIndex.RagIndex.use((one) => one.space("a", HashingEmbedding.model())).pipe(Effect.provide(context))
      )
      const one = yield* open
      const other = yield* open
      const vector = Array.from({ length: 384 }, (_, at) => (at === 0 ? 1 : 0))
      const putDocument = (id: string) => {
        const chunk = { id: `${id}::0`, document: id, index: 0, start: 0, end: 1, text: "x", headings: [], label: "" }
        return one.put([{ document: { id, text: "x" }, hash: "1", chunks: [chunk], vectors: [vector] }])
      }
      const found = Effect.map(other.nearest(vector, { limit: 9 }), (hits) => hits.map(({ chunk }) => chunk.document))
      yield* putDocument("a")
      expect(yield* found).toEqual(["a"])
      yield* putDocument("b")
      yield* one.remove(["a"])
      expect(yield* found).toEqual(["b"])
    }).pipe(Effect.scoped)
  )
})
