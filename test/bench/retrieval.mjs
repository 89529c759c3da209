import { createHash } from "node:crypto"
// Measures retrieval, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/retrieval.mjs speed 100000
//   node --conditions=@effect-deepagents/source test/bench/retrieval.mjs quality http://127.0.0.1:8000/v1/embeddings /tmp/vectors.json
// `speed` indexes synthetic chunks, searches them, and watches the event loop; in the Postgres of DATABASE_URL, if it is set.
// `quality` asks the questions of
// retrieval-questions.mjs about docs/. Its server has OpenAI's embeddings endpoint with `input_type` (query or passage); the file
// keeps the vectors between two calls.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { monitorEventLoopDelay } from "node:perf_hooks"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Redacted } from "effect"
import { Chunk, Chunker, MemoryIndex, RagIndex } from "../../src/rag/index.ts"
import * as PostgresIndex from "../../src/rag/PostgresIndex.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"
import { questions } from "./retrieval-questions.mjs"

const [mode = "speed", first = "10000", second = join(tmpdir(), "vectors.json")] = process.argv.slice(2)
const dimensions = 384
const model = { id: "bench", dimensions }

const at = (all, share) => all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * share))]
const round = (n) => Math.round(n * 100) / 100

let seed = 7
const random = () => {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff
  return seed / 0x7fffffff
}
/** Words as frequent as in prose: the nth has a share of 1/n. */
const word = () => `w${Math.floor(Math.exp(random() * Math.log(30_000)))}`

const clusters = Array.from({ length: 200 }, () => Array.from({ length: dimensions }, () => random() - 0.5))
/** Vectors in a narrow cone with clusters, as real models make them. */
const vector = () => {
  const centre = clusters[Math.floor(random() * clusters.length)]
  return centre.map((value) => 0.8 + value * 0.3 + (random() - 0.5) * 0.3)
}

const speed = Effect.fnUntraced(function* (count) {
  const folder = mkdtempSync(join(tmpdir(), "rag-bench-"))
  const file = join(folder, "index.db")
  const url = process.env.DATABASE_URL
  const index =
    url === undefined
      ? Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file }))
      : Layer.provide(PostgresIndex.layer, PgClient.layer({ url: Redacted.make(url) }))
  yield* Effect.gen(function* () {
    yield* RagIndex.RagIndex.use((index) => index.drop("bench"))
    const space = yield* RagIndex.RagIndex.use((index) => index.space("bench", model))
    const began = performance.now()
    const before = process.cpuUsage()
    for (let from = 0; from < count; from += 200) {
      const entries = Array.from({ length: 10 }, (_, document) => {
        const id = `d${from / 20 + document}`
        const chunks = Array.from({ length: 20 }, (_, index) => {
          const text = Array.from({ length: 60 }, word).join(" ")
          return {
            id: `${id}::${index}`,
            document: id,
            index,
            start: 0,
            end: text.length,
            text,
            headings: [],
            label: ""
          }
        })
        return {
          document: { id, text: "", source: `s${document}` },
          hash: "1",
          chunks,
          vectors: chunks.map(vector)
        }
      })
      yield* space.put(entries)
    }
    const took = performance.now() - began
    const { system, user } = process.cpuUsage(before)
    console.log(
      `index ${count}: ${round(took / 1000)} s, CPU ${round((system + user) / 1e6)} s, file ${url === undefined ? round(statSync(file).size / 1e6) : "?"} MB`
    )
    const run = Effect.fnUntraced(function* (name, search) {
      yield* search()
      yield* Effect.sleep("100 millis")
      const delay = monitorEventLoopDelay({ resolution: 1 })
      delay.enable()
      const times = []
      const cpu = []
      const own = []
      for (let round = 0; round < 40; round++) {
        const start = performance.now()
        const used = process.cpuUsage()
        const here = process.threadCpuUsage()
        yield* search()
        times.push(performance.now() - start)
        const { system, user } = process.cpuUsage(used)
        cpu.push((system + user) / 1000)
        const mine = process.threadCpuUsage(here)
        own.push((mine.system + mine.user) / 1000)
      }
      yield* Effect.sleep("5 millis")
      delay.disable()
      console.log(
        `${name}: p50 ${round(at(times, 0.5))} ms, p99 ${round(at(times, 0.99))} ms, CPU ${round(at(cpu, 0.5))} ms, of the main thread p50 ${round(at(own, 0.5))} and at most ${round(at(own, 1))} ms, event loop held ${round(delay.max / 1e6)} ms at most, ${round(delay.percentile(99) / 1e6)} ms at p99`
      )
    })
    const sentence = () => Array.from({ length: 17 }, word).join(" ")
    yield* Effect.sleep("1 seconds")
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    yield* Effect.sleep("2 seconds")
    delay.disable()
    console.log(`nothing: event loop held ${round(delay.max / 1e6)} ms at most`)
    yield* run("words, 17", () => space.words(sentence(), { limit: 20 }))
    yield* run("words, 3", () => space.words(`${word()} ${word()} ${word()}`, { limit: 20 }))
    yield* run("words, filtered", () => space.words(sentence(), { limit: 20, filter: { sources: ["s3"] } }))
    yield* run("nearest", () => space.nearest(vector(), { limit: 20 }))
    yield* run("nearest, filtered", () => space.nearest(vector(), { limit: 20, filter: { sources: ["s3"] } }))
  }).pipe(Effect.provide(index))
  rmSync(folder, { recursive: true })
})

