/** The calls of a stored conversation with their results, in the place of tools. */
import * as Effect from "effect/Effect"
import * as Approval from "../../core/Approval.ts"
import type { JsonObject } from "../../core/Json.ts"
import { type Message, text as textOf, type ToolMessage } from "../../core/Message.ts"
import * as Middleware from "../../core/Middleware.ts"
import * as Ruling from "../../core/Ruling.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import { describeArguments } from "../../core/ToolCall.ts"
import * as ToolOutput from "../../core/ToolOutput.ts"
import { normaliseName } from "../../support/text/names.ts"

const name = "Replay"

const keyOf = (tool: string, args: JsonObject): string => `${normaliseName(tool)} ${canonical(args)}`

/** The results by the name and the arguments of their calls, in the order of the conversation. */
const resultsIn = (messages: ReadonlyArray<Message>): Map<string, Array<ToolMessage>> => {
  const results = new Map(
    messages.flatMap((message) => (message.role === "tool" ? [[message.toolCallId, message] as const] : []))
  )
  const recorded = new Map<string, Array<ToolMessage>>()
  for (const message of messages) {
    if (message.role !== "ai") continue
    for (const call of message.toolCalls) {
      const result = results.get(call.id)
      if (result === undefined) continue
      const key = keyOf(call.name, call.arguments)
      recorded.set(key, [...(recorded.get(key) ?? []), result])
    }
  }
  return recorded
}

interface Recording {
  /** Answers recorded calls. Asks about other calls, unless they only read. */
  readonly middleware: Middleware.AskingMiddleware
  /** Decides on requests of gates for recorded calls: the recorded result is the answer. */
  readonly answer: (requests: ReadonlyArray<Approval.Request>) => ReadonlyArray<Approval.Decision>
}

/** Makes the recording of a conversation. Each result is given once. */
export const makeRecording = (messages: ReadonlyArray<Message>): Recording => {
  const recorded = resultsIn(messages)
  const isKnown = (tool: string, args: JsonObject) => (recorded.get(keyOf(tool, args))?.length ?? 0) > 0
  const take = (tool: string, args: JsonObject) => recorded.get(keyOf(tool, args))?.shift()
  const middleware = Middleware.make({
    name,
    inherit: true,
    asks: true,
    rulings: (_, calls) =>
      Effect.sync(() => {
        // Equal calls of one round need a result each.
        const claimed = new Map<string, number>()
        return calls.map((call) => {
          const key = keyOf(call.name, call.arguments)
          const place = claimed.get(key) ?? 0
          claimed.set(key, place + 1)
          if (call.annotations.readOnly === true || place < (recorded.get(key)?.length ?? 0)) return undefined
          return Ruling.ask(name, {
            description: `${call.name} ${describeArguments(call.arguments)}`,
            reason: "This is a rerun of a conversation: the call may do for the second time what was done there."
          })
        })
      }),
    wrapToolCall: (call, next) =>
      Effect.suspend(() => {
        const result = take(call.name, call.arguments)
        return result === undefined
          ? next(call)
          : Effect.succeed(ToolOutput.make(result.content, { isError: result.isError }))
      })
  })
  const answer: Recording["answer"] = (requests) =>
    requests.flatMap((request) => {
      if (request.path.length > 1 || !isKnown(request.toolName, request.arguments)) return []
      const [result] = recorded.get(keyOf(request.toolName, request.arguments)) ?? []
      if (result === undefined) return []
      const decision: Approval.Decision = { ...Approval.respond(request, textOf(result)), byProgram: true }
      if (Approval.problemOf(request, decision) !== undefined) return []
      take(request.toolName, request.arguments)
      return [decision]
    })
  return { middleware, answer }
}
