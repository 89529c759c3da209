/**
 * Calls of OpenAI's own tools that wait for the client: commands, patches, texts in a grammar, actions on a screen,
 * searches for tools, approvals of an MCP server. Each becomes a call of the agent's tool of a known name, passes its
 * gates, and is answered in its own form.
 */
import * as Result from "effect/Result"
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import { fromUnknown, type JsonObject } from "../../../core/Json.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import type { Answer, AnsweredCall } from "../turn/normalize.ts"
import { objectOf, objectsOf, parse, stringOf } from "../wire/read.ts"
import { imageUrl } from "./media.ts"

/** A kind of item that a tool of OpenAI's makes, and that the client may have to answer. */
interface Kind {
  /** The agent's tool that stands for a server tool, which is then left out of the agent's own. */
  readonly standsFor: (tool: JsonObject) => string | undefined
  /** The agent's tool that answers an item; `undefined` if OpenAI answers it. */
  readonly toolOf: (item: JsonObject, serverTools: ReadonlyArray<JsonObject>) => string | undefined
  readonly argumentsOf: (item: JsonObject) => JsonObject
  readonly answerOf: (item: JsonObject, answer: Answer) => JsonObject
}

const isLocalShell = ({ environment, type }: JsonObject): boolean =>
  type === "shell" && (objectOf(environment) === undefined || objectOf(environment)?.["type"] === "local")

const textOf = ({ content }: Answer): string =>
  content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n")

/** The last picture of an answer, as the screen after the actions. */
const screenOf = ({ content }: Answer): JsonObject | undefined => {
  const source = content.findLast((block) => block.type === "image")?.source
  if (source === undefined) return undefined
  return source.kind === "fileId" ? { file_id: source.fileId } : { image_url: imageUrl(source) }
}

/** A black pixel: the API takes no answer without a screen. */
const noScreen =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

const kinds: { readonly [itemType: string]: Kind } = {
  shell_call: {
    standsFor: (tool) => (isLocalShell(tool) ? "shell" : undefined),
    toolOf: (_, serverTools) => (serverTools.some(isLocalShell) ? "shell" : undefined),
    argumentsOf: ({ action }) => objectOf(action) ?? {},
    answerOf: ({ call_id = "" }, answer) => ({
      type: "shell_call_output",
      call_id,
      output: [
        {
          stdout: answer.isError ? "" : textOf(answer),
          stderr: answer.isError ? textOf(answer) : "",
          outcome: { type: "exit", exit_code: answer.isError ? 1 : 0 }
        }
      ]
    })
  },
  local_shell_call: {
    standsFor: ({ type }) => (type === "local_shell" ? "local_shell" : undefined),
    toolOf: () => "local_shell",
    argumentsOf: ({ action }) => {
      const { type: _, ...given } = objectOf(action) ?? {}
      return given
    },
    answerOf: ({ call_id = "" }, answer) => ({ type: "local_shell_call_output", call_id, output: textOf(answer) })
  },
  apply_patch_call: {
    standsFor: ({ type }) => (type === "apply_patch" ? "apply_patch" : undefined),
    toolOf: () => "apply_patch",
    argumentsOf: ({ operation }) => objectOf(operation) ?? {},
    answerOf: ({ call_id = "" }, answer) => ({
      type: "apply_patch_call_output",
      call_id,
      status: answer.isError ? "failed" : "completed",
      output: textOf(answer)
    })
  },
  custom_tool_call: {
    standsFor: ({ name, type }) => (type === "custom" ? stringOf(name) : undefined),
    toolOf: ({ name }) => stringOf(name) ?? "",
    argumentsOf: ({ input }) => ({ input: stringOf(input) ?? "" }),
    answerOf: ({ call_id = "" }, answer) => ({ type: "custom_tool_call_output", call_id, output: textOf(answer) })
  },
  computer_call: {
    standsFor: ({ type }) => (type === "computer" || type === "computer_use_preview" ? "computer" : undefined),
    toolOf: () => "computer",
    argumentsOf: ({ action, actions, pending_safety_checks: checks }) => ({
      actions: Array.isArray(actions) ? actions : action === undefined ? [] : [action],
      ...(Array.isArray(checks) && checks.length > 0 ? { pending_safety_checks: checks } : {})
    }),
    // A call that ran passed its gates, which saw the checks.
    answerOf: ({ call_id = "", pending_safety_checks: checks }, answer) => ({
      type: "computer_call_output",
      call_id,
      output: { type: "computer_screenshot", ...(screenOf(answer) ?? { image_url: noScreen }) },
      ...(!answer.isError && Array.isArray(checks) && checks.length > 0 ? { acknowledged_safety_checks: checks } : {})
    })
  },
  tool_search_call: {
    standsFor: ({ execution, type }) => (type === "tool_search" && execution === "client" ? "tool_search" : undefined),
    toolOf: ({ execution }) => (execution === "client" ? "tool_search" : undefined),
    argumentsOf: ({ arguments: args }) => objectOf(args) ?? {},
    answerOf: ({ call_id = "" }, answer) => ({
      type: "tool_search_output",
      call_id,
      execution: "client",
      status: answer.isError ? "incomplete" : "completed",
      tools: objectsOf(Result.getOrElse(parse(textOf(answer)), () => []))
    })
  },
  mcp_approval_request: {
    standsFor: ({ require_approval, type }) =>
      type === "mcp" && require_approval !== "never" ? "mcp_approval" : undefined,
    toolOf: () => "mcp_approval",
    argumentsOf: ({ arguments: args, name = "", server_label: server = "" }) => ({
      server,
      tool: name,
      arguments: fromUnknown(Result.getOrElse(parse(stringOf(args) ?? ""), () => args ?? {}))
    }),
    answerOf: ({ id = "" }, answer) => ({
      type: "mcp_approval_response",
      approval_request_id: id,
      approve: !answer.isError,
      ...(answer.isError ? { reason: textOf(answer) } : {})
    })
  }
}

