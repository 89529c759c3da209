/** What code mode and workflows give a script to begin with: its clock and chance, and the tools that it may call. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import type { ToolDefinition } from "../../core/ChatModel.ts"
import type * as Tool from "../../core/Tool.ts"
import { loadPeer } from "../../support/effect/peer.ts"
import * as Catalogue from "../../support/text/catalogue.ts"
import { refuse } from "./host.ts"

export const definitionOf = memoize(
  ({ annotations, description, name: tool, parameters }: Tool.Tool<unknown>): ToolDefinition => ({
    annotations,
    description,
    name: tool,
    parameters
  })
)

/** The clock and the chance of a script. */
export const Begun = Schema.Struct({ now: Schema.Finite, seed: Schema.Finite })

export const begin = Effect.gen(function* () {
  return { now: yield* Clock.currentTimeMillis, seed: yield* Random.nextIntBetween(0, 2 ** 31) }
})

/** Takes a program out of the fence in which models put it. */
export const withoutFence = (script: string): string => {
  const text = script.trim()
  const opening = /^```\w*\n/.exec(text)?.[0]
  const end = text.lastIndexOf("\n")
  const isFenced = opening !== undefined && end >= opening.length && text.slice(end).trim() === "```"
  return isFenced ? text.slice(opening.length, end) : script
}

/** Makes a way to index tools, once for all scripts while the tools stay the same. */
export const makeCatalogue = () => {
  let latest: Catalogue.Catalogue<ToolDefinition> | undefined
  return Effect.fnUntraced(function* (all: ReadonlyArray<ToolDefinition>) {
    if (latest !== undefined && Catalogue.same(latest.tools, all)) return latest
    const { default: MiniSearch } = yield* loadPeer(
      "minisearch",
      () => import("minisearch"),
      (detail) => refuse(detail)
    )
    latest = Catalogue.make(MiniSearch, all)
    return latest
  })
}
