/** Numbers the sources of tools and turns, and reports them. */
import * as Effect from "effect/Effect"
import * as Content from "../Content.ts"
import type { AiMessage } from "../Message.ts"
import { numbered, slot } from "../sourceList.ts"
import * as Sources from "../Sources.ts"
import type { ToolOutput } from "../ToolOutput.ts"
import type { Live, OpenCall } from "./live.ts"
import { emit } from "./report.ts"

/** The most sources of one result or turn: a hostile result must not fill the window. */
const most = 50

const none: ReadonlyArray<Sources.CitedSource> = []

export const register = Effect.fnUntraced(function* (
  live: Live,
  list: ReadonlyArray<Sources.CitedSource>,
  callId?: string
) {
  const sources = list.slice(0, most).map(Sources.make)
  yield* live.run.state.set(slot, sources)
  const numberedSources = numbered(yield* live.run.state.get(slot), sources)
  if (numberedSources.length > 0) {
    yield* emit(live, { _tag: "SourcesFound", ...(callId === undefined ? {} : { callId }), sources: numberedSources })
  }
  return numberedSources
})

/** Adds the list of sources to an output, numbered as the run knows them: its own, then those of its inner calls. */
export const withSources = Effect.fnUntraced(function* (
  live: Live,
  { innerSources = none, id }: OpenCall,
  output: ToolOutput
) {
  const own = output.sources ?? none
  if (own.length + innerSources.length === 0) return output
  const ownSources = own.length === 0 ? [] : yield* register(live, own, id)
  const others = innerSources.length === 0 ? [] : numbered(yield* live.run.state.get(slot), innerSources)
  const numbers = new Set(ownSources.map(({ number }) => number))
  const all = [...ownSources, ...others.filter(({ number }) => !numbers.has(number))].slice(0, most)
  return all.length === 0
    ? output
    : { ...output, content: [...output.content, Content.text(`\nSources:\n${Sources.render(all)}`)] }
})

export const sourcesOf = (message: AiMessage): ReadonlyArray<Sources.CitedSource> => {
  let sources = none
  for (const block of message.content) {
    if (block.type !== "text" || block.citations === undefined) continue
    sources = [...sources, ...block.citations.map(({ source }) => source)]
  }
  return sources
}
