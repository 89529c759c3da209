import { makeId, type Message, tool, type ToolMessage } from "../Message.ts"

/** A call that must be answered. */
interface Unanswered {
  readonly id: string
  readonly name: string
}

/** What an earlier run did not get to. */
export const notExecuted = ({ id, name }: Unanswered): ToolMessage =>
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
 * is put in its place. A history that is valid is copied, once a run, and nothing else.
 */
export const mend = (
  history: ReadonlyArray<Message>
): { readonly messages: Array<Message>; readonly missing: ReadonlyArray<ToolMessage> } => {
  const messages: Array<Message> = []
  let open = new Map<string, Unanswered>()
  let answers = new Map<string, ToolMessage>()
  const settle = (): ReadonlyArray<ToolMessage> => {
    const missing: Array<ToolMessage> = []
    for (const call of open.values()) {
      const answer = answers.get(call.id)
      if (answer === undefined) missing.push(notExecuted(call))
      else if (missing.length === 0) messages.push(answer)
      else missing.push(answer)
    }
    open = new Map()
    answers = new Map()
    return missing
  }
  for (const message of history) {
    if (message.role === "tool") {
      if (open.has(message.toolCallId) && !answers.has(message.toolCallId)) answers.set(message.toolCallId, message)
      continue
    }
    for (const answer of settle()) messages.push(answer)
    messages.push(message)
    if (message.role === "ai") {
      for (const call of message.toolCalls) open.set(call.id, call)
      for (const call of message.malformedToolCalls) open.set(call.id, { id: call.id, name: call.name ?? "unknown" })
    }
  }
  return { messages, missing: settle() }
}
