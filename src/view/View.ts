/**
 * The view of a run: what a terminal, a web page or an editor shows of it, as a pure reducer over its events.
 *
 * `reduce` gives the view after an event, and the parts that are finished by it. A part is final: it is appended to what
 * is shown, once. What still changes is in the view: the open text, running calls, sub-agents, the plan, requests.
 * All texts are harmless for a terminal: no escape codes, no control characters, none that turn or hide text. They come
 * from models, tools and files, and are text, never markup of a page.
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { type AgentEvent } from "effect-deepagents"
 * import { View } from "effect-deepagents/view"
 *
 * declare const events: Stream.Stream<AgentEvent.AgentEvent>
 *
 * const shown = Stream.runFold(events, () => View.empty, (view, event) => {
 *   const [next, parts] = View.reduce(view, event)
 *   for (const part of parts) console.log(part.kind)
 *   return next
 * })
 * ```
 */
import * as HashMap from "effect/HashMap"
import type { AgentEvent } from "../core/AgentEvent.ts"
import type { Message } from "../core/Message.ts"
import * as Usage from "../core/Usage.ts"
import { clean, cleanLine, escapeUnseen } from "../support/text/clean.ts"
import * as Blocks from "./internal/blocks.ts"
import type { Call, Part, View } from "./internal/model.ts"
import * as Reduce from "./internal/reduce.ts"
import { partsOf } from "./internal/replay.ts"

export type { Call, Part, Pending, Subagent, View } from "./internal/model.ts"

/** The view before the first event. */
export const empty: View = {
  runId: undefined,
  status: "idle",
  agent: "",
  model: "",
  startedAt: 0,
  lastAt: 0,
  round: 0,
  text: Blocks.empty,
  thinking: undefined,
  calls: HashMap.empty(),
  begun: 0,
  subagents: [],
  todos: [],
  tasks: [],
  pending: [],
  sources: [],
  context: undefined,
  usage: Usage.zero,
  total: Usage.zero
}

/**
 * Gives the view after an event, and the parts that it finished. Events of one run after the other may be reduced into
 * one view.
 */
export const reduce: (view: View, event: AgentEvent) => readonly [View, ReadonlyArray<Part>] = Reduce.reduce

/** Gives the text that is still being written: the open block of Markdown, or the end of a long one. */
export const openText = (view: View): string => clean(Blocks.openText(view.text))

/** Gives the calls that run or are being written, those of sub-agents included, in the order in which they began. */
export const calls = (view: View): ReadonlyArray<Call> =>
  HashMap.toValues(view.calls).toSorted((left, right) => left.order - right.order)

/** Gives the parts of a conversation that is stored: what is shown before it goes on. */
export const ofMessages = (messages: Iterable<Message>): ReadonlyArray<Part> => partsOf(messages)

/** Makes a text harmless for a terminal, on one line or as it is. */
export const harmless = (text: string, options?: { readonly oneLine?: boolean | undefined }): string =>
  options?.oneLine === true ? cleanLine(text) : clean(text)

/** Writes out what can't be seen in a text, as `‹U+202E›`: for a text that somebody decides on. */
export const withMarks: (text: string) => string = escapeUnseen
