/** Brings a history into a form that any provider accepts: each call with exactly one answer. */
import { type AiMessage, isPartial, makeId, type Message, tool, type ToolMessage } from "../Message.ts"
import { type Suspension, waitingCalls } from "./suspension.ts"

interface UnansweredCall {
  readonly id: string
  readonly name: string
  /** Set for a call that could not be read, and so never ran. */
  readonly isMalformed?: true | undefined
}

const callsOf = (message: AiMessage): ReadonlyArray<UnansweredCall> =>
  message.malformedToolCalls.length === 0
    ? message.toolCalls
    : [
        ...message.toolCalls,
        ...message.malformedToolCalls.map(({ id, name }) => ({
          id,
          name: name ?? "unknown",
          isMalformed: true as const
        }))
      ]

/** The `source` of a stand-in for a missing result. A late result replaces it. */
export const recovery = "recovery"

/** Of a call that never began. */
export const neverBegun = "This call was not executed: the run ended before it."

/** Of a call that was begun, or may have been, when a run was cut off. */
export const unknownOutcome =
  "This call was begun, or about to be, when the run was cut off. Whether it took effect is not known: look before you repeat it."

const unrecorded =
  "The result of this call was not written down: the run was cut off. Whether it took effect is not known: look before you repeat it."

const undecided = "This call was not executed: it waited for a decision, and something else was said instead."

const stopped =
  "This call was begun, and the run was stopped in it. How much of it took effect is not known: look before you repeat it."

/** The knowledge of a suspension about the calls of its turn, by their ids. */
interface SuspendedCalls {
  readonly answers: ReadonlyMap<string, ToolMessage>
  readonly unknown: ReadonlySet<string>
  readonly waiting: ReadonlySet<string>
  /** Set if somebody was asked for a decision. */
  readonly isAsked: boolean
}

const suspendedCalls = (suspension: Suspension): SuspendedCalls => ({
  answers: new Map(suspension.answers.map((answer) => [answer.toolCallId, answer])),
  unknown: new Set(suspension.unknown),
  waiting: new Set(waitingCalls(suspension)),
  isAsked: suspension.requests.length > 0
})

/**
 * The answer to a call that nobody answered. Only a suspension is certain that a call never began: it is over before
 * the first call of its turn begins.
 */
const standIn = ({ id, isMalformed, name }: UnansweredCall, suspended: SuspendedCalls | undefined): ToolMessage => {
  const answer = suspended?.answers.get(id)
  if (answer !== undefined) return answer
  const text = isMalformed
    ? neverBegun
    : suspended === undefined || suspended.unknown.has(id)
      ? unrecorded
      : suspended.waiting.has(id)
        ? stopped
        : suspended.isAsked
          ? undecided
          : neverBegun
  return tool(text, { id: makeId(), toolCallId: id, toolName: name, isError: true, source: recovery })
}

type Answers = Map<string, ToolMessage>

/**
 * The answers to each turn, by its place. A result belongs to the last turn before it that has a call with its id,
 * however late it comes; the first one counts, but for what only stood in for it.
 */
const collect = (history: ReadonlyArray<Message>): ReadonlyMap<number, Answers> => {
  const turns = new Map<number, Answers>()
  const holders = new Map<string, Answers>()
  for (let at = 0; at < history.length; at++) {
    const message = history[at]
    if (message?.role === "ai") {
      const calls = callsOf(message)
      if (calls.length === 0) continue
      const answers: Answers = new Map()
      turns.set(at, answers)
      for (const { id } of calls) holders.set(id, answers)
    } else if (message?.role === "tool") {
      const answers = holders.get(message.toolCallId)
      const before = answers?.get(message.toolCallId)
      const counts = before === undefined || (before.source === recovery && message.source !== recovery)
      if (counts) answers?.set(message.toolCallId, message)
    }
  }
  return turns
}

/** Finds the last message that is no result. */
const lastTurn = (history: ReadonlyArray<Message>) => {
  const at = history.findLastIndex((message) => message.role !== "tool")
  const last = history[at]
  return { at, last, turn: last?.role === "ai" ? last : undefined }
}

