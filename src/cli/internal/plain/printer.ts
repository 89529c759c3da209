/** Prints runs as lines that are only appended: for pipes, dumb terminals and screen readers. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HashMap from "effect/HashMap"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import * as View from "../../../view/View.ts"
import { partLines } from "../render/part.ts"
import { styleOf } from "../render/style.ts"
import { makeIsToldWarning } from "../render/told.ts"
import { plural } from "../render/words.ts"

export interface Printer {
  readonly event: (event: AgentEvent) => void
  readonly parts: (parts: ReadonlyArray<View.Part>) => void
  readonly view: () => View.View
}

/** Replaces signs with words, for screen readers. */
const replaceSigns = (line: string): string =>
  line
    .replace(/^✓ /, "done: ")
    .replace(/^✗ /, "failed: ")
    .replace(/^↻ /, "")
    .replace(/^∴ /, "")
    .replace(/^ {2}[✓✗✎·] /, "  ")

export const makePrinter = (options: {
  readonly write: (text: string) => void
  /** Prints why an answer is late. Default: `write`. */
  readonly tell?: ((text: string) => void) | undefined
  readonly columns: number
  readonly colours: boolean
  /** Prints only the answer. */
  readonly answerOnly?: boolean | undefined
  /** True if the terminal already shows the input. */
  readonly echoes?: boolean | undefined
}): Printer => {
  const surface = { columns: options.columns, style: styleOf(options.colours), highlight: undefined }
  let view = View.empty
  const isToldWarning = makeIsToldWarning()
  const isShown = ({ kind }: View.Part): boolean =>
    options.answerOnly === true ? kind === "text" || kind === "code" : kind !== "user" || options.echoes === true
  const print = (parts: ReadonlyArray<View.Part>, write = options.write): void => {
    for (const part of parts.filter(isShown)) {
      for (const line of partLines(part, surface)) write(`${replaceSigns(line)}\n`)
    }
  }
  return {
    event: (event) => {
      const [next, parts] = View.reduce(view, event)
      view = next
      const isDelay = event._tag === "Warning" && (event.code === "model-retry" || event.code === "model-fallback")
      if (event._tag !== "Warning" || !isToldWarning(event)) print(parts, isDelay ? options.tell : undefined)
    },
    parts: (parts) => print(parts),
    view: () => view
  }
}

/** A silent run reports that it is at work this often. */
const every = "30 seconds"

/**
 * Prints the events of a run as lines, with a sign of life now and then. Returns the last view. Printed lines never
 * change.
 */
export const print = Effect.fnUntraced(function* <E, R>(
  events: Stream.Stream<AgentEvent, E, R>,
  printer: Printer,
  still: (words: string) => void
) {
  let lastEventAt = -1
  const remind = Effect.sync(() => {
    const { calls, lastAt, subagents } = printer.view()
    if (lastAt === lastEventAt)
      still(`still working: ${plural(HashMap.size(calls), "call")}, ${plural(subagents.length, "sub-agent")}`)
    lastEventAt = lastAt
  })
  const reminder = yield* Effect.forkChild(Effect.forever(Effect.andThen(Effect.sleep(every), remind)))
  yield* Stream.runForEach(events, (event) => Effect.sync(() => printer.event(event)))
  yield* Fiber.interrupt(reminder)
  return printer.view()
})
