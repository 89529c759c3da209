/** Notices a model that is offered tools and calls none: a small one may never have learned to. */
import type { TurnPart } from "../../../core/ChatModel.ts"
import type { AiMessage } from "../../../core/Message.ts"
import type { Origin } from "./errors.ts"

/** Turns without a call after which it is said, of a model whose template has tools, and of one whose has not. */
const patience = { known: 3, unknown: 1 } as const

/** Looks at each answer to a person; gives the warning once, and none after a call. */
export const makeCallWatch = ({ model, provider }: Origin, template: string) => {
  const isKnown = template.includes("tool") || template.includes("function")
  let turnsLeft: number = isKnown ? patience.known : patience.unknown
  return (isOffered: boolean, { malformedToolCalls, toolCalls }: AiMessage): TurnPart | undefined => {
    if (!isOffered || turnsLeft === 0) return undefined
    turnsLeft = toolCalls.length + malformedToolCalls.length > 0 ? 0 : turnsLeft - 1
    if (turnsLeft > 0 || toolCalls.length + malformedToolCalls.length > 0) return undefined
    const why = isKnown ? "" : ", and its chat template has no tools"
    const message = `${provider}/${model} was offered tools and called none${why}; take a model that was made for tools, or demand a call by \`toolChoice\`.`
    return { _tag: "Warning", code: "tools-not-called", message }
  }
}

/** See {@link makeCallWatch}. */
export type CallWatch = ReturnType<typeof makeCallWatch>
