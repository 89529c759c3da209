// Measures the CPU of searches for facts, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/facts.mjs 10000 1536
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import * as SqliteClient from "../../src/sessions/SqliteClient.ts"
import { MemoryStore, Storage } from "../../src/stores/index.ts"

const count = Number(process.argv[2] ?? 10_000)
const folder = mkdtempSync(join(tmpdir(), "facts-bench-"))

let seed = 7
const random = () => {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff
  return seed / 0x7fffffff
}
/** Words as frequent as in prose. None is the beginning of another one. */
const word = () =>
  `${Math.floor(Math.exp(random() * Math.log(20_000)))
    .toString(36)
    .padStart(4, "q")}`
const texts = Array.from({ length: count }, (_, at) => `fact ${at} ${Array.from({ length: 15 }, word).join(" ")}`)
const vector = () => Array.from({ length: Number(process.argv[3] ?? 384) }, () => random() - 0.3)

const storages = {
  memory: Storage.layerMemory,
  file: Layer.provide(Storage.layerFile({ folder: join(folder, "files") }), NodeServices.layer),
  sqlite: Layer.provide(Storage.layerSql, SqliteClient.layer({ file: join(folder, "stores.db") }))
}

const at = (all, share) => all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * share))]
const show = (n) => n.toFixed(1)

for (const [name, storage] of Object.entries(storages)) {
  const program = Effect.gen(function* () {
    const store = yield* MemoryStore.MemoryStore
    const added = performance.now()
    for (let i = 0; i < count; i++) yield* store.add("user/a", { text: texts[i], vector: vector() })
    const adding = (performance.now() - added) / count
    const vectors = Array.from({ length: 30 }, vector)
    const measure = Effect.fnUntraced(function* (search) {
      const times = []
      for (let i = 0; i < 30; i++) {
        const before = process.cpuUsage()
        yield* search(i)
        const { system, user } = process.cpuUsage(before)
        times.push((system + user) / 1_000)
      }
      return `first ${show(times[0])}, p50 ${show(at(times.slice(1), 0.5))}, p99 ${show(at(times.slice(1), 0.99))} ms of CPU`
    })
    const words = yield* measure(() => store.search("user/a", { text: `${word()} ${word()} ${word()}` }))
    const near = yield* measure((i) => store.nearest("user/a", vectors[i]))
    const mixed = yield* measure((i) =>
      Effect.andThen(store.add("user/a", { text: texts[i] }), store.search("user/a", { text: word() }))
    )
    console.log(`${name}: add ${show(adding)} ms; words ${words}; vectors ${near}; add and search ${mixed}`)
  })
  await Effect.runPromise(Effect.provide(program, Layer.provide(MemoryStore.layer, storage)))
}
rmSync(folder, { recursive: true, force: true })
