/**
 * The view of a run for a terminal, a web page or an editor: a pure reducer over its events.
 *
 * `reduce` gives the view after an event, and the parts that the event finished. A part is final: append it to the
 * screen once. The view holds the unfinished rest: the open text, running calls, sub-agents, the plan, requests. All
 * texts are safe for a terminal: without escape codes, control characters, and characters that turn or hide text. They
 * come from models, tools and files, so a page shows them as text, never as markup.
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { type AgentEvent } from "effect-deepagents"
 * import { View } from "effect-deepagents/view"
 *
 * declare const events: Stream.Stream<AgentEvent.AgentEvent>
 *
 * const finalView = Stream.runFold(events, () => View.empty, (view, event) => {
 *   const [next, parts] = View.reduce(view, event)
 *   for (const part of parts) console.log(part.kind)
 *   return next
 * })
 * ```
 */
import * as HashMap from "effect/HashMap"
import type { AgentEvent } from "../core/AgentEvent.ts"
import type { Json, JsonObject } from "../core/Json.ts"
import type { Message } from "../core/Message.ts"
import * as Usage from "../core/Usage.ts"
import { clean, escapeUnseen } from "../support/text/clean.ts"
import * as Blocks from "./internal/blocks.ts"
import { gist, progressOf } from "./internal/gist.ts"
import type { Call, Part, View } from "./internal/model.ts"
import * as Reduce from "./internal/reduce.ts"
import { partsOf } from "./internal/replay.ts"

export type { Call, Part, View } from "./internal/model.ts"

/** The view before the first event. */
export const empty: View = {
  runId: undefined,
  status: "idle",
  retry: undefined,
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

/** Gives the view after an event, and the parts that the event finished. One view may follow many runs. */
export const reduce: (view: View, event: AgentEvent) => readonly [View, ReadonlyArray<Part>] = Reduce.reduce

/** Gives the unfinished text: the open block of Markdown, or the end of a long one. */
export const openText = (view: View): string => clean(Blocks.openText(view.text))

/** Gives the open calls, also of sub-agents, in the order of their begin. */
export const calls = (view: View): ReadonlyArray<Call> =>
  HashMap.toValues(view.calls).toSorted((left, right) => left.order - right.order)

/** Gives the parts of a stored conversation. */
export const ofMessages = (messages: Iterable<Message>): ReadonlyArray<Part> => partsOf(messages)

/** Replaces invisible characters by their code (`‹U+202E›`), in a text that somebody decides on. */
export const withMarks: (text: string) => string = escapeUnseen

/** Describes the arguments of a call on one line, by the most telling one. */
export const describeCall = (args: JsonObject): string => gist(args)

/** Describes the progress of a call, as tools emit it. */
export const describeProgress = (progress: Json): string => progressOf(progress)
