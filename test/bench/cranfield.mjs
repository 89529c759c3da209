// Measures the ranks on the Cranfield collection, which is not part of this repository, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/cranfield.mjs FOLDER [ADDRESS] [RERANKER]
// The folder has cran.all.1400, cran.qry and cranqrel. Questions count by their place, as in cranqrel. ADDRESS is a server
// with OpenAI's embeddings endpoint and `input_type`: without it, documents are found by words only. RERANKER is a server for
// reranking, such as rerank-server.py: it orders the twenty best passages of each list anew.
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { MemoryIndex, RagIndex, Rerank } from "../../src/rag/index.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"
import { join, ndcg, recall } from "./ranks.mjs"

const [folder = ".", address, reranker] = process.argv.slice(2)
const model = { id: "e5", dimensions: 384 }

const embed = async (type, texts) => {
  const vectors = []
  for (let from = 0; address !== undefined && from < texts.length; from += 16) {
    const body = JSON.stringify({ model: "e5", input: texts.slice(from, from + 16), input_type: type })
    const response = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body })
    vectors.push(...(await response.json()).data.map(({ embedding }) => embedding))
  }
  return vectors
}

const textOf = (file) => readFileSync(path.join(folder, file), "utf8").replaceAll("\r", "")
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

const vectors = await embed(
  "passage",
  entries.map(({ document }) => `${document.title}\n${document.text}`)
)
const wanted = await embed("query", questions)
const stored = entries.map((entry, at) => (vectors[at] === undefined ? entry : { ...entry, vectors: [vectors[at]] }))

for (const [name, layer] of [
  ["SqliteIndex", Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: ":memory:" }))],
  ["MemoryIndex", MemoryIndex.layer]
]) {
  const program = Effect.gen(function* () {
    const space = yield* RagIndex.RagIndex.use((index) => index.space("cranfield", model))
    yield* space.put(stored)
    const idsOf = Effect.map((hits) => hits.map(({ chunk }) => chunk.document))
    const show = (run, lists) => {
      const mean = (score) =>
        (lists.reduce((sum, hits, at) => sum + score(hits, relevant[at]), 0) / questions.length).toFixed(4)
      console.log(`${name}, ${run}: nDCG@10 ${mean(ndcg)}, recall@10 ${mean(recall)}`)
    }
    /** Shows a run, and the same with its twenty best passages in the order of the reranker. */
    const showBoth = Effect.fnUntraced(function* (run, lists) {
      show(run, lists)
      if (reranker === undefined) return
      const rerank = Rerank.byServer({ url: reranker, model: "reranker" })
      const textOfEntry = ({ document }) => `${document.title}\n${document.text}`
      const ordered = yield* Effect.forEach(lists, (list, at) => {
        const best = list.slice(0, 20)
        return Effect.map(
          rerank(
            questions[at],
            best.map((id) => textOfEntry(entries[Number(id) - 1]))
          ),
          (scores) => best.toSorted((left, right) => scores[best.indexOf(right)] - scores[best.indexOf(left)])
        )
      })
      show(`${run}, reranked`, ordered)
      show(
        `${run}, reranked and joined`,
        lists.map((list, at) =>
          join([
            [0.5, list],
            [0.5, ordered[at]]
          ])
        )
      )
    })
    const words = yield* Effect.forEach(questions, (question) => idsOf(space.words(question, { limit: 20 })))
    yield* showBoth("words", words)
    if (address === undefined) return
    const near = yield* Effect.forEach(wanted, (vector) => idsOf(space.nearest(vector, { limit: 20 })))
    yield* showBoth("vectors", near)
    for (const alpha of [0.5, 0.7]) {
      yield* showBoth(
        `both, alpha ${alpha}`,
        near.map((list, at) =>
          join([
            [alpha, list],
            [1 - alpha, words[at]]
          ])
        )
      )
    }
  })
  await Effect.runPromise(Effect.provide(program, Layer.merge(layer, FetchHttpClient.layer)))
}
