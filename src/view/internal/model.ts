/** The data of a view, public by `View`. */
import type * as HashMap from "effect/HashMap"
import type { Of } from "../../core/AgentEvent.ts"
import type { JsonObject } from "../../core/Json.ts"
import type { StopReason } from "../../core/StopReason.ts"
import type * as Usage from "../../core/Usage.ts"
import type * as Blocks from "./blocks.ts"

/**
 * A finished part, in the order of the screen:
 *
 * - `user`: a message of a person
 * - `text`: a block of the answer, as Markdown
 * - `code`: a listing of the answer. A long one comes in pieces; `more` follow
 * - `thinking`: the reasoning before an answer
 * - `tool`: a call with its result. `gist` is its main argument, `output` the beginning of the result, or the end of
 *   that of a command; `end` has a command's last lines
 * - `subagent`: a sub-agent that ended
 * - `decision`: an approval, a refusal or an answer
 * - `note`: a message about the run itself
 * - `sources`: the citations of the answer, by number
 * - `turnEnd`: the end of a turn, with its use
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
      readonly end?: ReadonlyArray<string>
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

/** A call that runs, or that the model writes. `order` is its place in the turn, `output` its latest progress. */
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

/** A sub-agent at work. `last` is its latest call. */
export interface Subagent {
  readonly runId: string
  readonly path: ReadonlyArray<string>
  readonly task: string
  readonly last: string
  readonly calls: number
  readonly tokens: number
  readonly startedAt: number
}

/** A request for a decision. Show its texts through `withMarks`. */
interface PendingRequest {
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
 * The unfinished part of the screen. Times are milliseconds since the epoch. `usage` counts the turn, `total` all turns.
 * `context` measures the last request. `calls` are by key, so that the cost of an event does not grow; `View.calls` sorts
 * them. `begun` counts the calls of the turn.
 */
export interface View {
  readonly runId: string | undefined
  readonly status: "idle" | "working"
  /** The model failed for a passing reason, and is asked again at `until`. */
  readonly retry: { readonly until: number; readonly attempt: number; readonly reason: string } | undefined
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
  readonly pending: ReadonlyArray<PendingRequest>
  readonly sources: ReadonlyArray<{ readonly number: number; readonly title: string; readonly url: string }>
  readonly context: Pick<Of<"ContextMeasured">, "total" | "window" | "parts"> | undefined
  readonly usage: Usage.Usage
  readonly total: Usage.Usage
}
