/** The data of a view, public by `View`. */
import type * as HashMap from "effect/HashMap"
import type { Of } from "../../core/AgentEvent.ts"
import type { JsonObject } from "../../core/Json.ts"
import type { StopReason } from "../../core/StopReason.ts"
import type * as Usage from "../../core/Usage.ts"
import type * as Blocks from "./blocks.ts"

/**
 * A finished part, in the order in which it is shown:
 *
 * - `user`: what a person said
 * - `text`: a block of the answer, as Markdown
 * - `code`: a listing of the answer; a long one comes in pieces, of which `more` follow
 * - `thinking`: what the model thought before it spoke
 * - `tool`: a call and what came of it; `gist` is what it was about, `output` what the model read, cut
 * - `subagent`: a sub-agent that is done
 * - `decision`: an approval, a refusal or an answer
 * - `note`: what happened to the run itself
 * - `sources`: what the answer cites, by number
 * - `turnEnd`: the end of a turn, and what it cost
 */
export type Part =
  | { readonly kind: "user"; readonly text: string; readonly attachments: number }
  | { readonly kind: "text"; readonly markdown: string }
  | {
      readonly kind: "code"
      readonly language: string
      readonly text: string
      readonly isFirst: boolean
      readonly more: boolean
    }
  | { readonly kind: "thinking"; readonly text: string; readonly characters: number; readonly millis: number }
  | {
      readonly kind: "tool"
      readonly name: string
      readonly gist: string
      readonly isError: boolean
      readonly summary: string
      readonly diff: string | undefined
      readonly output: string
      readonly millis: number
    }
  | {
      readonly kind: "subagent"
      readonly path: ReadonlyArray<string>
      readonly task: string
      readonly outcome: string
      readonly calls: number
      readonly usage: Usage.Usage
      readonly millis: number
    }
  | { readonly kind: "decision"; readonly toolName: string; readonly decision: string }
  | { readonly kind: "note"; readonly level: "info" | "warning" | "error"; readonly text: string }
  | {
      readonly kind: "sources"
      readonly sources: ReadonlyArray<{ readonly number: number; readonly title: string; readonly url: string }>
    }
  | {
      readonly kind: "turnEnd"
      readonly stopReason: StopReason | "failed" | "interrupted"
      readonly usage: Usage.Usage
      readonly millis: number
    }

/**
 * A call that runs, or is being written by the model. `order` is its place among those of the turn, `output` is what it
 * said last.
 */
export interface Call {
  readonly key: string
  readonly runId: string
  readonly order: number
  readonly name: string
  readonly gist: string
  readonly output: string
  readonly startedAt: number
  readonly isWritten: boolean
}

/** A sub-agent at work. `last` is what it did last. */
export interface Subagent {
  readonly runId: string
  readonly path: ReadonlyArray<string>
  readonly task: string
  readonly last: string
  readonly calls: number
  readonly tokens: number
  readonly startedAt: number
}

/**
 * A decision that somebody has to make. The texts are as they came: `withMarks` makes them fit to be
 * read by who decides.
 */
export interface Pending {
  readonly id: string
  readonly runId: string
  readonly path: ReadonlyArray<string>
  readonly toolName: string
  readonly description: string
  readonly arguments: JsonObject
  readonly answer: JsonObject | undefined
  readonly allow: ReadonlyArray<string>
  readonly expiresAt: number | undefined
}

/**
 * The changing half of what is shown. Times are milliseconds since the epoch. `usage` is of the turn, `total` of all
 * turns; `context` is what filled the window of the last request. `calls` are by their keys, so that an event costs the same
 * however many there are; `View.calls` has them in order. `begun` counts those of the turn.
 */
export interface View {
  readonly runId: string | undefined
  readonly status: "idle" | "working"
  readonly agent: string
  readonly model: string
  readonly startedAt: number
  readonly lastAt: number
  readonly round: number
  readonly text: Blocks.Splitter
  readonly thinking: { readonly text: string; readonly characters: number; readonly startedAt: number } | undefined
  readonly calls: HashMap.HashMap<string, Call>
  readonly begun: number
  readonly subagents: ReadonlyArray<Subagent>
  readonly todos: ReadonlyArray<{ readonly content: string; readonly status: string }>
  readonly tasks: ReadonlyArray<{
    readonly id: string
    readonly agent: string
    readonly task: string
    readonly status: string
  }>
  readonly pending: ReadonlyArray<Pending>
  readonly sources: ReadonlyArray<{ readonly number: number; readonly title: string; readonly url: string }>
  readonly context: Pick<Of<"ContextMeasured">, "total" | "window" | "parts"> | undefined
  readonly usage: Usage.Usage
  readonly total: Usage.Usage
}
