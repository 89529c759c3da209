/** Recognises a round that calls the same as the round before, and answers the calls that need not be made again. */
import type { AiMessage } from "../../Message.ts"
import { canonical } from "../../schema/jsonTree.ts"
import type { ToolCall } from "../../ToolCall.ts"
import { make as say, type ToolOutput } from "../../ToolOutput.ts"
import type { Live } from "../live.ts"

export interface LastRound {
  /** Its calls as one signature; empty for a round without calls, or when the model is given something new. */
  readonly signature: string
  readonly calls: ReadonlyArray<ToolCall>
  /** The ids of failed calls, and of calls that may succeed the next time. */
  readonly failed: ReadonlySet<string>
  readonly mayPass: ReadonlySet<string>
}

const signature = (call: ToolCall): string => `${call.name} ${canonical(call.arguments)}`

/** The calls of a round, in any order; empty for a round without calls. */
export const signatureOf = (calls: ReadonlyArray<ToolCall>): string =>
  calls.length === 1 && calls[0] !== undefined ? signature(calls[0]) : calls.map(signature).sort().join("\n")

/** The calls of a repeated round that do not run again, by id, with the answer that the model gets instead. */
export const notAgain = (live: Live, message: AiMessage, last: LastRound): ReadonlyMap<string, ToolOutput> => {
  const signaturesOf = (ids: ReadonlySet<string>) =>
    new Set(last.calls.filter((call) => ids.has(call.id)).map(signature))
  const failed = signaturesOf(last.failed)
  const mayPass = signaturesOf(last.mayPass)
  return new Map(
    message.toolCalls.flatMap((call) => {
      const own = signature(call)
      if (live.turn.toolset.tools.get(call.name)?.annotations.volatile === true || mayPass.has(own)) return []
      return [[call.id, failed.has(own) ? didFail : didWork]]
    })
  )
}

const didFail = say(
  "Not executed again: you made the same call in the round before, and it failed; the error is above. Change the arguments, use another tool, or answer without it.",
  { isError: true }
)

export const didWork = say(
  "Not executed again: you made the same call in the round before, and its result is above. Use that result, make another call, or answer."
)
