/** An index in Qdrant obeys the rules of every index, on a stand-in for the server. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { RagIndex } from "effect-deepagents/rag"
import * as QdrantIndex from "effect-deepagents/rag/QdrantIndex"
import * as RagIndexConformance from "effect-deepagents/rag/RagIndexConformance"
import { HttpClient } from "effect/http"
import { scaled } from "../scale.ts"
import { layerQdrant } from "../servers/qdrant.ts"
import { holdsApart } from "./tenants.ts"

const indexOn = QdrantIndex.layer({ url: "http://qdrant.example:6333/" })
const layer = Layer.provide(indexOn, layerQdrant)

const entryOf = (id: string, texts: ReadonlyArray<string>) => ({
  document: { id, text: "" },
  hash: "1",
  chunks: texts.map((text, index) => ({
    id: `${id}::${index}`,
    document: id,
    index,
    start: 0,
    end: text.length,
    text,
    headings: [],
    label: ""
  }))
})

describe("QdrantIndex on a stand-in", () => {
  for (const check of RagIndexConformance.suite(layer)) it.live(check.name, () => check.run, 30_000)

  it.live(
    "gives a tenant its own documents that hold the filter, and nothing of others",
    () => Effect.provide(holdsApart(scaled(160)), layer),
    30_000
  )

  it.live("reads more documents than a page of the server has", () =>
    Effect.gen(function* () {
      const space = yield* RagIndex.RagIndex.use((index) => index.space("many"))
      yield* space.put(Array.from({ length: 1_200 }, (_, at) => entryOf(`d${at}`, [])))
      expect((yield* space.hashes()).size).toBe(1_200)
      expect(yield* space.sources()).toEqual([{ source: "", documents: 1_200, chunks: 0 }])
    }).pipe(Effect.provide(layer))
  )

  it.live("finds the whole old version or the whole new one, wherever a writer is killed", () =>
    Effect.gen(function* () {
      const real = yield* HttpClient.HttpClient
      const texts = (word: string, count: number) => Array.from({ length: count }, (_, at) => `${word} number${at}`)
      const findWord = (word: string) =>
        RagIndex.RagIndex.use((index) =>
          Effect.flatMap(index.space("a"), (space) => space.words(word, { limit: 50 }))
        ).pipe(
          Effect.map((hits) => hits.length),
          Effect.provide(Layer.provide(indexOn, Layer.succeed(HttpClient.HttpClient, real)))
        )
      const seen: Array<readonly [number, number]> = []
      for (let killed = 0; killed < 20; killed++) {
        yield* RagIndex.RagIndex.use((index) => index.drop("a")).pipe(
          Effect.andThen(RagIndex.RagIndex.use((index) => index.space("a"))),
          Effect.andThen((space) => space.put([entryOf("d", texts("apple", 5))])),
          Effect.provide(Layer.provide(indexOn, Layer.succeed(HttpClient.HttpClient, real)))
        )
        let sent = 0
        const dying = HttpClient.transform(real, (effect) =>
          Effect.suspend(() => (sent++ >= killed ? Effect.interrupt : effect))
        )
        yield* RagIndex.RagIndex.use((index) => index.space("a")).pipe(
          Effect.andThen((space) => space.put([entryOf("d", texts("pear", 3))])),
          Effect.provide(Layer.provide(indexOn, Layer.succeed(HttpClient.HttpClient, dying))),
          Effect.exit
        )
        const counts = [yield* findWord("apple"), yield* findWord("pear")] as const
        expect([
          [5, 0],
          [0, 3]
        ]).toContainEqual(counts)
        seen.push(counts)
      }
      expect(new Set(seen.map(String)).size).toBe(2)
    }).pipe(Effect.provide(layerQdrant))
  )
})
