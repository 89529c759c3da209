/**
 * Calls of OpenAI's own tools that wait for the client: commands, patches, approvals of an MCP server. Each becomes a
 * call of the agent's tool of a known name, passes its gates, and is answered in its own form.
 */
import * as Result from "effect/Result"
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import { fromUnknown, type JsonObject } from "../../../core/Json.ts"
import type { AnsweredCall } from "../turn/normalize.ts"
import { objectOf, parse, stringOf } from "../wire/read.ts"

interface Kind {
  /** The name of the agent's tool. */
  readonly tool: string
  /** Reports whether a server tool asks the client. */
  readonly asks: (tool: JsonObject) => boolean
  readonly argumentsOf: (item: JsonObject) => JsonObject
  readonly answerOf: (item: JsonObject, text: string, isError: boolean) => JsonObject
}

const kinds: { readonly [itemType: string]: Kind } = {
  shell_call: {
    tool: "shell",
    asks: ({ environment, type }) =>
      type === "shell" && (objectOf(environment) === undefined || objectOf(environment)?.["type"] === "local"),
    argumentsOf: ({ action }) => objectOf(action) ?? {},
    answerOf: ({ call_id = "" }, text, isError) => ({
      type: "shell_call_output",
      call_id,
      output: [
        {
          stdout: isError ? "" : text,
          stderr: isError ? text : "",
          outcome: { type: "exit", exit_code: isError ? 1 : 0 }
        }
      ]
    })
  },
  local_shell_call: {
    tool: "local_shell",
    asks: ({ type }) => type === "local_shell",
    argumentsOf: ({ action }) => {
      const { type: _, ...given } = objectOf(action) ?? {}
      return given
    },
    answerOf: ({ call_id = "" }, output) => ({ type: "local_shell_call_output", call_id, output })
  },
  apply_patch_call: {
    tool: "apply_patch",
    asks: ({ type }) => type === "apply_patch",
    argumentsOf: ({ operation }) => objectOf(operation) ?? {},
    answerOf: ({ call_id = "" }, output, isError) => ({
      type: "apply_patch_call_output",
      call_id,
      status: isError ? "failed" : "completed",
      output
    })
  },
  mcp_approval_request: {
    tool: "mcp_approval",
    asks: ({ require_approval, type }) => type === "mcp" && require_approval !== "never",
    argumentsOf: ({ arguments: args, name = "", server_label: server = "" }) => ({
      server,
      tool: name,
      arguments: fromUnknown(Result.getOrElse(parse(stringOf(args) ?? ""), () => args ?? {}))
    }),
    answerOf: ({ id = "" }, reason, isError) => ({
      type: "mcp_approval_response",
      approval_request_id: id,
      approve: !isError,
      ...(isError ? { reason } : {})
    })
  }
}

/**
 * The types of items that wait for the client, with the agent's tool for each. `undefined` if the agent has no such
 * tool.
 */
export type HostedCalls = ReadonlyMap<string, string | undefined>

const none: HostedCalls = new Map()

/** The calls that the server tools of a request may make of the client. */
export const hostedCalls = (
  serverTools: ReadonlyArray<JsonObject>,
  tools: ReadonlyArray<Pick<ToolDefinition, "name">>
): HostedCalls =>
  serverTools.length === 0
    ? none
    : new Map(
        Object.entries(kinds).flatMap(([type, { asks, tool }]) =>
          serverTools.some(asks) ? [[type, tools.some(({ name }) => name === tool) ? tool : undefined] as const] : []
        )
      )

/** The name that the agent's tool for a kind of item must have. */
export const toolFor = (itemType: string): string => kinds[itemType]?.tool ?? itemType

/** The arguments of a call, as JSON. */
export const hostedArguments = (itemType: string, item: JsonObject): string =>
  JSON.stringify(kinds[itemType]?.argumentsOf(item) ?? {})

/** Writes the answer to a hosted call in its own form. `undefined` for another call. */
export const hostedAnswer = ({ answer, data }: AnsweredCall): JsonObject | undefined => {
  const item = objectOf(data?.["hosted"])
  const kind = kinds[stringOf(item?.["type"]) ?? ""]
  if (item === undefined || kind === undefined) return undefined
  const text = answer.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n")
  return kind.answerOf(item, text, answer.isError)
}
