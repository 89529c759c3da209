// Measures the speed of retrieval, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/retrieval.mjs 100000
// It indexes synthetic chunks, searches them, and watches the event loop; in the Postgres of DATABASE_URL, if it is set.
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { monitorEventLoopDelay } from "node:perf_hooks"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Redacted } from "effect"
import { RagIndex } from "../../src/rag/index.ts"
import * as PostgresIndex from "../../src/rag/PostgresIndex.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"

const count = Number(process.argv[2] ?? 10_000)
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
      // The CPU that the main thread takes without a break: other work on the machine does not count.
      let isOver = false
      let held = 0
      let begin = process.threadCpuUsage()
      const watch = () => {
        const { system, user } = process.threadCpuUsage(begin)
        held = Math.max(held, (system + user) / 1000)
        begin = process.threadCpuUsage()
        if (!isOver) setImmediate(watch)
      }
      setImmediate(watch)
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
      isOver = true
      console.log(
        `${name}: p50 ${round(at(times, 0.5))} ms, p99 ${round(at(times, 0.99))} ms, CPU ${round(at(cpu, 0.5))} ms, of the main thread p50 ${round(at(own, 0.5))} and at most ${round(at(own, 1))} ms, event loop held ${round(held)} ms of CPU at most, ${round(delay.max / 1e6)} ms at most, ${round(delay.percentile(99) / 1e6)} ms at p99`
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

await Effect.runPromise(speed(count))
