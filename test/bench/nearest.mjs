// Measures searches among real vectors, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/nearest.mjs VECTORS 384 1000 10000 100000
// VECTORS is a file of vectors as 32-bit floats; the last 200 are the queries. It compares the ten nearest of `SqliteIndex`,
// or of `PostgresIndex` in the database of DATABASE_URL on this machine, with those of a comparison of all vectors. A
// namespace in Postgres stays for the next run.
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { RagIndex } from "../../src/rag/index.ts"
import * as PostgresIndex from "../../src/rag/PostgresIndex.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"

const [file, dimensions, ...sizes] = [process.argv[2], ...process.argv.slice(3).map(Number)]
const bytes = readFileSync(file)
const all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
const vectorOf = (at) => all.subarray(at * dimensions, (at + 1) * dimensions)
const total = all.length / dimensions - 200
const queries = Array.from({ length: 200 }, (_, at) => vectorOf(total + at))
const model = { id: "real", dimensions }

const at = (some, share) => some.toSorted((a, b) => a - b)[Math.min(some.length - 1, Math.floor(some.length * share))]

/** The ten nearest of the first vectors. */
const exact = (count, query) => {
  const near = Array.from({ length: count }, (_, at) => {
    const vector = vectorOf(at)
    let sum = 0
    for (let index = 0; index < dimensions; index++) sum += vector[index] * query[index]
    return [at, sum]
  })
  return near
    .sort((left, right) => right[1] - left[1])
    .slice(0, 10)
    .map(([at]) => `d${at}`)
}

const entryOf = (at) => {
  const id = `d${at}`
  const chunk = { id: `${id}::0`, document: id, index: 0, start: 0, end: 1, text: "-", headings: [], label: "" }
  return { document: { id, text: "" }, hash: "1", chunks: [chunk], vectors: [[...vectorOf(at)]] }
}

const url = process.env.DATABASE_URL

/** The CPU in milliseconds of each process of the server that works for a client. A tick has 10 ms. */
const serverCpu = Effect.gen(function* () {
  if (url === undefined) return new Map()
  const rows = yield* SqlClient.use(
    (sql) => sql`SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'`
  )
  const ticksOf = ({ pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ")
    return Number(fields[11]) + Number(fields[12])
  }
  return new Map(rows.map((row) => [row.pid, ticksOf(row) * 10]))
})

const measure = Effect.fnUntraced(function* (name, space, count, expected) {
  yield* space.nearest([...queries[0]], { limit: 10 })
  const times = []
  const cpu = []
  let found = 0
  const atFirst = yield* serverCpu
  for (const [index, query] of queries.entries()) {
    const start = performance.now()
    const before = process.cpuUsage()
    const hits = yield* space.nearest([...query], { limit: 10 })
    times.push(performance.now() - start)
    const { system, user } = process.cpuUsage(before)
    cpu.push((system + user) / 1000)
    found += hits.filter(({ chunk }) => expected[index].includes(chunk.document)).length
  }
  const spent = [...(yield* serverCpu)].reduce((sum, [pid, ms]) => sum + ms - (atFirst.get(pid) ?? 0), 0)
  const server = url === undefined ? "" : `, of the server ${(spent / queries.length).toFixed(1)} ms`
  console.log(
    `${name}, ${count}: recall@10 ${(found / queries.length / 10).toFixed(4)}, p50 ${at(times, 0.5).toFixed(1)} ms, p99 ${at(times, 0.99).toFixed(1)} ms, CPU of the process p50 ${at(cpu, 0.5).toFixed(1)} ms, p99 ${at(cpu, 0.99).toFixed(1)} ms${server}`
  )
})

const folder = mkdtempSync(join(tmpdir(), "nearest-bench-"))
const layer =
  url === undefined
    ? Layer.provideMerge(SqliteIndex.layer, SqliteClient.layer({ file: join(folder, "index.db") }))
    : Layer.provideMerge(PostgresIndex.layer, PgClient.layer({ url: Redacted.make(url) }))
const program = Effect.gen(function* () {
  const space = yield* RagIndex.RagIndex.use((index) => index.space("bench", model))
  let stored = (yield* space.hashes()).size
  let took = 0
  for (const size of sizes) {
    const count = Math.min(size, total)
    const start = performance.now()
    for (; stored < count; stored += 200) {
      const length = Math.min(200, count - stored)
      yield* space.put(Array.from({ length }, (_, at) => entryOf(stored + at)))
    }
    stored = count
    took += performance.now() - start
    console.log(`${count} stored in ${(took / 1000).toFixed(1)} s`)
    const expected = queries.map((query) => exact(count, query))
    yield* measure(url === undefined ? "SqliteIndex" : "PostgresIndex", space, count, expected)
  }
})
await Effect.runPromise(Effect.provide(program, layer))
rmSync(folder, { recursive: true })
