/** Reads the input and the options of a run: a history that a provider accepts, and what is new in it. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { AgentError, type Reason } from "../AgentError.ts"
import * as AgentState from "../AgentState.ts"
import type { Decision, Request } from "../Approval.ts"
import type { Checkpoint, Resume } from "../Checkpoint.ts"
import { Journal, type Thread } from "../Journal.ts"
import * as Message from "../Message.ts"
import type { Input, RunOptions } from "../runOptions.ts"
import type { SessionError } from "../SessionError.ts"
import { isOpen, mend, type Reopened, reopen } from "../thread/history.ts"
import { decide, openRequests, type Suspension, suspension, waitingCalls } from "../thread/suspension.ts"
import { nothingSpent, type Spent, type Usage, zero } from "../Usage.ts"
import type { Compiled } from "./definition.ts"
import type { OpenCall } from "./live.ts"
import { type Sealed, sealed } from "./seal.ts"

/** The failure of a run itself. */
export const invalid = (compiled: Compiled, reason: Reason): AgentError =>
  new AgentError({ agent: compiled.definition.name, reason })

/** Input that resumes an earlier run. */
export const isResume = (input: Input): input is Resume => typeof input === "object" && "_tag" in input

const toMessages = (input: Exclude<Input, Resume>): ReadonlyArray<Message.Message> => {
  const messages = typeof input === "string" ? [Message.human(input)] : "role" in input ? [input] : input
  return messages.every(isBlank) ? [] : messages
}

/** A human message without anything in it. */
const isBlank = ({ content, role }: Message.Message): boolean =>
  role === "human" && content.every((block) => block.type === "text" && block.text.trim() === "")

/** The beginning of a run. */
export interface Beginning {
  readonly inputs: ReadonlyArray<Message.Message>
  /** Results in the input that belong to earlier turns: they are in `messages` already, and not yet written down. */
  readonly late: ReadonlyArray<Message.Message>
  readonly messages: Array<Message.Message>
  readonly state: AgentState.Snapshot
  readonly usage: Usage
  readonly rounds: number
  readonly spent: Spent
  /** The turn to resume, and its calls that are open. */
  readonly turn: Message.AiMessage | undefined
  readonly open: Reopened["open"]
  /** The traces that an earlier run left of them. */
  readonly left: ReadonlyMap<string, OpenCall["left"]>
  readonly suspension: Suspension | null
  /** The requests that wait no more, if the state says that something did. */
  readonly voids: ReadonlyArray<Request> | undefined
}

const fresh = {
  usage: zero,
  rounds: 0,
  spent: nothingSpent,
  turn: undefined,
  open: [],
  left: new Map(),
  suspension: null
}

const isExecutable = ({ stopReason }: Message.AiMessage): boolean => stopReason === "toolCalls" || stopReason === "stop"

/** The calls that an earlier run left: in a suspended turn it is known which began, in any other each may have. */
const leftOf = (turn: Message.AiMessage | undefined, standing: Suspension | null): Beginning["left"] => {
  const all = turn !== undefined && isExecutable(turn) ? turn.toolCalls.map(({ id }) => id) : []
  return new Map([
    ...(standing?.unknown ?? all).map((id) => [id, "unknown"] as const),
    ...(standing === null ? [] : waitingCalls(standing)).map((id) => [id, "waiting"] as const)
  ])
}

/** Resumes a checkpoint with the decisions since. */
const goOn = (
  compiled: Compiled,
  decisions: ReadonlyArray<Decision>,
  checkpoint: Checkpoint,
  inherited: ReadonlyArray<Decision>
): Result.Result<Beginning, AgentError> => {
  return Result.flatMap(
    Result.mapError(AgentState.read(checkpoint.state, suspension), (error) =>
      invalid(compiled, { _tag: "InvalidState", slot: suspension.name, problem: error.message })
    ),
    (stored) => {
      const standing = stored !== null && isOpen(checkpoint.messages, stored) ? stored : null
      const ids = new Set(standing?.requests.map((request) => request.id))
      const given = [...decisions, ...inherited.filter((decision) => ids.has(decision.id))]
      const reopened = reopen(checkpoint.messages, stored)
      if (reopened.messages.length === 0) {
        return Result.fail(
          invalid(compiled, { _tag: "InvalidInput", problem: "the checkpoint has no messages to go on from" })
        )
      }
      return Result.mapBoth(decide(standing, given), {
        onFailure: (problem) => invalid(compiled, { _tag: "InvalidInput", problem }),
        onSuccess: (decided): Beginning => ({
          ...reopened,
          inputs: [],
          late: [],
          state: checkpoint.state,
          usage: checkpoint.usage,
          spent: checkpoint.spent ?? nothingSpent,
          // The round that is resumed is reported again.
          rounds: Math.max(0, checkpoint.rounds - (isAgain(compiled, reopened) ? 1 : 0)),
          left: leftOf(reopened.turn, decided),
          suspension: decided,
          voids: stored !== null && standing === null ? openRequests(stored) : undefined
        })
      })
    }
  )
}

