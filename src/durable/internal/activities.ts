/** Runs turns and tool calls as activities of a workflow, and stores their results. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import type { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { AiMessage } from "../../core/Message.ts"
import { isModelError, ModelError } from "../../core/ModelError.ts"
import { fromStored, Stored, toStored } from "../../core/thread/storedOutput.ts"
import { isToolError, ToolError } from "../../core/ToolError.ts"
import { type ToolOutput } from "../../core/ToolOutput.ts"
import { isStorable } from "./limits.ts"

/**
 * The stored results of activities. `Open` is an attempt without a storable end: it was interrupted, its sub-agent waits for a
 * decision, it wrote to the state of the run (which the step stores), it failed with another error, or its output is too
 * large. `Lost` is an attempt with an unknown end.
 */
const openAttempt = Schema.TaggedStruct("Open", {})
const lostAttempt = Schema.TaggedStruct("Lost", {})

const StoredCall = Schema.Union([openAttempt, lostAttempt, Stored, Schema.TaggedStruct("Failed", { error: ToolError })])
type StoredCall = typeof StoredCall.Type

const StoredTurn = Schema.Union([
  openAttempt,
  Schema.TaggedStruct("Done", { message: AiMessage }),
  Schema.TaggedStruct("Failed", { error: ModelError })
])
type StoredTurn = typeof StoredTurn.Type

type Engine = WorkflowEngine | WorkflowInstance

const callName = (turnId: string, callId: string, attempt: number): string => `call/${turnId}/${callId}/${attempt}`

const ifStorable = <A extends StoredCall | StoredTurn>(result: A): A | typeof openAttempt.Type =>
  isStorable(result) ? result : { _tag: "Open" }

/** Converts the end of a call to its stored form. */
const storedCall = (exit: Exit.Exit<ToolOutput, ToolError>, wrote: boolean): StoredCall => {
  if (wrote) return { _tag: "Open" }
  if (Exit.isSuccess(exit)) {
    return exit.value.state.length > 0 ? { _tag: "Open" } : toStored(exit.value)
  }
  const error = Cause.hasInterrupts(exit.cause) || Cause.hasDies(exit.cause) ? undefined : Cause.squash(exit.cause)
  return isToolError(error) ? { _tag: "Failed", error } : { _tag: "Open" }
}

/**
 * Runs a call as an activity. A later attempt of the workflow gets the stored result. `writes` counts the writes to the state
 * of the run.
 */
export const call = Effect.fnUntraced(function* <R>(
  turnId: string,
  callId: string,
  writes: Effect.Effect<number>,
  work: Effect.Effect<ToolOutput, ToolError, R>
): Effect.fn.Return<ToolOutput, ToolError, R | Engine> {
  for (let attempt = 0; ; attempt++) {
    let happened: Exit.Exit<ToolOutput, ToolError> | undefined
    const result = yield* Activity.make({
      name: callName(turnId, callId, attempt),
      success: StoredCall,
      execute: Effect.gen(function* () {
        const before = yield* writes
        const exit = yield* Effect.exit(work)
        happened = exit
        return ifStorable(storedCall(exit, (yield* writes) !== before))
      })
    })
    // The result of this process is complete; the stored one may not be.
    if (happened !== undefined) return yield* happened
    if (result._tag === "Output") return fromStored(result)
    if (result._tag === "Failed") return yield* result.error
  }
})

/**
 * Reads the stored output of a call that must not run twice. Without an output, it stores `Lost` in its place, because the
 * engine would run an unfinished activity again.
 */
export const outputOf = Effect.fnUntraced(function* (
  turnId: string,
  callId: string
): Effect.fn.Return<ToolOutput | undefined, never, Engine> {
  for (let attempt = 0; ; attempt++) {
    const result = yield* Activity.make({
      name: callName(turnId, callId, attempt),
      success: StoredCall,
      execute: Effect.succeed({ _tag: "Lost" } as const)
    })
    if (result._tag === "Output") return fromStored(result)
    if (result._tag === "Failed") {
      const content = [{ type: "text", text: result.error.message } as const]
      return { content, isError: true, returnDirect: false, state: [] }
    }
    if (result._tag === "Lost") return undefined
  }
})

/** Converts the end of a turn to its stored form. */
const storedTurn = (exit: Exit.Exit<AiMessage | undefined, ModelError>): StoredTurn => {
  if (Exit.isSuccess(exit)) return exit.value === undefined ? { _tag: "Open" } : { _tag: "Done", message: exit.value }
  const error = Cause.hasInterrupts(exit.cause) || Cause.hasDies(exit.cause) ? undefined : Cause.squash(exit.cause)
  return isModelError(error) ? { _tag: "Failed", error } : { _tag: "Open" }
}

/**
 * Requests a turn as an activity. Gives the message if an earlier attempt of the workflow stored it, and `undefined` if this
 * attempt streamed it. `after` is the message that the turn answers.
 */
export const turn = Effect.fnUntraced(function* <R>(
  after: string,
  work: Effect.Effect<AiMessage | undefined, ModelError, R>
): Effect.fn.Return<AiMessage | undefined, ModelError, R | Engine> {
  for (let attempt = 0; ; attempt++) {
    let happened: Exit.Exit<AiMessage | undefined, ModelError> | undefined
    const result = yield* Activity.make({
      name: `turn/${after}/${attempt}`,
      success: StoredTurn,
      execute: Effect.map(Effect.exit(work), (exit) => {
        happened = exit
        return ifStorable(storedTurn(exit))
      })
    })
    if (happened !== undefined) return yield* Effect.as(happened, undefined)
    if (result._tag === "Done") return result.message
    if (result._tag === "Failed") return yield* result.error
  }
})
