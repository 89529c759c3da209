// Measures searches by vectors beside other libraries, from the sources:
//   PEERS=FOLDER node --conditions=@effect-deepagents/source test/bench/retrieval-peers.mjs 1000
// The folder has `npm install @langchain/core @langchain/classic @orama/orama llamaindex`. Numbers are ms of CPU.
import { mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Layer } from "effect"
import { MemoryIndex, RagIndex } from "../../src/rag/index.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"

const count = Number(process.argv[2] ?? 1_000)
const only = process.argv[3]
const peers = createRequire(join(process.env.PEERS ?? ".", "package.json"))
const folder = mkdtempSync(join(tmpdir(), "rag-peers-"))
const dimensions = 384

let seed = 7
const random = () => {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff
  return seed / 0x7fffffff
}
const word = () => `w${Math.floor(Math.exp(random() * Math.log(30_000)))}`
const clusters = Array.from({ length: 200 }, () => Array.from({ length: dimensions }, () => random() - 0.5))
const makeVector = () => {
  const centre = clusters[Math.floor(random() * clusters.length)]
  const vector = centre.map((value) => 0.8 + value * 0.3 + (random() - 0.5) * 0.3)
  const length = Math.hypot(...vector)
  return vector.map((value) => value / length)
}
const rows = Array.from({ length: count }, (_, at) => ({
  id: `d${at}`,
  text: Array.from({ length: 60 }, word).join(" "),
  vector: makeVector()
}))

const ours = (layer) => async () => {
  const run = (effect) => Effect.runPromise(Effect.provide(effect, context))
  const context = await Effect.runPromise(Layer.build(layer).pipe(Effect.provideService(Scope.Scope, scope)))
  const space = await run(RagIndex.RagIndex.use((index) => index.space("a", { id: "bench", dimensions })))
  for (let from = 0; from < count; from += 200) {
    await run(
      space.put(
        rows.slice(from, from + 200).map(({ id, text, vector }) => ({
          document: { id, text: "" },
          hash: "1",
          chunks: [
            { id: `${id}::0`, document: id, index: 0, start: 0, end: text.length, text, headings: [], label: "" }
          ],
          vectors: [vector]
        }))
      )
    )
  }
  return {
    vectors: (vector) => run(space.nearest(vector, { limit: 10 })),
    words: (text) => run(space.words(text, { limit: 10 }))
  }
}
const { Scope } = await import("effect")
const scope = Scope.makeUnsafe()

const candidates = {
  MemoryIndex: ours(MemoryIndex.layer),
  SqliteIndex: ours(Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: join(folder, "ours.db") }))),
  "bare SQL": async () => {
    const database = new DatabaseSync(join(folder, "bare.db"))
    database.exec("CREATE TABLE v (id TEXT, vector BLOB); CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, text); BEGIN")
    const vectors = database.prepare("INSERT INTO v VALUES (?, ?)")
    const texts = database.prepare("INSERT INTO t VALUES (?, ?)")
    for (const { id, text, vector } of rows) {
      vectors.run(id, new Uint8Array(Float32Array.from(vector).buffer))
      texts.run(id, text)
    }
    database.exec("COMMIT")
    const all = database.prepare("SELECT id, vector FROM v")
    const match = database.prepare("SELECT id, rank FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10")
    return {
      vectors: async (wanted) => {
        const found = []
        for (const { id, vector } of all.iterate()) {
          const own = new Float32Array(vector.buffer.slice(vector.byteOffset, vector.byteOffset + vector.byteLength))
          let sum = 0
          for (let at = 0; at < dimensions; at++) sum += own[at] * wanted[at]
          found.push([id, sum])
        }
        return found.sort((left, right) => right[1] - left[1]).slice(0, 10)
      },
      words: async (text) => match.all(text.split(" ").join(" OR "))
    }
  },
  "LangChain.js, MemoryVectorStore": async () => {
    const { MemoryVectorStore } = peers("@langchain/classic/vectorstores/memory")
    const store = new MemoryVectorStore({ embedDocuments: async () => [], embedQuery: async () => [] })
    await store.addVectors(
      rows.map(({ vector }) => vector),
      rows.map(({ id, text }) => ({ pageContent: text, metadata: { id } }))
    )
    return { vectors: (vector) => store.similaritySearchVectorWithScore(vector, 10) }
  },
  "LlamaIndex.TS, SimpleVectorStore": async () => {
    const { Settings, SimpleVectorStore, TextNode } = peers("llamaindex")
    Settings.embedModel = { getTextEmbedding: async () => [] }
    const store = new SimpleVectorStore()
    await store.add(rows.map(({ id, text, vector }) => new TextNode({ id_: id, text, embedding: vector })))
    return { vectors: (vector) => store.query({ queryEmbedding: vector, similarityTopK: 10, mode: "default" }) }
  },
  orama: async () => {
    const { create, insertMultiple, search } = peers("@orama/orama")
    const database = await create({ schema: { text: "string", vector: `vector[${dimensions}]` } })
    await insertMultiple(
      database,
      rows.map(({ id, text, vector }) => ({ id, text, vector })),
      1_000
    )
    return {
      vectors: (value) =>
        search(database, { mode: "vector", vector: { value, property: "vector" }, similarity: 0, limit: 10 }),
      words: (term) => search(database, { term, properties: ["text"], threshold: 1, limit: 10 })
    }
  }
}

const cpu = async (body) => {
  const before = process.cpuUsage()
  const value = await body()
  const { system, user } = process.cpuUsage(before)
  return [value, (system + user) / 1_000]
}
const at = (all, share) => all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * share))]

for (const [name, open] of Object.entries(candidates)) {
  if (only !== undefined && !name.includes(only)) continue
  try {
    const [search, indexing] = await cpu(open)
    const times = async (find) => {
      if (find === undefined) return "-"
      await find()
      const all = []
      for (let round = 0; round < 30; round++) all.push((await cpu(find))[1])
      return `p50 ${at(all, 0.5).toFixed(1)} p99 ${at(all, 0.99).toFixed(1)}`
    }
    const near = await times(() => search.vectors(makeVector()))
    const worded = await times(search.words && (() => search.words(`${word()} ${word()} ${word()}`)))
    console.log(`${count}, ${name}: index ${(indexing / 1_000).toFixed(1)} s; vectors ${near}; words ${worded}`)
  } catch (error) {
    console.log(`${count}, ${name}: ${String(error).slice(0, 200)}`)
  }
}
rmSync(folder, { recursive: true, force: true })
process.exit(0)
