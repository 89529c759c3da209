/** Reads the input and the options of a run: a history that every provider accepts, and the new messages. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { check } from "../../support/options/check.ts"
import { brief } from "../../support/text/issues.ts"
import { AgentError, type Reason } from "../AgentError.ts"
import * as AgentState from "../AgentState.ts"
import type { Decision, Request } from "../Approval.ts"
import type { Checkpoint, Resume } from "../Checkpoint.ts"
import { Journal, type Thread } from "../Journal.ts"
import * as Message from "../Message.ts"
import type { Input, RunOptions } from "../runOptions.ts"
import * as shapes from "../schema/shapes.ts"
import type { SessionError } from "../SessionError.ts"
import { isOpen, mend, type ReopenedHistory, reopen } from "../thread/history.ts"
import { decide, openRequests, type Suspension, suspension, waitingCalls } from "../thread/suspension.ts"
import { nothingSpent, type Spent, type Usage, zero } from "../Usage.ts"
import type { CompiledAgent } from "./definition.ts"
import type { OpenCall } from "./live.ts"
import { seal, type SealedThread } from "./records/seal.ts"

export const fail = ({ definition }: CompiledAgent, reason: Reason): AgentError =>
  new AgentError({ agent: definition.name, reason })

const failInput = (compiled: CompiledAgent, problem: string) =>
  Result.fail(fail(compiled, { _tag: "InvalidInput", problem }))

export const isResume = (input: Input): input is Resume => typeof input === "object" && "_tag" in input

const checkRun = check(shapes.agentRun)

const roles: ReadonlyMap<unknown, string> = new Map([
  ["user", "human"],
  ["assistant", "ai"]
])

/** Says why a value is no message. Messages of other libraries have other roles, or content that is no list. */
const messageProblem = (message: unknown): string | undefined => {
  if (!Predicate.hasProperty(message, "role")) return "is no message"
  const { role } = message
  if (typeof role !== "string") return "has no text as its role"
  if (!["system", "human", "ai", "tool"].includes(role)) {
    return `has the role ${brief(role)}, which is a role of another library; make it with Message.${roles.get(role) ?? "human"}`
  }
  return Predicate.hasProperty(message, "content") && Array.isArray(message.content)
    ? undefined
    : `has no list of content; make it with Message.${role}`
}

/** Says why a value is no checkpoint. Of its messages, only the ends are looked at. */
const checkpointProblem = (checkpoint: unknown): string | undefined => {
  if (
    !Predicate.hasProperty(checkpoint, "messages") ||
    !Array.isArray(checkpoint.messages) ||
    !Predicate.hasProperty(checkpoint, "state") ||
    !Predicate.isObject(checkpoint.state)
  ) {
    return "the checkpoint has no messages and state; give an earlier result, or what Checkpoint.decode read"
  }
  if (checkpoint.messages.length === 0) return undefined
  const unfit = messageProblem(checkpoint.messages[0]) ?? messageProblem(checkpoint.messages.at(-1))
  return unfit === undefined ? undefined : `a message of the checkpoint ${unfit}`
}

const resumeProblem = (input: object): string | undefined => {
  if (Predicate.hasProperty(input, "problem") && typeof input.problem === "string") return input.problem
  const checkpoint = Predicate.hasProperty(input, "checkpoint") ? input.checkpoint : undefined
  return checkpoint === undefined ? undefined : checkpointProblem(checkpoint)
}

const inputProblem = (input: unknown): string | undefined => {
  if (typeof input === "string") return undefined
  if (Predicate.hasProperty(input, "_tag")) return resumeProblem(input)
  if (!Array.isArray(input)) {
    const problem = messageProblem(input)
    return problem === undefined ? undefined : `the input ${problem}`
  }
  for (let index = 0; index < input.length; index++) {
    const problem = messageProblem(input[index])
    if (problem !== undefined) return `message ${index + 1} of the input ${problem}`
  }
  return undefined
}

/** Finds the problem of a call without types. Of the history, only the ends are looked at: it may be long. */
export const callProblem = (input: unknown, options: RunOptions): string | undefined => {
  const problem = checkRun(options) ?? inputProblem(input)
  if (problem !== undefined || options.history === undefined || options.history.length === 0) return problem
  const unfit = messageProblem(options.history[0]) ?? messageProblem(options.history.at(-1))
  return unfit === undefined ? undefined : `a message of the history ${unfit}`
}

