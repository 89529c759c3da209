/**
 * Conversations in the formats of other programs: written as a trajectory, read from session files.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { SessionStore } from "effect-deepagents/sessions"
 * import { Trajectory } from "effect-deepagents/evals"
 *
 * const about = { agent: "clerk", version: "1.0.0", sessionId: "report-7" }
 *
 * const program = Effect.map(SessionStore.checkpoint("report-7"), (checkpoint) =>
 *   Trajectory.toAtif(checkpoint?.messages ?? [], about)
 * )
 * ```
 */
import type { Json, JsonObject } from "../core/Json.ts"
import * as Message from "../core/Message.ts"
import { add, type Usage, zero } from "../core/Usage.ts"
import { defined } from "../support/json/defined.ts"
import { readClaudeCode, readCodex, readPi } from "./internal/imports.ts"
import type { ImportedThread } from "./internal/lines.ts"
import { readOpenCode } from "./internal/opencode.ts"

export type { ImportedThread }

/** The agent of a conversation, as trajectories name it. */
export interface About {
  /** The name of the agent or of its program. */
  readonly agent: string
  /** The version of the agent or of its program. */
  readonly version: string
  /** The model of messages that do not name one. Default: unknown. */
  readonly model?: string | undefined
  /** The id of the run or the thread. Default: none. */
  readonly sessionId?: string | undefined
}

const metricsOf = (usage: Usage): JsonObject =>
  defined({
    prompt_tokens: Math.round(usage.inputTokens),
    completion_tokens: Math.round(usage.outputTokens),
    cached_tokens: Math.round(usage.cacheReadTokens),
    cost_usd: usage.cost
  })

interface Step {
  readonly source: "system" | "user" | "agent"
  readonly fields: JsonObject
  readonly calls: ReadonlySet<string>
  readonly results: Array<Json>
}

const none: ReadonlySet<string> = new Set()

const stepOf = (message: Exclude<Message.Message, { readonly role: "tool" }>): Step => {
  const text = Message.text(message)
  if (message.role !== "ai") {
    return { source: message.role === "human" ? "user" : "system", fields: { message: text }, calls: none, results: [] }
  }
  const calls = message.toolCalls.map(({ arguments: args, id, name }) => ({
    tool_call_id: id,
    function_name: name,
    arguments: args
  }))
  const fields = defined({
    message: text,
    model_name: message.model,
    reasoning_content: Message.reasoning(message),
    tool_calls: calls.length === 0 ? undefined : calls,
    metrics: message.usage === undefined ? undefined : metricsOf(message.usage)
  })
  return { source: "agent", fields, calls: new Set(message.toolCalls.map(({ id }) => id)), results: [] }
}

/**
 * Writes a conversation as a document of the Agent Trajectory Interchange Format, version 1.8. The result of a call is an
 * observation of the step that made the call. Pictures and files are left out; a failed call has `extra.is_error`.
 *
 * Source: the models of the package `harbor` 0.26 (https://www.harborframework.com).
 */
export const toAtif = (messages: ReadonlyArray<Message.Message>, about: About): JsonObject => {
  const steps: Array<Step> = []
  for (const message of messages) {
    if (message.role !== "tool") {
      steps.push(stepOf(message))
      continue
    }
    const { isError, toolCallId } = message
    const step =
      steps.findLast(({ calls }) => calls.has(toolCallId)) ?? steps.findLast(({ source }) => source === "agent")
    step?.results.push(
      defined({
        source_call_id: step.calls.has(toolCallId) ? toolCallId : undefined,
        content: Message.text(message),
        extra: isError ? { is_error: true } : undefined
      })
    )
  }
  const usage = messages.reduce(
    (sum, one) => (one.role === "ai" && one.usage !== undefined ? add(sum, one.usage) : sum),
    zero
  )
  return defined({
    schema_version: "ATIF-v1.8",
    session_id: about.sessionId,
    agent: defined({ name: about.agent, version: about.version, model_name: about.model }),
    steps: steps.map(({ fields, results, source }, index) => ({
      step_id: index + 1,
      source,
      ...fields,
      ...(results.length === 0 ? {} : { observation: { results } })
    })),
    final_metrics: defined({
      total_prompt_tokens: Math.round(usage.inputTokens),
      total_completion_tokens: Math.round(usage.outputTokens),
      total_cached_tokens: Math.round(usage.cacheReadTokens),
      total_cost_usd: usage.cost,
      total_steps: steps.length
    })
  })
}

/** Reads a session file of Claude Code. Conversations of its sub-agents are kept as they stand. */
export const fromClaudeCode: (text: string) => ImportedThread = readClaudeCode

/** Reads a rollout file of Codex. It has no mark of failed calls. */
export const fromCodex: (text: string) => ImportedThread = readCodex

/** Reads a session file of pi: the branch of its last entry. */
export const fromPi: (text: string) => ImportedThread = readPi

/** Reads a session of opencode, as `opencode export` writes it. Source: the types of `@opencode-ai/sdk` 1. */
export const fromOpenCode: (text: string) => ImportedThread = readOpenCode
