// Measures a local model at work on retrieval over docs/, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/retrieval-model.mjs loop|rerank MODEL.gguf ADDRESS 30
// `loop`: the model searches up to three times by a tool, and its lists are joined. `rerank`: it says which of the ten best
// passages help. Beside it, the search that it begins with. ADDRESS: see retrieval-quality.mjs. 30 of the questions.
import { Effect, Layer, Schema } from "effect"
import { Agent, Tool } from "../../src/index.ts"
import * as DecisionModels from "../../src/models/DecisionModels.ts"
import * as LlamaChatModel from "../../src/models/local/LlamaChatModel.ts"
import { MemoryIndex, RagIndex, Rerank } from "../../src/rag/index.ts"
import { join, ndcg, recall } from "./ranks.mjs"
import { embed, model, readSet } from "./retrieval-set.mjs"

const [mode, file, address, count] = process.argv.slice(2)
const { asked, chunks, entries } = await readSet()
const step = Math.floor(asked.length / Number(count))
const some = asked.filter((_, at) => at % step === 0).slice(0, Number(count))

const llama = LlamaChatModel.layer({
  model: file,
  gpu: false,
  threads: 1,
  contextSize: 4096,
  maxTokens: 200,
  temperature: 0,
  seed: 7
})

const briefOf = (id, length) => {
  const { chunk, title } = chunks[Number(id.slice(1))]
  return `${title} › ${chunk.headings.join(" › ")}: ${chunk.text.slice(0, length).replace(/\s+/g, " ")}`
}

const program = Effect.gen(function* () {
  const space = yield* RagIndex.RagIndex.use((index) => index.space("docs", model))
  yield* space.put(entries)
  const search = Effect.fnUntraced(function* (text) {
    const idsOf = Effect.map((hits) => hits.map(({ chunk }) => chunk.document))
    const [vector] = yield* Effect.promise(() => embed(address, "query", [text]))
    const near = yield* idsOf(space.nearest([...vector], { limit: 20 }))
    const worded = yield* idsOf(space.words(text, { limit: 20 }))
    return join([
      [0.5, near],
      [0.5, worded]
    ])
  })

  const loop = Effect.fnUntraced(function* (text) {
    const lists = []
    const tool = Tool.make("search", {
      description: "Searches the documentation. Gives the beginnings of the five best passages.",
      parameters: { query: Schema.String },
      execute: Effect.fnUntraced(function* ({ query }) {
        const ids = yield* search(query)
        lists.push(ids)
        return ids
          .slice(0, 5)
          .map((id) => briefOf(id, 120))
          .join("\n")
      })
    })
    const agent = Agent.make({
      name: "searcher",
      prompt:
        "Find the passage that answers the question, by the tool search. If the passages do not answer it, search again with other words, three times at most. Then name the passage in a few words.",
      tools: [tool],
      maxRounds: 4
    })
    yield* Agent.run(agent, text)
    return { ids: join(lists.map((list) => [1, list])), searches: lists.length }
  })

  const rerank = Effect.fnUntraced(function* (text, ids) {
    const best = ids.slice(0, 10)
    const scores = yield* Rerank.byDecisions(
      text,
      best.map((id) => briefOf(id, 200))
    )
    const order = best.map((id, at) => [id, scores[at]]).sort((left, right) => right[1] - left[1])
    return { ids: order.map(([id]) => id), searches: scores.filter((score) => score > 0.5).length }
  })

  const sums = { before: [0, 0], after: [0, 0] }
  for (const [at, { relevant, text }] of some.entries()) {
    const first = yield* search(text)
    const start = performance.now()
    const { ids, searches } = yield* mode === "loop" ? loop(text) : rerank(text, first)
    for (const [name, list] of Object.entries({ before: first, after: ids })) {
      sums[name][0] += ndcg(list, relevant)
      sums[name][1] += recall(list, relevant)
    }
    const show = (name) => sums[name].map((sum) => (sum / (at + 1)).toFixed(3)).join(" ")
    console.log(
      `${mode} ${at + 1}: one search ${show("before")}, ${mode} ${show("after")}; ${searches} here, ${Math.round((performance.now() - start) / 1000)} s`
    )
  }
})
await Effect.runPromise(
  Effect.provide(program, Layer.merge(MemoryIndex.layer, Layer.provideMerge(DecisionModels.layerChatModel(), llama)))
)
