/** The list of all sources of a run, in the state that its tree of agents shares. */
import * as Schema from "effect/Schema"
import * as AgentState from "./AgentState.ts"

/**
 * A source that can be cited. `key` identifies it: its URL (see `Sources.keyOf`), or the id of a document. `snippet`
 * quotes it.
 */
export const CitedSource = Schema.Struct({
  key: Schema.String,
  title: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  snippet: Schema.optionalKey(Schema.String)
})
export interface CitedSource extends Schema.Schema.Type<typeof CitedSource> {}

/** A source and its number in the run, from 1. */
export interface NumberedSource {
  readonly number: number
  readonly source: CitedSource
}

/** The most sources of a run. Later sources get no number. */
export const limit = 500

/**
 * Adds sources by key, in their order. Numbers never change, and the first value of a field stays: a later source can't
 * rename a cited one.
 */
export const union = (
  current: ReadonlyArray<CitedSource>,
  incoming: ReadonlyArray<CitedSource>
): ReadonlyArray<CitedSource> => {
  const places = new Map(current.map(({ key }, index) => [key, index]))
  let all = current
  for (const source of incoming) {
    const place = places.get(source.key)
    const knownSource = place === undefined ? undefined : all[place]
    if (place === undefined || knownSource === undefined) {
      if (all.length >= limit) continue
      places.set(source.key, all.length)
      all = [...all, source]
    } else if (Object.keys(source).some((field) => !Object.hasOwn(knownSource, field))) {
      all = all.with(place, { ...source, ...knownSource })
    }
  }
  return all
}

/** The sources of a run and all of its sub-agents. The number of one is its place, from 1. */
export const slot: AgentState.Slot<ReadonlyArray<CitedSource>> = AgentState.slot("sources", {
  schema: Schema.Array(CitedSource),
  initial: [],
  shared: { merge: union }
})

/** The numbers of some sources among all that a run knows, each once, in the order of `some`. */
export const numbered = (
  all: ReadonlyArray<CitedSource>,
  some: ReadonlyArray<CitedSource>
): ReadonlyArray<NumberedSource> => {
  const wanted = new Map(some.map(({ key }) => [key, 0]))
  for (const [index, { key }] of all.entries()) if (wanted.has(key)) wanted.set(key, index + 1)
  return [...wanted.values()].flatMap((number) => {
    const source = all[number - 1]
    return source === undefined ? [] : [{ number, source }]
  })
}
