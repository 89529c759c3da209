/** The operations of a backend behind rules. A refused path can't be told from a path where nothing is. */
import type * as Backend from "../../../core/Backend.ts"
import { changesOf } from "./changes.ts"
import * as Guard from "./guard.ts"
import type { Rules } from "./model.ts"
import { searchesOf } from "./searches.ts"

/** Puts rules before the operations on files. */
export const backendOf = (backend: Backend.Service, rules: Rules): Backend.Service => {
  const guard = Guard.make(backend, rules)
  return {
    ...searchesOf(backend, rules, guard),
    ...changesOf(backend, rules, guard),
    paths: backend.paths,
    onHost: backend.onHost
  }
}
