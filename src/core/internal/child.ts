import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type { Input, RunOptions } from "../Agent.ts"
import type { AgentResult } from "../AgentResult.ts"
import { ToolContext } from "../ToolContext.ts"
import { make as toolError } from "../ToolError.ts"
import { zero } from "../Usage.ts"
import { type Compiled, compile } from "./definition.ts"
import { interpret } from "./interpret.ts"
import { emit, type Live, offer } from "./live.ts"

/** What a sub-agent is asked, as a tool. */
export const taskParameters = {
  task: Schema.String.annotate({
    description: "The task, in full: the sub-agent sees nothing of this conversation, and only its answer comes back."
  })
}

/** Runs a sub-agent inside the tool call that is being executed. */
export const delegate = Effect.fnUntraced(function* (compiled: Compiled, input: Input, options: RunOptions) {
  const { callId, run } = yield* ToolContext
  // Every run that a tool sees is one that the interpreter made.
  const parent = run as unknown as Live
  const { inherited } = parent.compiled
  const under = inherited.length === 0 ? compiled : compile(compiled.definition, inherited)
  const agent = compiled.definition.name
  const childRunId = parent.makeId()
  let live: Live | undefined
  yield* emit(parent, { _tag: "SubagentStarted", callId, agent, childRunId })
  return yield* Effect.onExit(
    interpret(under, input, options, {
      runId: childRunId,
      hub: parent.hub,
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
        const usage = live?.usage ?? zero
        offer(parent, { _tag: "SubagentCompleted", callId, agent, childRunId, outcome, usage })
      })
  )
})

/** What a sub-agent's end is to its parent's model. */
export const toOutput = (result: AgentResult<unknown>) =>
  result.stopReason === "suspended"
    ? Effect.fail(toolError("The sub-agent stopped: a call of its own needs a decision that nobody here can give."))
    : Effect.succeed(result.text === "" ? "The sub-agent ended without an answer." : result.text)