const ndcg = (hits, relevant) => {
  let sum = 0
  hits.slice(0, 10).forEach((hit, rank) => {
    if (relevant.has(hit)) sum += 1 / Math.log2(rank + 2)
  })
  let best = 0
  for (let rank = 0; rank < Math.min(10, relevant.size); rank++) best += 1 / Math.log2(rank + 2)
  return sum / best
}
const recall = (hits, relevant) =>
  hits.slice(0, 10).filter((hit) => relevant.has(hit)).length / Math.min(10, relevant.size)

/** Makes vectors by a server, and keeps them in a file. */
const makeEmbed = (url, file) => {
  const known = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {}
  return async (type, texts) => {
    const keyOf = (text) => createHash("sha256").update(`${type}\n${text}`).digest("base64").slice(0, 16)
    const missing = texts.filter((text) => known[keyOf(text)] === undefined)
    for (let from = 0; from < missing.length; from += 8) {
      const input = missing.slice(from, from + 8)
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "e5", input, input_type: type })
      })
      const { data } = await response.json()
      data.forEach(({ embedding }, index) => {
        known[keyOf(input[index])] = embedding.map((value) => Math.round(value * 1e5) / 1e5)
      })
      writeFileSync(file, JSON.stringify(known))
    }
    return texts.map((text) => known[keyOf(text)])
  }
}

const quality = Effect.fnUntraced(function* (url, file) {
  const embed = makeEmbed(url, file)
  const all = readdirSync("docs")
    .filter((name) => name.endsWith(".md"))
    .map((name) => {
      const text = readFileSync(`docs/${name}`, "utf8")
      const document = { id: name.slice(0, -3), text, title: /^# (.+)$/m.exec(text)?.[1] ?? name }
      return { document, hash: "1", chunks: Chunker.chunk(document, { split: Chunker.markdown, tokens: 256 }) }
    })
  // CHUNKS bounds the vectors to make: the shortest pages that questions are about.
  const most = Number(process.env["CHUNKS"] ?? Infinity)
  const pages = new Set(questions.map(([, page]) => page))
  let count = 0
  const entries = all
    .toSorted((left, right) => left.chunks.length - right.chunks.length)
    .filter(({ chunks, document }) => (most === Infinity || pages.has(document.id)) && (count += chunks.length) <= most)
  const chunks = entries.flatMap((entry) => entry.chunks.map((chunk) => ({ chunk, title: entry.document.title })))
  const there = new Set(entries.map(({ document }) => document.id))
  const asked = questions
    .filter(([, page]) => there.has(page))
    .map(([text, page, heading]) => ({
      text,
      relevant: new Set(
        chunks
          .filter(
            ({ chunk }) =>
              chunk.document === page && (chunk.headings.includes(heading) || chunk.text.includes(`# ${heading}\n`))
          )
          .map(({ chunk }) => chunk.id)
      )
    }))
  for (const { relevant, text } of asked) if (relevant.size === 0) console.log(`no answer: ${text}`)
  console.log(`${entries.length} pages, ${chunks.length} chunks, ${asked.length} questions`)
  const vectors = yield* Effect.promise(() =>
    embed(
      "passage",
      chunks.map(({ chunk, title }) => Chunk.inContext(title, chunk))
    )
  )
  const queries = yield* Effect.promise(() =>
    embed(
      "query",
      asked.map(({ text }) => text)
    )
  )
  let from = 0
  const stored = entries.map((entry) => ({ ...entry, vectors: vectors.slice(from, (from += entry.chunks.length)) }))
  const fuse = (near, worded, alpha) => {
    const found = new Map()
    near.forEach((id, rank) => found.set(id, alpha / (60 + rank)))
    worded.forEach((id, rank) => found.set(id, (found.get(id) ?? 0) + (1 - alpha) / (60 + rank)))
    return [...found].sort((left, right) => right[1] - left[1]).map(([id]) => id)
  }
  for (const [name, layer] of [
    ["SqliteIndex", Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: ":memory:" }))],
    ["MemoryIndex", MemoryIndex.layer]
  ]) {
    yield* Effect.gen(function* () {
      const space = yield* RagIndex.RagIndex.use((index) => index.space("docs", model))
      yield* space.put(stored)
      const runs = { words: [], vectors: [], "hybrid 0.5": [], "hybrid 0.7": [] }
      for (const [index, { text }] of asked.entries()) {
        const worded = (yield* space.words(text, { limit: 20 })).map(({ chunk }) => chunk.id)
        const near = (yield* space.nearest(queries[index], { limit: 20 })).map(({ chunk }) => chunk.id)
        runs.words.push(worded)
        runs.vectors.push(near)
        runs["hybrid 0.5"].push(fuse(near, worded, 0.5))
        runs["hybrid 0.7"].push(fuse(near, worded, 0.7))
      }
      for (const [run, lists] of Object.entries(runs)) {
        const exact = (score) =>
          (lists.reduce((sum, hits, index) => sum + score(hits, asked[index].relevant), 0) / asked.length).toFixed(3)
        console.log(`${name} ${run}: nDCG@10 ${exact(ndcg)}, recall@10 ${exact(recall)}`)
      }
    }).pipe(Effect.provide(layer))
  }
})

await Effect.runPromise(mode === "quality" ? quality(first, second) : speed(Number(first)))
