/** Indexes the files of a folder. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Documents from "../../../documents/Documents.ts"
import * as Indexer from "../../../rag/Indexer.ts"
import { RagIndex } from "../../../rag/RagIndex.ts"
import { readPermits } from "../approvals/permits.ts"
import { makeFolder } from "../config/places.ts"
import { layerOrFail } from "../failure.ts"
import type { Context } from "./app.ts"
import { machine } from "./machine/host.ts"
import { filledSpace, hasCode, indexFile, indexLayer, namespaceOf } from "./retrieval.ts"

/** Loads the splitter of code, which needs packages that not everybody has. */
const loadSplitter = Effect.flatMap(
  Effect.promise(() => import("../../../rag/CodeSplitter.ts")),
  ({ load }) => Effect.result(load)
)

/** The documents between two lines of progress, and the characters of its bar. */
const progressLine = { step: 500, bar: 20 }

/** Describes the progress of an indexing run, now and then; else `undefined`. */
export const describeProgress = ({ done, outcome, total }: Indexer.Progress): string | undefined => {
  if (done % progressLine.step !== 0 || outcome === "removed") return undefined
  if (total === undefined) return `${done} documents`
  const full = Math.round((progressLine.bar * done) / Math.max(1, total))
  return `${"█".repeat(full)}${"░".repeat(progressLine.bar - full)} ${done} of ${total}`
}

/** Indexes the files of the working folder, or of a folder in it. The rules that hide files hold here, too. */
export const indexFolder = Effect.fnUntraced(function* (context: Context, folder: string) {
  const { places } = context
  yield* makeFolder(places.data)
  const namespace = yield* namespaceOf(places)
  const { hidden } = yield* readPermits(context, [])
  const splitter = yield* loadSplitter
  const code = Result.getOrUndefined(splitter)
  /** Says why indexed code is not split by its syntax. `undefined`: it is split, or no code is indexed. */
  const findProblem = Effect.gen(function* () {
    if (Result.isSuccess(splitter)) return undefined
    const space = yield* filledSpace(places)
    if (space === undefined || !(yield* hasCode(space))) return undefined
    const { message, reason } = splitter.failure
    return `code is split like other texts: ${reason._tag === "Unavailable" ? reason.problem : message}`
  })
  const progress = Stream.unwrap(
    Effect.map(
      RagIndex.use((index) => index.space(namespace)),
      (space) => Indexer.folder(space, folder, { formats: Documents.formats, code })
    )
  ).pipe(
    Stream.provide(layerOrFail("failed")(indexLayer(indexFile(places)))),
    Stream.provide(machine(context, undefined, hidden))
  )
  return { progress, findProblem }
})
