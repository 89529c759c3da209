/** Makes the service of an index. Names, models and filters are checked in the same way for every layer. */
import * as Effect from "effect/Effect"
import { check } from "../../support/options/check.ts"
import { RagError } from "../RagError.ts"
import { type Filter, type Model, RagIndex, type Space } from "../RagIndex.ts"
import { inNamespace } from "./entries.ts"

type Reason = RagError["reason"]

const findModelProblem = check("id:s;dimensions:n;query?:s;passage?:s")
const findFilterProblem = check("documents?:[s];sources?:[s];metadata?:<snb>;after?:n;before?:n")

/** Refuses wrong filters: a condition that nobody reads would find too much. */
const checkFilters = <M extends Model | undefined>(space: Space<M>): Space<M> => {
  const on = <A>(
    operation: string,
    filter: Filter | undefined,
    run: () => Effect.Effect<A, RagError>
  ): Effect.Effect<A, RagError> => {
    const problem = filter === undefined ? undefined : findFilterProblem(filter)
    if (problem === undefined) return run()
    const reason: Reason = { _tag: "InvalidValue", problem: `the filter is wrong. ${problem}` }
    return Effect.fail(new RagError({ operation, namespace: space.namespace, reason }))
  }
  return {
    ...space,
    hashes: (filter) => on("hashes", filter, () => space.hashes(filter)),
    words: (text, options) => on("words", options.filter, () => space.words(text, options)),
    nearest: (vector, options) => on("nearest", options.filter, () => space.nearest(vector, options)),
    around: (chunk, options) => on("around", options?.filter, () => space.around(chunk, options)),
    sources: (filter) => on("sources", filter, () => space.sources(filter))
  }
}

/** Makes the service of its two operations. */
export const makeIndex = ({
  drop,
  space
}: {
  readonly space: <M extends Model | undefined>(namespace: string, model: M) => Effect.Effect<Space<M>, Reason>
  readonly drop: (namespace: string) => Effect.Effect<void, Reason>
}): RagIndex["Service"] =>
  RagIndex.of({
    space: <M extends Model | undefined>(namespace: string, model?: M) => {
      const problem = model === undefined ? undefined : findModelProblem(model)
      const opened: Effect.Effect<Space<M>, Reason> = problem === undefined
        ? // Without the parameter, `M` is `undefined`.
          space(namespace, model as M)
        : Effect.fail({ _tag: "InvalidValue", problem: `the model is wrong. ${problem}` })
      return Effect.map(inNamespace("space", namespace)(opened), checkFilters)
    },
    drop: (namespace) => inNamespace("drop", namespace)(drop(namespace))
  })