/** True where the round that a checkpoint was taken in is begun again: its calls are open, or its program is. */
const isAgain = ({ definition }: Compiled, { messages, open }: Reopened): boolean =>
  open.length > 0 || (definition.program !== undefined && messages.at(-1)?.role !== "ai")

/** Makes the beginning of a run: input to answer, and a history that a provider accepts. */
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
  const history = thread?.checkpoint?.messages ?? options.history ?? []
  const state = thread?.checkpoint?.state ?? options.state ?? {}
  const problem = emptiness(inputs, history, thread !== undefined)
  if (problem !== undefined) return Result.fail(invalid(compiled, { _tag: "InvalidInput", problem }))
  // One that can't be read is certain of nothing, and void with this input as well.
  const waits = Result.getOrElse(AgentState.read(state, suspension), () => null)
  const isUnreadable = waits === null && (state[suspension.name] ?? null) !== null
  return Result.succeed({
    ...fresh,
    ...joined(history, inputs, waits),
    state: isUnreadable ? { ...state, [suspension.name]: null } : state,
    voids: isUnreadable ? [] : waits === null ? undefined : openRequests(waits)
  })
}

/** The reason why an input can't be answered, if there is one. */
const emptiness = (
  inputs: ReadonlyArray<Message.Message>,
  history: ReadonlyArray<Message.Message>,
  hasThread: boolean
): string | undefined => {
  if (inputs.length === 0 && hasThread) {
    return "the input is empty; say something, or go on with what the thread has come to by Agent.resume"
  }
  if (inputs.length === 0 && history.length === 0) return "the input is empty, and there is no history to go on from"
  const last = inputs.at(-1) ?? history.at(-1)
  return last?.role === "ai" && (inputs.length > 0 || Message.callIds(last).length === 0)
    ? `the ${inputs.length > 0 ? "input" : "history"} ends with an ai message; end with what the model is to answer`
    : undefined
}

/** Input behind a history. It may answer calls that the history left open, and has to be as valid as a history. */
const joined = (
  history: ReadonlyArray<Message.Message>,
  inputs: ReadonlyArray<Message.Message>,
  waits: Suspension | null
): Pick<Beginning, "messages" | "inputs" | "late"> => {
  const { messages, missing } = mend(history, waits)
  if (inputs.every(({ role }) => role === "human"))
    return { messages, inputs: missing.length === 0 ? inputs : [...missing, ...inputs], late: [] }
  const whole = mend([...history, ...inputs], waits)
  // An answer that comes late takes the place of what stood in for it.
  const before = whole.messages.slice(0, messages.length)
  const given = new Set(inputs)
  return {
    messages: before,
    inputs: [...whole.messages.slice(messages.length), ...whole.missing],
    late: before.filter((message) => given.has(message))
  }
}

/** The thread of a run, and its turn. A run that names one and has no journal would lose it. */
export const openThread = Effect.fnUntraced(function* (
  compiled: Compiled,
  threadId: string,
  input: Input
): Effect.fn.Return<Sealed & { readonly held: unknown }, AgentError, Scope.Scope> {
  const journal = yield* Effect.serviceOption(Journal)
  if (Option.isNone(journal)) {
    const problem = "a run with a threadId needs a journal; provide a layer of effect-deepagents/sessions"
    return yield* invalid(compiled, { _tag: "InvalidInput", problem })
  }
  const { hold, open } = journal.value
  const failed = (error: SessionError) => invalid(compiled, { _tag: "Thread", error })
  const held = hold === undefined ? undefined : yield* Effect.mapError(hold(threadId), failed)
  const opened = Effect.flatMap(open(threadId), (thread) => sealed(threadId, thread, compiled.slots, isResume(input)))
  return { ...(yield* Effect.mapError(opened, failed)), held }
})