const toMessages = (input: Exclude<Input, Resume>): ReadonlyArray<Message.Message> => {
  const messages = typeof input === "string" ? [Message.human(input)] : "role" in input ? [input] : input
  return messages.every(isBlank) ? [] : messages
}

const isBlank = ({ content, role }: Message.Message): boolean =>
  role === "human" && content.every((block) => block.type === "text" && block.text.trim() === "")

export interface RunBeginning {
  readonly inputs: ReadonlyArray<Message.Message>
  /** Results in the input that answer earlier turns: `messages` has them already, the journal does not. */
  readonly lateResults: ReadonlyArray<Message.Message>
  readonly messages: Array<Message.Message>
  readonly state: AgentState.Snapshot
  readonly usage: Usage
  readonly rounds: number
  readonly spent: Spent
  /** The turn to resume. */
  readonly turn: Message.AiMessage | undefined
  /** The calls of that turn without an answer, and the calls behind them. */
  readonly open: ReopenedHistory["open"]
  /** The traces that an earlier run left of these calls. */
  readonly traces: ReadonlyMap<string, OpenCall["trace"]>
  readonly suspension: Suspension | null
  /** Requests that are no longer pending; `undefined` if the state has no suspension to clear. */
  readonly voids: ReadonlyArray<Request> | undefined
}

const fresh = {
  usage: zero,
  rounds: 0,
  spent: nothingSpent,
  turn: undefined,
  open: [],
  traces: new Map(),
  suspension: null
}

export const prepare = (
  compiled: CompiledAgent,
  input: Input,
  options: RunOptions,
  thread: Thread | undefined,
  inherited: ReadonlyArray<Decision>
): Result.Result<RunBeginning, AgentError> => {
  if (compiled.problem !== undefined) {
    return Result.fail(fail(compiled, { _tag: "InvalidAgent", problem: compiled.problem }))
  }
  const isExplicit = options.history !== undefined || options.state !== undefined
  if (thread !== undefined && (isExplicit || (isResume(input) && input.checkpoint !== undefined))) {
    return failInput(compiled, "history and state come from the thread; leave them out, or leave threadId out")
  }
  if (!isResume(input)) {
    const { messages = options.history ?? [], state = options.state ?? {} } = thread?.checkpoint ?? {}
    return beginWith(compiled, toMessages(input), messages, state, thread !== undefined)
  }
  const checkpoint = input.checkpoint ?? thread?.checkpoint
  return checkpoint === undefined
    ? failInput(compiled, "there is nothing to continue")
    : resumeFrom(compiled, input.decisions, checkpoint, inherited)
}

const beginWith = (
  compiled: CompiledAgent,
  inputs: ReadonlyArray<Message.Message>,
  history: ReadonlyArray<Message.Message>,
  state: AgentState.Snapshot,
  hasThread: boolean
): Result.Result<RunBeginning, AgentError> => {
  const problem = problemOf(inputs, history, hasThread)
  if (problem !== undefined) return failInput(compiled, problem)
  // A suspension that can't be read is void too: it is certain of nothing.
  const earlier = Result.getOrElse(AgentState.read(state, suspension), () => null)
  const isUnreadable = earlier === null && (state[suspension.name] ?? null) !== null
  return Result.succeed({
    ...fresh,
    ...join(history, inputs, earlier),
    state: isUnreadable ? { ...state, [suspension.name]: null } : state,
    voids: isUnreadable ? [] : earlier === null ? undefined : openRequests(earlier)
  })
}

const problemOf = (
  inputs: ReadonlyArray<Message.Message>,
  history: ReadonlyArray<Message.Message>,
  hasThread: boolean
): string | undefined => {
  if (inputs.length === 0 && hasThread) {
    return "the input is empty; give a message, or continue the thread by Agent.resume"
  }
  if (inputs.length === 0 && history.length === 0) return "the input is empty, and there is no history to continue"
  const last = inputs.at(-1) ?? history.at(-1)
  return last?.role === "ai" && (inputs.length > 0 || Message.callIds(last).length === 0)
    ? `the ${inputs.length > 0 ? "input" : "history"} ends with an ai message; end with the message that the model should answer`
    : undefined
}

