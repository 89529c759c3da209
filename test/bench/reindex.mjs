// Measures the indexing of a folder whose files did not change, beside a walk that hashes them, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/reindex.mjs 10000
import { createHash } from "node:crypto"
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import * as FilesystemBackend from "../../src/backends/FilesystemBackend.ts"
import { Backend } from "../../src/core/Backend.ts"
import { Indexer, RagIndex } from "../../src/rag/index.ts"
import * as SqliteIndex from "../../src/rag/SqliteIndex.ts"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"

const count = Number(process.argv[2] ?? 10_000)
const folder = mkdtempSync(join(tmpdir(), "reindex-"))
const root = join(folder, "docs")
for (let at = 0; at < count; at++) {
  const own = join(root, `f${at % 100}`)
  if (at < 100) mkdirSync(own, { recursive: true })
  writeFileSync(join(own, `${at}.md`), `# Page ${at}\n${`The page ${at} has some words. `.repeat(60)}`)
}

const measure = async (name, body) => {
  const before = process.cpuUsage()
  const start = performance.now()
  const value = await body()
  const { system, user } = process.cpuUsage(before)
  const cpu = (system + user) / 1_000
  console.log(`${name}: ${Math.round(performance.now() - start)} ms, CPU ${Math.round(cpu)} ms`, value ?? "")
  return cpu
}

const sha = (bytes) => createHash("sha256").update(bytes).digest("hex")
const program = Effect.gen(function* () {
  const space = yield* RagIndex.RagIndex.use((index) => index.space("a"))
  const services = yield* Effect.context()
  const run = (effect) => Effect.runPromise(Effect.provide(effect, services))
  const index = () =>
    run(
      Effect.map(Stream.runCollect(Indexer.folder(space, "/")), (all) => {
        const { indexed, unchanged } = all.at(-1)
        return { indexed, unchanged }
      })
    )
  yield* Effect.promise(() => measure("first", index))
  const walkBackend = () =>
    run(
      Effect.gen(function* () {
        const backend = yield* Backend
        const { entries } = yield* backend.glob({ pattern: "**", path: "/", limit: 100_000 })
        const paths = entries.filter(({ kind }) => kind === "file").map(({ path }) => path)
        for (let from = 0; from < paths.length; from += 16) {
          for (const file of yield* backend.download(paths.slice(from, from + 16))) sha(file.value)
        }
      })
    )
  const walk = async () => {
    for (const name of globSync("**/*.md", { cwd: root })) sha(readFileSync(join(root, name)))
  }
  const rounds = []
  for (let round = 0; round < 3; round++) {
    rounds.push([
      yield* Effect.promise(() => measure("unchanged", index)),
      yield* Effect.promise(() => measure("a walk of the backend with hashes", walkBackend)),
      yield* Effect.promise(() => measure("a walk of node:fs with hashes", walk))
    ])
  }
  const least = (at) => Math.min(...rounds.map((round) => round[at]))
  console.log(
    `unchanged ÷ walk of the backend: ${(least(0) / least(1)).toFixed(2)}; ÷ node:fs: ${(least(0) / least(2)).toFixed(2)}`
  )
})

await Effect.runPromise(
  Effect.provide(program, [
    Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file: join(folder, "index.db") })),
    FilesystemBackend.layer({ root })
  ])
)
rmSync(folder, { recursive: true, force: true })
