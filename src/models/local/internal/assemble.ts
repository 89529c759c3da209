/** Assembles a turn: parts of a stream, and the message in the end. */
import type { TurnPart } from "../../../core/ChatModel.ts"
import * as Content from "../../../core/Content.ts"
import * as Message from "../../../core/Message.ts"
import type { MalformedToolCall, ToolCall } from "../../../core/ToolCall.ts"
import type { Usage } from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import type { ToolNames } from "../../internal/turn/toolNames.ts"
import type { Delta } from "./codecs/Codec.ts"
import type { Finish } from "./turn.ts"

/** Makes the message of one turn while its parts go by. */
export const makeAssembler = (
  origin: { readonly provider: string; readonly model: string },
  makeId: () => string,
  names: ToolNames
) => {
  const ids = new Map<number, string>()
  const toolCalls: Array<ToolCall> = []
  const malformedToolCalls: Array<MalformedToolCall> = []
  let text = ""
  let reasoning = ""

  const idOf = (call: number): string => {
    const id = ids.get(call) ?? makeId()
    ids.set(call, id)
    return id
  }

  const take = (delta: Delta): TurnPart | undefined => {
    switch (delta._tag) {
      case "Text":
        text += delta.text
        return { _tag: "TextDelta", text: delta.text }
      case "Reasoning":
        reasoning += delta.text
        return { _tag: "ReasoningDelta", text: delta.text }
      case "CallStart":
        return { _tag: "ToolCallStart", id: idOf(delta.call), name: names.own(delta.name) }
      case "CallDelta":
        return { _tag: "ToolCallDelta", id: idOf(delta.call), delta: delta.text }
      case "Call":
        toolCalls.push({ id: idOf(delta.call), name: names.own(delta.name), arguments: delta.arguments })
        return undefined
      case "Malformed": {
        const { name, problem, raw } = delta
        malformedToolCalls.push(
          defined({ id: idOf(delta.call), name: name === undefined ? undefined : names.own(name), raw, problem })
        )
        return undefined
      }
    }
  }

  const message = (finish: Finish, usage: Usage): Message.AiMessage =>
    Message.ai(
      [
        // The mark says that this model can read it again.
        ...(reasoning === "" ? [] : [Content.reasoning(reasoning, { [origin.provider]: {} })]),
        ...(text === "" ? [] : [Content.text(text)])
      ],
      {
        id: makeId(),
        model: origin.model,
        toolCalls,
        malformedToolCalls,
        usage,
        stopReason: finish.reason === "length" ? "length" : undefined
      }
    )

  return { take, message }
}
