// Measures the ranks by words on the Cranfield collection, which is not part of this repository, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/cranfield.mjs FOLDER
// The folder has cran.all.1400, cran.qry and cranqrel. Questions count by their place, as in cranqrel.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { MemoryIndex, RagIndex } from "../../src/rag/index.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"
import { ndcg, recall } from "./ranks.mjs"

const folder = process.argv[2] ?? "."

const textOf = (file) => readFileSync(join(folder, file), "utf8").replaceAll("\r", "")
const recordsOf = (file) => textOf(file).split(/^\.I /m).slice(1)
const fieldOf = (record, name) =>
  (new RegExp(`\\n\\.${name}\\n([\\s\\S]*?)(?=\\n\\.[A-Z]\\n|$)`).exec(record)?.[1] ?? "").replace(/\s+/g, " ").trim()

const entries = recordsOf("cran.all.1400").map((record, at) => {
  const document = { id: String(at + 1), text: fieldOf(record, "W"), title: fieldOf(record, "T") }
  const chunk = { id: `${at + 1}::0`, document: document.id, index: 0, start: 0, end: document.text.length }
  return { document, hash: "1", chunks: [{ ...chunk, text: document.text, headings: [], label: "" }] }
})
const questions = recordsOf("cran.qry").map((record) => fieldOf(record, "W"))
const relevant = questions.map(() => new Set())
for (const line of textOf("cranqrel").split("\n")) {
  const [question, document, code] = line.trim().split(/\s+/)
  if (document !== undefined && Number(code) > 0) relevant[Number(question) - 1]?.add(document)
}

for (const [name, layer] of [
  ["SqliteIndex", Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: ":memory:" }))],
  ["MemoryIndex", MemoryIndex.layer]
]) {
  const program = Effect.gen(function* () {
    const space = yield* RagIndex.RagIndex.use((index) => index.space("cranfield"))
    yield* space.put(entries)
    const lists = yield* Effect.forEach(questions, (question) => space.words(question, { limit: 10 }))
    const mean = (score) =>
      lists.reduce(
        (sum, hits, at) =>
          sum +
          score(
            hits.map(({ chunk }) => chunk.document),
            relevant[at]
          ),
        0
      ) / questions.length
    console.log(`${name}: nDCG@10 ${mean(ndcg).toFixed(4)}, recall@10 ${mean(recall).toFixed(4)}`)
  })
  await Effect.runPromise(Effect.provide(program, layer))
}
