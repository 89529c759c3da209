/** The request of a call, with no more than its tool needs. */
import type { CallToolResult, Client, RequestOptions, Tool } from "@modelcontextprotocol/client"
import * as Predicate from "effect/Predicate"
import type { Sdk } from "./sdk.ts"

/** Sends a call, and waits for its result. */
export type Send = (
  name: string,
  args: { readonly [key: string]: unknown },
  options: RequestOptions
) => Promise<CallToolResult>

/** Results of other kinds: without content, they are not that of a call that had nothing to say. */
const others = ["task", "inputRequests", "requestState"]

const isOther = (value: unknown): boolean =>
  Predicate.isObject(value) && !("content" in value) && others.some((key) => key in value)

/** The client's own schema, except for texts that are no result of a call. */
const resultSchema = ({ specTypeSchemas }: Sdk): Sdk["specTypeSchemas"]["CallToolResult"] => {
  const standard = specTypeSchemas.CallToolResult["~standard"]
  return {
    "~standard": {
      ...standard,
      validate: (value) =>
        isOther(value) ? { issues: [{ message: "it is no result of a tool" }] } : standard.validate(value)
    }
  }
}

/**
 * Makes the function that sends calls. `callTool` of the client looks up the tool's schema of results, reads by HTTP
 * which arguments are headers, and formats an error for a schema that it tries with nothing: a quarter of the time of a
 * call. Where a tool of the last list has no such schema, and there are no headers, the request alone says the same.
 */
export const make = (sdk: Sdk, client: Client, hasHeaders: boolean) => {
  const schema = resultSchema(sdk)
  let plain: ReadonlySet<string> = new Set()
  const send: Send = (name, args, options) => {
    const params = { name, arguments: { ...args } }
    return plain.has(name)
      ? client.request({ method: "tools/call", params }, schema, options)
      : client.callTool(params, options)
  }
  return {
    send,
    listed: (tools: ReadonlyArray<Tool>): void => {
      if (!hasHeaders) plain = new Set(tools.filter((tool) => tool.outputSchema === undefined).map(({ name }) => name))
    }
  }
}
