/** Activities of a workflow: a turn and a tool call, and the results that are stored of them. */
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
 * The results that an activity stores. `Open` is an attempt that came to no end that can be stored: it was interrupted,
 * its sub-agent waits for a decision, it wrote to the run's state (which is stored with the step, not with the call),
 * it failed with what only the run may see, or it gave more than can be stored. `Lost` is one of which nobody knows how
 * it ended.
 */
const open = Schema.TaggedStruct("Open", {})
const lost = Schema.TaggedStruct("Lost", {})

const StoredCall = Schema.Union([open, lost, Stored, Schema.TaggedStruct("Failed", { error: ToolError })])
type StoredCall = typeof StoredCall.Type

const StoredTurn = Schema.Union([
  open,
  Schema.TaggedStruct("Done", { message: AiMessage }),
  Schema.TaggedStruct("Failed", { error: ModelError })
])
type StoredTurn = typeof StoredTurn.Type

type Engine = WorkflowEngine | WorkflowInstance

const callName = (turnId: string, callId: string, attempt: number): string => `call/${turnId}/${callId}/${attempt}`

const ifStorable = <A extends StoredCall | StoredTurn>(stored: A): A | typeof open.Type =>
  isStorable(stored) ? stored : { _tag: "Open" }

/** The end of a call, for the store. */
const storedCall = (exit: Exit.Exit<ToolOutput, ToolError>, wrote: boolean): StoredCall => {
  if (wrote) return { _tag: "Open" }
  if (Exit.isSuccess(exit)) {
    return exit.value.state.length > 0 ? { _tag: "Open" } : toStored(exit.value)
  }
  const error = Cause.hasInterrupts(exit.cause) || Cause.hasDies(exit.cause) ? undefined : Cause.squash(exit.cause)
  return isToolError(error) ? { _tag: "Failed", error } : { _tag: "Open" }
}

/**
 * Runs a call as an activity: what it gave is stored before anything else happens, and given again by a later attempt
 * of the workflow. `writes` counts what was written to the state of the run.
 */
export const call = Effect.fnUntraced(function* <R>(
  turnId: string,
  callId: string,
  writes: Effect.Effect<number>,
  work: Effect.Effect<ToolOutput, ToolError, R>
): Effect.fn.Return<ToolOutput, ToolError, R | Engine> {
  for (let attempt = 0; ; attempt++) {
    let happened: Exit.Exit<ToolOutput, ToolError> | undefined
    const stored = yield* Activity.make({
      name: callName(turnId, callId, attempt),
      success: StoredCall,
      execute: Effect.gen(function* () {
        const before = yield* writes
        const exit = yield* Effect.exit(work)
        happened = exit
        return ifStorable(storedCall(exit, (yield* writes) !== before))
      })
    })
    // Here it is as it happened, with what can't be stored.
    if (happened !== undefined) return yield* happened
    if (stored._tag === "Output") return fromStored(stored)
    if (stored._tag === "Failed") return yield* stored.error
  }
})

/**
 * The output that was stored of a call, of one that must not run twice: if there is none, there will be none. What was
 * begun and not finished would be begun again by the engine, so something else takes its place.
 */
export const outputOf = Effect.fnUntraced(function* (
  turnId: string,
  callId: string
): Effect.fn.Return<ToolOutput | undefined, never, Engine> {
  for (let attempt = 0; ; attempt++) {
    const stored = yield* Activity.make({
      name: callName(turnId, callId, attempt),
      success: StoredCall,
      execute: Effect.succeed({ _tag: "Lost" } as const)
    })
    if (stored._tag === "Output") return fromStored(stored)
    if (stored._tag === "Failed") {
      const content = [{ type: "text", text: stored.error.message } as const]
      return { content, isError: true, returnDirect: false, state: [] }
    }
    if (stored._tag === "Lost") return undefined
  }
})

/** The end of a turn, for the store. */
const storedTurn = (exit: Exit.Exit<AiMessage | undefined, ModelError>): StoredTurn => {
  if (Exit.isSuccess(exit)) return exit.value === undefined ? { _tag: "Open" } : { _tag: "Done", message: exit.value }
  const error = Cause.hasInterrupts(exit.cause) || Cause.hasDies(exit.cause) ? undefined : Cause.squash(exit.cause)
  return isModelError(error) ? { _tag: "Failed", error } : { _tag: "Open" }
}

/**
 * Asks for a turn as an activity: what it came to is stored. `undefined` if it was asked for here and streamed as it
 * came, the message if it was asked for by an earlier attempt of the workflow. `after` is the message that the turn
 * answers.
 */
export const turn = Effect.fnUntraced(function* <R>(
  after: string,
  work: Effect.Effect<AiMessage | undefined, ModelError, R>
): Effect.fn.Return<AiMessage | undefined, ModelError, R | Engine> {
  for (let attempt = 0; ; attempt++) {
    let happened: Exit.Exit<AiMessage | undefined, ModelError> | undefined
    const stored = yield* Activity.make({
      name: `turn/${after}/${attempt}`,
      success: StoredTurn,
      execute: Effect.map(Effect.exit(work), (exit) => {
        happened = exit
        return ifStorable(storedTurn(exit))
      })
    })
    if (happened !== undefined) return yield* Effect.as(happened, undefined)
    if (stored._tag === "Done") return stored.message
    if (stored._tag === "Failed") return yield* stored.error
  }
})
