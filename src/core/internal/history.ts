import { type AiMessage, makeId, type Message, tool, type ToolMessage } from "../Message.ts"

/** A call that must be answered. */
interface Unanswered {
  readonly id: string
  readonly name: string
}

const callsOf = (message: AiMessage): ReadonlyArray<Unanswered> =>
  message.malformedToolCalls.length === 0
    ? message.toolCalls
    : [...message.toolCalls, ...message.malformedToolCalls.map(({ id, name }) => ({ id, name: name ?? "unknown" }))]

/** What an earlier run did not get to. */
const notExecuted = ({ id, name }: Unanswered): ToolMessage =>
  tool("This call was not executed: the run ended before it.", {
    id: makeId(),
    toolCallId: id,
    toolName: name,
    isError: true,
    source: "recovery"
  })

/**
 * A history that any provider accepts: behind every ai message exactly one answer for each of its calls, in call order,
 * and no answer without a call. What is missing at the very end is given apart, since it is new; what is missing inside
 * is put in its place. It goes over the history once a run.
 */
export const mend = (
  history: ReadonlyArray<Message>
): { readonly messages: Array<Message>; readonly missing: ReadonlyArray<ToolMessage> } => {
  const messages: Array<Message> = []
  let open: ReadonlyArray<Unanswered> = []
  const answers = new Map<string, ToolMessage>()
  const settle = (): ReadonlyArray<ToolMessage> => {
    const missing: Array<ToolMessage> = []
    for (const call of open) {
      const answer = answers.get(call.id)
      if (answer !== undefined && missing.length === 0) messages.push(answer)
      else missing.push(answer ?? notExecuted(call))
    }
    open = []
    answers.clear()
    return missing
  }
  for (const message of history) {
    if (message.role === "tool") {
      const id = message.toolCallId
      if (!answers.has(id) && open.some((call) => call.id === id)) answers.set(id, message)
      continue
    }
    if (open.length > 0) for (const answer of settle()) messages.push(answer)
    messages.push(message)
    if (message.role === "ai") open = callsOf(message)
  }
  return { messages, missing: settle() }
}

/** A history to go on from: its last turn as it stands, with the calls that nobody answered. */
export interface Reopened {
  readonly messages: Array<Message>
  readonly turn: AiMessage | undefined
  readonly open: ReadonlyArray<Unanswered>
}

/** Like {@link mend}, but the last turn stays open. What was said of a turn that did not end is dropped. */
export const reopen = (history: ReadonlyArray<Message>): Reopened => {
  const last = history.findLastIndex((message) => message.role !== "tool")
  const turn = history[last]
  const whole = (end: number) => {
    const { messages, missing } = mend(history.slice(0, end))
    return [...messages, ...missing]
  }
  if (turn?.role !== "ai") return { messages: whole(history.length), turn: undefined, open: [] }
  if (turn.stopReason === "interrupted" && callsOf(turn).length === 0) {
    return { messages: whole(last), turn: undefined, open: [] }
  }
  const calls = callsOf(turn)
  const answers = new Map<string, Message>()
  for (const message of history.slice(last + 1)) {
    if (message.role === "tool" && !answers.has(message.toolCallId)) answers.set(message.toolCallId, message)
  }
  return {
    messages: [...whole(last), turn, ...calls.flatMap((call) => answers.get(call.id) ?? [])],
    turn,
    open: calls.filter((call) => !answers.has(call.id))
  }
}
