/**
 * Answers about the pages of this repository and of Effect, with citations that are checked: the pages are indexed in an
 * SQLite file, the second time at the cost of a hash, and a citation of a source that does not exist sends the agent back.
 */
import assert from "node:assert/strict"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import { Agent, Sources } from "effect-deepagents"
import { CompositeBackend, MemoryBackend } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { Indexer, Rag, RagIndex } from "effect-deepagents/rag"
import * as SqliteIndex from "effect-deepagents/rag/SqliteIndex"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { TestChatModel } from "effect-deepagents/testing"
import { chooseModel } from "./shared/model.ts"
import { main } from "./shared/run.ts"

const script = TestChatModel.script([
  TestChatModel.calls([
    { name: "rag_search", arguments: { query: "stop reasons of a run", top_k: 3 } },
    { name: "rag_search", arguments: { query: "Effect.fn and Effect.gen, functions that return effects", top_k: 2 } }
  ]),
  "A run tells why it ended by its stop reason [9]. Functions that return effects use Effect.fn [4].",
  "A run tells why it ended by its stop reason [2]. Functions that return effects use Effect.fn [4]."
])

const program = Effect.gen(function* () {
  // Without a model of vectors, a space is searched by words.
  const space = yield* RagIndex.RagIndex.use((index) => index.space("docs"))
  const index = Effect.map(Stream.runCollect(Indexer.folder(space, "/", { glob: "**/*.md" })), (all) => all.at(-1))
  const first = yield* index
  const second = yield* index
  console.log(`${first?.indexed} pages, ${first?.chunks} passages; the second time ${second?.indexed}`)
  assert.equal(second?.indexed, 0)

  const guide = Agent.make({
    name: "guide",
    prompt: "You answer from the documents, and cite them as [1].",
    tools: Rag.make({ space }),
    middleware: [Rag.citations({ required: true })]
  })
  const model = yield* chooseModel(script)
  const result = yield* Agent.run(
    guide,
    "How do I know why a run ended, and how do I write a function that returns an effect?"
  ).pipe(Effect.provide(model.layer))
  const sources = Sources.render(Sources.of(result))
  console.log(`${result.text}\n\n${sources}`)
  if (model.isScripted) {
    assert.match(result.text, /stop reason \[2\]/)
    assert.match(sources, /^\[2\] .*, \/docs\//m)
    assert.match(sources, /^\[4\] .*, \/effect\//m)
  }
})

const pagesIn = (root: string) => FilesystemBackend.layer({ root: join(import.meta.dirname, root) })

const file = join(mkdtempSync(join(tmpdir(), "cited-docs-")), "index.db")

main(
  program.pipe(
    Effect.provide([
      Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file })),
      CompositeBackend.layer({
        default: MemoryBackend.layer(),
        routes: { "/docs": pagesIn("../docs"), "/effect": pagesIn("../node_modules/effect/ai-docs") }
      })
    ])
  )
)