/** Joins history and input. The input may answer open calls of the history, and must be as valid as a history. */
const join = (
  history: ReadonlyArray<Message.Message>,
  inputs: ReadonlyArray<Message.Message>,
  earlier: Suspension | null
): Pick<RunBeginning, "messages" | "inputs" | "lateResults"> => {
  const { messages, missing } = mend(history, earlier)
  if (inputs.every(({ role }) => role === "human"))
    return { messages, inputs: missing.length === 0 ? inputs : [...missing, ...inputs], lateResults: [] }
  const whole = mend([...history, ...inputs], earlier)
  // A late answer takes the place of its stand-in.
  const before = whole.messages.slice(0, messages.length)
  const isInput = new Set(inputs)
  return {
    messages: before,
    inputs: [...whole.messages.slice(messages.length), ...whole.missing],
    lateResults: before.filter((message) => isInput.has(message))
  }
}

const resumeFrom = (
  compiled: CompiledAgent,
  decisions: ReadonlyArray<Decision>,
  checkpoint: Checkpoint,
  inherited: ReadonlyArray<Decision>
): Result.Result<RunBeginning, AgentError> => {
  const savedSuspension = AgentState.read(checkpoint.state, suspension)
  if (Result.isFailure(savedSuspension)) {
    const problem = savedSuspension.failure.message
    return Result.fail(fail(compiled, { _tag: "InvalidState", slot: suspension.name, problem }))
  }
  const open =
    savedSuspension.success !== null && isOpen(checkpoint.messages, savedSuspension.success)
      ? savedSuspension.success
      : null
  const ids = new Set(open?.requests.map((request) => request.id))
  const reopened = reopen(checkpoint.messages, savedSuspension.success)
  if (reopened.messages.length === 0) return failInput(compiled, "the checkpoint has no messages to continue")
  const decided = decide(open, [...decisions, ...inherited.filter((decision) => ids.has(decision.id))])
  if (Result.isFailure(decided)) return failInput(compiled, decided.failure)
  return Result.succeed({
    ...reopened,
    inputs: [],
    lateResults: [],
    state: checkpoint.state,
    usage: checkpoint.usage,
    spent: checkpoint.spent ?? nothingSpent,
    // A resumed round is reported again.
    rounds: Math.max(0, checkpoint.rounds - (isRoundOpen(compiled, reopened) ? 1 : 0)),
    traces: tracesOf(reopened.turn, decided.success),
    suspension: decided.success,
    voids: savedSuspension.success !== null && open === null ? openRequests(savedSuspension.success) : undefined
  })
}

/** True when the checkpoint was taken inside a round: its calls are open, or its program is. */
const isRoundOpen = ({ definition }: CompiledAgent, { messages, open }: ReopenedHistory): boolean =>
  open.length > 0 || (definition.program !== undefined && messages.at(-1)?.role !== "ai")

const isExecutable = ({ stopReason }: Message.AiMessage): boolean => stopReason === "toolCalls" || stopReason === "stop"

/** The traces of an earlier run: a suspension knows which calls began; without one, each of them may have. */
const tracesOf = (turn: Message.AiMessage | undefined, current: Suspension | null): RunBeginning["traces"] => {
  const all = turn !== undefined && isExecutable(turn) ? turn.toolCalls.map(({ id }) => id) : []
  return new Map([
    ...(current?.unknown ?? all).map((id) => [id, "unknown"] as const),
    ...(current === null ? [] : waitingCalls(current)).map((id) => [id, "waiting"] as const)
  ])
}

/** Opens the thread of a run, and takes its turn. Without a journal the run would lose the thread, so it fails. */
export const openThread = Effect.fnUntraced(function* (
  compiled: CompiledAgent,
  threadId: string,
  input: Input
): Effect.fn.Return<SealedThread & { readonly lease: unknown }, AgentError, Scope.Scope> {
  const journal = yield* Effect.serviceOption(Journal)
  if (Option.isNone(journal)) {
    const problem =
      "a run with a threadId needs a journal; provide SessionStore.journal of effect-deepagents/sessions over a store, such as MemorySessions.layer"
    return yield* fail(compiled, { _tag: "InvalidInput", problem })
  }
  const { hold, open } = journal.value
  const toError = (error: SessionError) => fail(compiled, { _tag: "Thread", error })
  const lease = hold === undefined ? undefined : yield* Effect.mapError(hold(threadId), toError)
  const opened = Effect.flatMap(open(threadId), (thread) => seal(threadId, thread, compiled.slots, isResume(input)))
  return { ...(yield* Effect.mapError(opened, toError)), lease }
})
