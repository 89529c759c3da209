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
