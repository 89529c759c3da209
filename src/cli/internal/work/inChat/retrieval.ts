/** Slash commands about the index of the folder. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Chunk from "../../../../rag/Chunk.ts"
import type { Progress } from "../../../../rag/Indexer.ts"
import * as Retriever from "../../../../rag/Retriever.ts"
import { cut } from "../../../../support/text/text.ts"
import { oneLine } from "../../../../support/text/untrusted.ts"
import type { Command } from "../../chat/options.ts"
import { summaryOf } from "../../commands/indexCommand.ts"
import { fail } from "../../failure.ts"
import type { Context } from "../app.ts"
import { describeProgress, indexFolder } from "../indexing.ts"
import { filledSpace } from "../retrieval.ts"
import { makeRun, show } from "./outcome.ts"

const none = "Nothing is indexed in this folder. `/index` makes an index."

const index = Effect.fnUntraced(function* (context: Context, note: (text: string) => void) {
  const before = yield* filledSpace(context.places)
  let last: Progress | undefined
  const { findProblem, progress } = yield* indexFolder(context, context.places.project)
  yield* progress.pipe(
    Stream.runForEach((one) =>
      Effect.sync(() => {
        last = one
        const text = describeProgress(one)
        if (text !== undefined) note(text)
      })
    )
  )
  const problem = yield* findProblem
  if (problem !== undefined) note(problem)
  const how = before === undefined ? " The agent has the tools for it from the next `/agent` or chat on." : ""
  return show(last === undefined ? "There are no files to index." : `${summaryOf(last)}.${how}`)
})

/** Shows the passages for a query, with their scores; without one, the sources. */
const rag = Effect.fnUntraced(function* (context: Context, query: string) {
  const space = yield* filledSpace(context.places)
  if (space === undefined) return yield* fail("usage", none)
  if (query.trim() === "") {
    const lines = (yield* space.sources()).map(
      ({ chunks, documents, source }) => `- \`${oneLine(source)}\` ${documents} documents, ${chunks} passages`
    )
    return show(lines.join("\n"))
  }
  const results = yield* Retriever.search(space, query, { limit: 5 })
  if (results.length === 0) return show("Nothing was found. Try other words.")
  const lines = results.map(({ chunk, title, trace }, at) => {
    const score = trace.words?.score.toFixed(2) ?? "0"
    return `${at + 1}. **${oneLine(Chunk.trailOf(title, chunk))}** \`${oneLine(chunk.id)}\` (${score})\n   ${oneLine(cut(chunk.text, 200))}`
  })
  return show(lines.join("\n"))
})

/** Gives the commands for the index of this folder. */
export const retrievalInChat = Effect.fnUntraced(function* (context: Context) {
  const run = yield* makeRun
  const commands: ReadonlyArray<Command> = [
    {
      name: "index",
      description: "index the files of this folder, so that the agent finds passages in them",
      run: (_, note) => run(index(context, note))
    },
    {
      name: "rag",
      argument: "[words]",
      description: "search the indexed files, or list their sources",
      run: (argument) => run(rag(context, argument))
    }
  ]
  return commands
})
