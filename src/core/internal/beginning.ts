import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Input, RunOptions } from "../Agent.ts"
import { AgentError, type Reason } from "../AgentError.ts"
import * as AgentState from "../AgentState.ts"
import type { Decision } from "../Approval.ts"
import type { Checkpoint, Resume } from "../Checkpoint.ts"
import { Journal, type Thread } from "../Journal.ts"
import * as Message from "../Message.ts"
import { type Usage, zero } from "../Usage.ts"
import type { Compiled } from "./definition.ts"
import { mend, reopen } from "./history.ts"
import { decide, type Suspension, suspension } from "./suspension.ts"

/** What is wrong with a run itself. */
export const invalid = (compiled: Compiled, reason: Reason): AgentError =>
  new AgentError({ agent: compiled.definition.name, reason })

/** Whether a run goes on with an earlier one. */
export const isResume = (input: Input): input is Resume => typeof input === "object" && "_tag" in input

const toMessages = (input: Exclude<Input, Resume>): ReadonlyArray<Message.Message> => {
  if (typeof input === "string") return input === "" ? [] : [Message.human(input)]
  return "role" in input ? [input] : input
}

/** What a run begins with. */
interface Beginning {
  readonly inputs: ReadonlyArray<Message.Message>
  readonly messages: Array<Message.Message>
  readonly state: AgentState.Snapshot
  readonly usage: Usage
  readonly rounds: number
  /** The turn to take up, and its calls that are open. */
  readonly turn: Message.AiMessage | undefined
  readonly open: ReadonlyArray<{ readonly id: string; readonly name: string }>
  readonly suspension: Suspension | null
}

const fresh = { usage: zero, rounds: 0, turn: undefined, open: [], suspension: null }

/** A checkpoint to go on from, with what was decided since. */
const goOn = (
  compiled: Compiled,
  decisions: ReadonlyArray<Decision>,
  checkpoint: Checkpoint,
  inherited: ReadonlyArray<Decision>
): Result.Result<Beginning, AgentError> => {
  const reopened = reopen(checkpoint.messages)
  if (reopened.messages.length === 0) {
    return Result.fail(
      invalid(compiled, { _tag: "InvalidInput", problem: "the checkpoint has no messages to go on from" })
    )
  }
  return Result.flatMap(
    Result.mapError(AgentState.read(checkpoint.state, suspension), (error) =>
      invalid(compiled, { _tag: "InvalidState", slot: suspension.name, problem: error.message })
    ),
    (stored) => {
      const ids = new Set(stored?.requests.map((request) => request.id))
      const given = [...decisions, ...inherited.filter((decision) => ids.has(decision.id))]
      return Result.mapBoth(decide(stored, given), {
        onFailure: (problem) => invalid(compiled, { _tag: "InvalidInput", problem }),
        onSuccess: (decided): Beginning => ({
          ...reopened,
          inputs: [],
          state: checkpoint.state,
          usage: checkpoint.usage,
          // The round that is taken up is told of again.
          rounds: Math.max(0, checkpoint.rounds - (reopened.open.length > 0 ? 1 : 0)),
          suspension: decided?.messageId === reopened.turn?.id ? decided : null
        })
      })
    }
  )
}

/** What a run is given before it begins: input to answer, and a history that a provider accepts. */
export const prepare = (
  compiled: Compiled,
  input: Input,
  options: RunOptions,
  thread: Thread | undefined,
  inherited: ReadonlyArray<Decision>
): Result.Result<Beginning, AgentError> => {
  if (compiled.problem !== undefined) {
    return Result.fail(invalid(compiled, { _tag: "InvalidAgent", problem: compiled.problem }))
  }
  const isExplicit = options.history !== undefined || options.state !== undefined
  if (thread !== undefined && (isExplicit || (isResume(input) && input.checkpoint !== undefined))) {
    const problem = "history and state come from the thread or are given, not both"
    return Result.fail(invalid(compiled, { _tag: "InvalidInput", problem }))
  }
  if (isResume(input)) {
    const checkpoint = input.checkpoint ?? thread?.checkpoint
    return checkpoint === undefined
      ? Result.fail(invalid(compiled, { _tag: "InvalidInput", problem: "there is nothing to go on from" }))
      : goOn(compiled, input.decisions, checkpoint, inherited)
  }
  const inputs = toMessages(input)
  const { messages, missing } = mend(thread?.checkpoint?.messages ?? options.history ?? [])
  const mended = inputs.some((message) => message.role !== "human")
    ? mendInput(messages, missing, inputs)
    : [...missing, ...inputs]
  if (inputs.length === 0 && messages.length === 0) {
    return Result.fail(
      invalid(compiled, { _tag: "InvalidInput", problem: "the input is empty, and there is no history to go on from" })
    )
  }
  return Result.succeed({ ...fresh, inputs: mended, messages, state: thread?.checkpoint?.state ?? options.state ?? {} })
}

/** Input may answer the calls that the history left open, and has to be as valid as a history. */
const mendInput = (
  history: ReadonlyArray<Message.Message>,
  missing: ReadonlyArray<Message.ToolMessage>,
  inputs: ReadonlyArray<Message.Message>
): ReadonlyArray<Message.Message> => {
  const given = new Set(inputs.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : [])))
  const whole = mend([...history, ...missing.filter((answer) => !given.has(answer.toolCallId)), ...inputs])
  return [...whole.messages, ...whole.missing].slice(history.length)
}

/** The thread of a run. A run that names one and has no journal would lose it. */
export const openThread = (compiled: Compiled, threadId: string): Effect.Effect<Thread, AgentError> =>
  Effect.flatMap(Effect.serviceOption(Journal), (journal) =>
    Option.isNone(journal)
      ? Effect.fail(
          invalid(compiled, {
            _tag: "InvalidInput",
            problem: "a run with a threadId needs a journal; provide a layer of effect-deepagents/sessions"
          })
        )
      : Effect.mapError(journal.value.open(threadId), (error) => invalid(compiled, { _tag: "Thread", error }))
  )
