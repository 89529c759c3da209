/** Says once what each run of a chat would say again. */
import type { AgentEvent } from "../../../core/AgentEvent.ts"

type Warning = Extract<AgentEvent, { readonly _tag: "Warning" }>

/** Makes the memory of a chat. It reports whether a warning about the facts of a model was told before. */
export const makeIsToldWarning = () => {
  const messages = new Set<string>()
  return ({ code, message }: Warning): boolean => {
    if (code !== "model-facts") return false
    const isTold = messages.has(message)
    messages.add(message)
    return isTold
  }
}
