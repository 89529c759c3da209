/**
 * Numbers the sources of tools and turns, and reports them.
 */
import * as Effect from "effect/Effect"
import * as Content from "../Content.ts"
import type { AiMessage } from "../Message.ts"
import * as Sources from "../Sources.ts"
import type { ToolOutput } from "../ToolOutput.ts"
import { emit, type Live } from "./live.ts"

/** Of one result or turn so many sources are taken: what a hostile one names more is not worth the window. */
const most = 50

/** Numbers sources in the run. */
export const register = Effect.fnUntraced(function* (live: Live, given: ReadonlyArray<Sources.Cited>, callId?: string) {
  const sources = given.slice(0, most).map(Sources.make)
  yield* live.run.state.set(Sources.slot, sources)
  const found = Sources.numbered(yield* live.run.state.get(Sources.slot), sources)
  if (found.length > 0) {
    yield* emit(live, { _tag: "SourcesFound", ...(callId === undefined ? {} : { callId }), sources: found })
  }
  return found
})

/** An output with the list of its sources behind it, numbered as the run knows them. */
export const withSources = (live: Live, callId: string, output: ToolOutput): Effect.Effect<ToolOutput> =>
  output.sources === undefined || output.sources.length === 0
    ? Effect.succeed(output)
    : Effect.map(register(live, output.sources, callId), (found) =>
        found.length === 0
          ? output
          : { ...output, content: [...output.content, Content.text(`\nSources:\n${Sources.render(found)}`)] }
      )

const none: ReadonlyArray<Sources.Cited> = []

/** The sources that the text of a turn cites. */
export const sourcesOf = (message: AiMessage): ReadonlyArray<Sources.Cited> => {
  let sources = none
  for (const block of message.content) {
    if (block.type !== "text" || block.citations === undefined) continue
    sources = [...sources, ...block.citations.map(({ source }) => source)]
  }
  return sources
}
