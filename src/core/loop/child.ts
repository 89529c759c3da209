/**
 * Runs sub-agents inside the tool call that asks for them.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type { AgentResult } from "../AgentResult.ts"
import type { Input, RunOptions } from "../AgentRun.ts"
import type { Resume } from "../Checkpoint.ts"
import { type Child, suspended } from "../internal/suspension.ts"
import { tunnel } from "../internal/tunnel.ts"
import { ToolContext } from "../ToolContext.ts"
import { make as toolError } from "../ToolError.ts"
import { zero } from "../Usage.ts"
import { type Compiled, compile } from "./definition.ts"
import { interpret } from "./interpret.ts"
import { emit, type Live, liveOf, offer, type OpenCall } from "./live.ts"

/** The parameters of a sub-agent as a tool. */
export const taskParameters = {
  task: Schema.String.annotate({
    description: "The task, in full: the sub-agent sees nothing of this conversation, and only its answer comes back."
  })
}

/** The progress of a sub-agent, to resume it from. */
const progress = (live: Live): Child => ({
  agent: live.run.agent,
  messages: live.run.messages.slice(),
  state: live.run.state.ownSnapshot(),
  usage: live.run.usage,
  rounds: live.run.round
})

/** The progress that a sub-agent of a resumed call starts from, if it had begun. */
const resumption = (parent: Live, call: OpenCall | undefined, agent: string): Resume | undefined => {
  const saved = call === undefined ? undefined : parent.resumable[call.id]?.[call.children.length]
  if (saved?.agent !== agent) return undefined
  return { _tag: "Resume", checkpoint: saved, decisions: [], unknownOutcome: parent.unknownOutcome }
}

/** The middleware that holds in whatever the tool call that is being executed begins. */
export const inherited = Effect.flatMap(ToolContext, ({ run }) =>
  Effect.map(liveOf(run), (live) => live.compiled.inherited)
)

/** Runs a sub-agent inside the tool call that is being executed. */
export const delegate = Effect.fnUntraced(function* (compiled: Compiled, input: Input, options: RunOptions) {
  const { callId, run } = yield* ToolContext
  const parent = yield* liveOf(run)
  const { inherited, suspends } = parent.compiled
  const under = inherited.length === 0 ? compiled : compile(compiled.definition, inherited)
  const agent = compiled.definition.name
  const childRunId = parent.makeId()
  const call = parent.batch.find((one) => one.id === callId)
  const saved = resumption(parent, call, agent)
  let live: Live | undefined
  if (suspends)
    call?.children.push(() =>
      live === undefined ? { agent, messages: [], state: {}, usage: zero, rounds: 0 } : progress(live)
    )
  yield* emit(parent, { _tag: "SubagentStarted", callId, agent, childRunId })
  const result = yield* Effect.onExit(
    interpret(under, saved ?? input, saved === undefined ? options : {}, {
      runId: childRunId,
      hub: parent.origin.hub,
      control: undefined,
      parent,
      onLive: (one) => {
        live = one
      }
    }),
    (exit) =>
      Effect.sync(() => {
        const outcome = Exit.isSuccess(exit)
          ? exit.value.stopReason
          : Cause.hasInterrupts(exit.cause)
            ? "interrupted"
            : "failed"
        const usage = live?.run.usage ?? zero
        offer(parent, { _tag: "SubagentCompleted", callId, agent, childRunId, outcome, usage })
      })
  )
  return suspends && result.stopReason === "suspended" ? yield* Effect.die(tunnel(suspended(result.pending))) : result
})

/** The end of a sub-agent as its parent's model sees it: the text of its answer, which for a schema is the JSON. */
export const toOutput = (result: AgentResult<unknown>) =>
  result.stopReason === "suspended"
    ? Effect.fail(toolError("The sub-agent stopped: a call of its own needs a decision that nobody here can give."))
    : Effect.succeed(result.text === "" ? "The sub-agent ended without an answer." : result.text)