/**
 * True while the subject of a suspension is open: a turn with unanswered calls, or the question of a program, and no
 * later message.
 */
export const isOpen = (history: ReadonlyArray<Message>, { messageId }: Suspension): boolean => {
  const { at, last, turn } = lastTurn(history)
  if (last?.id !== messageId) return false
  if (turn === undefined) return true
  const answered = new Set(history.slice(at + 1).map((message) => message.role === "tool" && message.toolCallId))
  return callsOf(turn).some(({ id }) => !answered.has(id))
}

/** Tells whether behind every ai message there are the answers to its calls, in their order, and none anywhere else. */
const isMended = (history: ReadonlyArray<Message>): boolean => {
  let at = 0
  while (at < history.length) {
    const message = history[at++]
    if (message?.role === "tool") return false
    if (message?.role !== "ai" || message.toolCalls.length + message.malformedToolCalls.length === 0) continue
    const calls = callsOf(message)
    if (calls.length > 1 && new Set(calls.map(({ id }) => id)).size < calls.length) return false
    for (const { id } of calls) {
      const answer = history[at++]
      if (answer?.role !== "tool" || answer.toolCallId !== id) return false
    }
  }
  return true
}

/**
 * Makes a history that every provider accepts: each call has exactly one answer behind its turn, in call order, and no
 * other answers. Answers missing at the end are new, so `missing` has them; others are put in place. It reads the
 * history once a run.
 */
export const mend = (
  history: ReadonlyArray<Message>,
  suspension: Suspension | null
): { readonly messages: Array<Message>; readonly missing: ReadonlyArray<ToolMessage> } => {
  // Most are: nothing has to be looked up by its id then.
  if (isMended(history)) return { messages: history.slice(), missing: [] }
  const turns = collect(history)
  if (turns.size === 0) return { messages: history.filter(({ role }) => role !== "tool"), missing: [] }
  const last = lastTurn(history)
  const suspended = suspension === null ? undefined : suspendedCalls(suspension)
  const messages: Array<Message> = []
  const missing: Array<ToolMessage> = []
  for (const [at, message] of history.entries()) {
    if (message.role === "tool") continue
    messages.push(message)
    const answers = turns.get(at)
    if (message.role !== "ai" || answers === undefined) continue
    const suspendedHere = suspension?.messageId === message.id ? suspended : undefined
    for (const call of callsOf(message)) {
      const answer = answers.get(call.id)
      const isMissing = at === last.at && (answer === undefined || missing.length > 0)
      ;(isMissing ? missing : messages).push(answer ?? standIn(call, suspendedHere))
    }
  }
  return { messages, missing }
}

/**
 * A history to resume: its last turn as it stands, with its calls from the first one on that nobody answered. What is
 * known of them is theirs, in call order.
 */
export interface ReopenedHistory {
  readonly messages: Array<Message>
  readonly turn: AiMessage | undefined
  readonly open: ReadonlyArray<UnansweredCall & { readonly answer: ToolMessage | undefined }>
}

/** Like {@link mend}, but the last turn stays open. A partial turn is discarded. */
export const reopen = (history: ReadonlyArray<Message>, suspension: Suspension | null): ReopenedHistory => {
  const { at, turn } = lastTurn(history)
  const isCutOff: boolean = isPartial(turn)
  const { messages, missing } = mend(isCutOff ? history.toSpliced(at, 1) : history, suspension)
  if (turn === undefined || isCutOff) return { messages: [...messages, ...missing], turn: undefined, open: [] }
  const answers = collect(history).get(at)
  const open = new Set(missing.map((answer) => answer.toolCallId))
  const suspendedAnswers = suspension?.messageId === turn.id ? suspendedCalls(suspension).answers : undefined
  return {
    messages,
    turn,
    open: callsOf(turn)
      .filter(({ id }) => open.has(id))
      .map(({ id, name }) => ({
        id,
        name,
        answer: answers?.get(id) ?? suspendedAnswers?.get(id)
      }))
  }
}
