/** The choice of tools, for APIs without a choice of "one of these": they get a request with these tools alone. */
import type { ModelRequest, ToolChoice } from "../../../core/ChatModel.ts"

/** A choice that every API has. */
export type SimpleChoice = Exclude<ToolChoice, { readonly oneOf: ReadonlyArray<string> }>

/** A request with a choice that every API has. */
export type SimpleRequest = ModelRequest & { readonly toolChoice: SimpleChoice }

/**
 * Gives the choice among the tools of the request: APIs refuse a list with other names, and read an empty list as all
 * tools.
 */
export const choiceOf = ({ toolChoice, tools }: ModelRequest): ToolChoice => {
  if (typeof toolChoice === "string" || "tool" in toolChoice) return toolChoice
  const oneOf = tools.map(({ name }) => name).filter((name) => toolChoice.oneOf.includes(name))
  return oneOf.length === 0 ? "none" : { ...toolChoice, oneOf }
}

/** Keeps only the tools of the choice, in a request whose choice is "one of these". */
export const narrow = (request: ModelRequest): SimpleRequest => {
  const toolChoice = choiceOf(request)
  if (typeof toolChoice === "string" || "tool" in toolChoice) return { ...request, toolChoice }
  const tools = request.tools.filter(({ name }) => toolChoice.oneOf.includes(name))
  return { ...request, tools, toolChoice: toolChoice.mode ?? "required" }
}
