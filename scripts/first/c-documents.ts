/** A hundred documents, eight at a time, with retries, one budget for all of them, and progress. */
import { Console, Effect, Result, Schema } from "effect"
import { Agent } from "effect-deepagents"
import { Budget, ModelRetry } from "effect-deepagents/middleware"
import { ChatModels } from "effect-deepagents/models"

const clerk = Agent.make({
  name: "clerk",
  prompt: "You read a document, and say its title and language.",
  output: Schema.Struct({ title: Schema.String, language: Schema.String }),
  middleware: [ModelRetry.make()]
})

const batch = Agent.program({
  name: "batch",
  input: Schema.Array(Schema.String),
  output: Schema.Struct({ done: Schema.Finite, failed: Schema.Finite }),
  middleware: [Budget.make({ tokens: 1_000_000, onExhausted: "finalAnswer" })],
  run: Effect.fnUntraced(function* (documents) {
    const one = (document: string, index: number) =>
      Effect.tap(Effect.result(Agent.answer(clerk, document)), (result) => Console.log(index, result._tag))
    const results = yield* Effect.forEach(documents, one, { concurrency: 8 })
    const done = results.filter(Result.isSuccess).length
    return { done, failed: results.length - done }
  })
})

const documents = Array.from({ length: 100 }, (_, index) => `Document ${index}: Die Stadt am Morgen`)

const program = Effect.gen(function* () {
  const { output, usage } = yield* Agent.run(batch, batch.input(documents))
  yield* Console.log(output, usage)
})

await Effect.runPromise(Effect.provide(program, ChatModels.resolve("anthropic:claude-sonnet-5-5")))
