/** Indexes documents of a namespace in a file, in batches; a process of `processes.test.ts`. */
import { Effect, Layer, Stream } from "effect"
import { HashingEmbedding, Indexer, RagIndex } from "effect-deepagents/rag"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"

const [file = "", namespace = "", round = ""] = process.argv.slice(2)

const documents = Array.from({ length: 80 }, (_, at) => ({
  id: `d${at}`,
  title: `Title ${at}`,
  source: at % 2 === 0 ? "even" : "odd",
  // Some documents change in each round.
  text: `${namespace}only ${at % 3 === 0 ? round : ""} `.concat(
    Array.from({ length: 12 }, (_, line) => `Sentence ${line} of ${at} speaks of topic${at % 50}. `).join("")
  )
}))

const program = Effect.gen(function* () {
  const space = yield* RagIndex.RagIndex.use((index) => index.space(namespace, HashingEmbedding.model()))
  yield* Indexer.run(space, Stream.fromIterable(documents), { tokens: 40 }).pipe(
    Stream.runForEach(({ outcome }) => Effect.sync(() => process.stdout.write(`${outcome}\n`)))
  )
}).pipe(Effect.provide([SqliteIndex.layer.pipe(Layer.provide(SqliteClient.layer({ file }))), HashingEmbedding.layer()]))

await Effect.runPromise(program)
