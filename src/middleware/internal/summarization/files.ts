/**
 * Which files an agent changed, read from its tool calls.
 */
import type { Json } from "../../../core/Json.ts"
import type { Message } from "../../../core/Message.ts"
import type { ToolCall } from "../../../core/ToolCall.ts"

const changes = /write|edit|patch|create|delete|remove|move|rename|append|insert|replace/i
const keys = ["file_path", "path", "from", "to"]
const patched = /^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$/gm

/** More than this is no help to a model, and a hostile one could fill the summary with names. */
const mostFiles = 100
const longestName = 300

const isName = (value: Json | undefined): value is string =>
  typeof value === "string" && value !== "" && value.length <= longestName && !/\p{Cc}/u.test(value)

const namedIn = ({ arguments: args, name }: ToolCall): ReadonlyArray<string> => {
  if (!changes.test(name)) return []
  const named = keys.map((key) => args[key])
  const patch = args["patch"]
  const inPatch = typeof patch === "string" ? Array.from(patch.matchAll(patched), (match) => match[1]?.trim()) : []
  return [...named, ...inPatch].filter(isName)
}

/** The files that these messages changed, added to those known; the latest come last. A call that failed counts not. */
export const filesIn = (messages: ReadonlyArray<Message>, known: ReadonlyArray<string>): ReadonlyArray<string> => {
  const failed = new Set(
    messages.flatMap((message) => (message.role === "tool" && message.isError ? [message.toolCallId] : []))
  )
  const files = new Set(known)
  for (const message of messages) {
    if (message.role !== "ai") continue
    for (const call of message.toolCalls) {
      if (failed.has(call.id)) continue
      for (const name of namedIn(call)) {
        files.delete(name)
        files.add(name)
      }
    }
  }
  return [...files].slice(-mostFiles)
}
