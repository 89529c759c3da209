/**
 * Claude's own tools that the client executes (bash, text editor, memory, computer, browser). Each stands for the agent's
 * tool of its name: its calls pass the gates as all calls do.
 */
import { type ModelRequest, turnPurpose } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { ModelError } from "../../../core/ModelError.ts"
import { stringOf } from "../wire/read.ts"

const clientTypes = /^(?:bash|text_editor|memory|computer|browser)_/

const nameOf = ({ name }: JsonObject): string => stringOf(name) ?? ""

/** The names that server tools take. A request with a name twice is rejected. */
export const namesOf = (serverTools: ReadonlyArray<JsonObject>): ReadonlySet<string> => new Set(serverTools.map(nameOf))

/** Rejects a turn with a tool that the client has to execute, and for which the agent has no tool. */
export const rejectUnanswered = (
  origin: { readonly provider: string; readonly model: string },
  serverTools: ReadonlyArray<JsonObject>,
  { purpose, tools }: ModelRequest
): ModelError | undefined => {
  if (purpose !== turnPurpose) return undefined
  const isMissing = (tool: JsonObject) =>
    clientTypes.test(stringOf(tool["type"]) ?? "") && !tools.some(({ name }) => name === nameOf(tool))
  const missing = serverTools.find(isMissing)
  if (missing === undefined) return undefined
  const name = nameOf(missing)
  if (name === "") {
    const detail = `Claude's ${stringOf(missing["type"]) ?? "tool"} has no tool of the agent's: leave it out, or take a tool with a name, such as computer_20251124`
    return new ModelError({ ...origin, reason: { _tag: "Unsupported" }, detail })
  }
  return new ModelError({
    ...origin,
    reason: { _tag: "Unsupported" },
    detail: `the client executes Claude's tool ${name}, and nobody answers its calls: give the agent a tool named ${name}`
  })
}
