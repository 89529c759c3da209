/**
 * Keeps threads as the present version writes them, in a folder of their own, for the tests of all later versions.
 * `test/sessions/corpus.test.ts` fails when this has to be run: when what is written is not what any folder has.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Stream } from "effect"
import { JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { states, writeAll } from "../test/sessions/written.ts"

const corpus = join(import.meta.dirname, "..", "test", "sessions", "corpus")
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "..", "package.json"), "utf8"))

/** A folder that is there is never changed: somebody may have threads like those in it. */
let at = join(corpus, version)
for (let n = 2; existsSync(at); n++) at = join(corpus, `${version}-${n}`)
mkdirSync(join(at, "export"), { recursive: true })

const exportAll = Effect.gen(function* () {
  yield* writeAll
  const store = yield* SessionStore.SessionStore
  for (const threadId of Object.keys(states)) {
    const lines = yield* Stream.runCollect(store.export(threadId))
    writeFileSync(join(at, "export", `${threadId}.jsonl`), lines.map((line) => `${line}\n`).join(""))
  }
})

const into = <E>(store: Layer.Layer<SessionStore.SessionStore, E>) =>
  SessionStore.journal.pipe(Layer.provideMerge(store))

await Effect.runPromise(
  Effect.gen(function* () {
    const jsonl = JsonlSessions.layer({ folder: join(at, "jsonl") }).pipe(Layer.provide(NodeServices.layer))
    yield* Effect.provide(writeAll, into(jsonl))
    yield* Effect.provide(writeAll, into(SqliteSessions.layer({ file: join(at, "threads.db") })))
    yield* Effect.provide(exportAll, into(MemorySessions.layer))
  })
)
console.log(`The threads of this version are in ${at}: commit them.`)