const kindOf = (item: JsonObject | undefined): Kind | undefined => valueAt(kinds, stringOf(item?.["type"]))

/** The items that wait for the client, and the agent's tools that answer them. */
export interface HostedCalls {
  /** The names of the agent's tools that server tools stand for. */
  readonly replaced: ReadonlySet<string>
  /** The name of the tool that answers an item. `undefined` for an item that OpenAI answers. */
  readonly toolOf: (item: JsonObject) => string | undefined
  /** False if the agent has no tool of the name. */
  readonly has: (tool: string) => boolean
}

/** The name of no tool, for items whose form of answer is unknown. */
const nobody = ""

/** An item of an unknown kind that says itself that the client executes it. */
const waitsItself = ({ execution, type }: JsonObject): boolean =>
  execution === "client" && stringOf(type)?.endsWith("_call") === true

/** Finds who answers the items of server tools. */
export const hostedCalls = (
  serverTools: ReadonlyArray<JsonObject>,
  tools: ReadonlyArray<Pick<ToolDefinition, "name">>
): HostedCalls => {
  const ownNames = new Set(tools.map(({ name }) => name))
  const standIns = serverTools.flatMap((tool) => Object.values(kinds).flatMap(({ standsFor }) => standsFor(tool) ?? []))
  return {
    replaced: new Set(standIns.filter((name) => ownNames.has(name))),
    toolOf: (item) => {
      const kind = kindOf(item)
      return kind === undefined ? (waitsItself(item) ? nobody : undefined) : kind.toolOf(item, serverTools)
    },
    has: (tool) => ownNames.has(tool)
  }
}

/** The arguments of a call, as JSON. */
export const hostedArguments = (item: JsonObject): string => JSON.stringify(kindOf(item)?.argumentsOf(item) ?? {})

/** Writes the answer to a hosted call in its own form. `undefined` for another call. */
export const hostedAnswer = ({ answer, data }: AnsweredCall): JsonObject | undefined => {
  const item = objectOf(data?.["hosted"])
  return item === undefined ? undefined : kindOf(item)?.answerOf(item, answer)
}
