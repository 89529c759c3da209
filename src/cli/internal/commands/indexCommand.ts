/** `deepagents index`: the documents of a folder, for the tools of its agents. */
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Stream from "effect/Stream"
import type { Progress } from "../../../rag/Indexer.ts"
import { escaped } from "../../../support/text/untrusted.ts"
import { fail, orFail } from "../failure.ts"
import { print, printJson, tell } from "../output.ts"
import type { Context } from "../work/app.ts"
import { describeProgress, indexFolder } from "../work/indexing.ts"
import { dropIndex, filledSpace } from "../work/retrieval.ts"

interface Options {
  readonly folder: string | undefined
  readonly list: boolean
  readonly drop: boolean
  readonly json: boolean
}

/** Describes the result of an indexing run. */
export const summaryOf = ({ chunks, failed, indexed, removed, unchanged }: Progress): string =>
  `${indexed} indexed (${chunks} passages), ${unchanged} unchanged, ${removed} removed, ${failed} left out`

const list = Effect.fnUntraced(function* ({ places }: Context, asJson: boolean) {
  const space = yield* filledSpace(places)
  const sources = space === undefined ? [] : yield* orFail("failed")(space.sources())
  if (asJson) return yield* printJson(sources)
  if (sources.length === 0) return yield* print("Nothing is indexed here. deepagents index makes an index.")
  yield* print(
    ...sources.map(({ chunks, documents, source }) => `${escaped(source)}: ${documents} documents, ${chunks} passages`)
  )
})

const indexHere = Effect.fnUntraced(function* (context: Context, folder: string, asJson: boolean) {
  const fs = yield* FileSystem.FileSystem
  const path = resolve(context.places.project, folder)
  const isFolder = yield* Effect.orElseSucceed(
    Effect.map(fs.stat(path), ({ type }) => type === "Directory"),
    () => false
  )
  if (!isFolder)
    return yield* fail(
      "usage",
      `There is no folder ${JSON.stringify(path)}. Name a folder in ${context.places.project}.`
    )
  let last: Progress | undefined
  const { findProblem, progress } = yield* indexFolder(context, path)
  yield* progress.pipe(
    Stream.runForEach((one) => {
      last = one
      if (one.outcome === "failed") return tell(`! ${escaped(one.document)}: ${escaped(one.problem ?? "")}`)
      const text = describeProgress(one)
      return text === undefined ? Effect.void : tell(text)
    }),
    orFail("failed")
  )
  const problem = yield* findProblem
  if (problem !== undefined) yield* tell(`! ${problem}`)
  if (asJson) return yield* printJson(last ?? null)
  yield* print(last === undefined ? "There are no files to index." : summaryOf(last))
})

/** Indexes a folder, lists its sources, or removes its index. */
export const index = (context: Context, { drop, folder, json, list: isList }: Options) => {
  if (drop)
    return Effect.andThen(orFail("failed")(dropIndex(context.places)), print("The index of this folder is removed."))
  return isList ? list(context, json) : indexHere(context, folder ?? ".", json)
}
