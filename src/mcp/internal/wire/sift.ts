/** Leaves out the tools of a list that the client would refuse the whole list for. */
import type { JSONRPCMessage, Tool } from "@modelcontextprotocol/client"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { isObject } from "../../../core/Json.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { Sdk } from "./sdk.ts"

/** The tools of a server, and why others are left out. */
export interface SiftedTools {
  readonly tools: ReadonlyArray<Tool>
  readonly problems: ReadonlyArray<string>
}

/** More problems are not told: each has a name that the server chose. */
const mostProblems = 20

const tooDeep = "it lies too deep in itself"

interface Issue {
  readonly message: string
  readonly path?: ReadonlyArray<unknown> | undefined
}

const isIssue = (value: unknown): value is Issue => isObject(value) && typeof value["message"] === "string"

const issuesOf = (result: unknown): ReadonlyArray<Issue> =>
  isObject(result) && Array.isArray(result["issues"]) ? result["issues"].filter(isIssue) : []

/** The fault of a tool: the first field that is not of the protocol; `undefined` if there is none. */
const faultOf = ({ specTypeSchemas }: Sdk, tool: unknown): string | undefined => {
  const validated = Result.try((): unknown => specTypeSchemas.Tool["~standard"].validate(tool))
  if (Result.isFailure(validated)) return tooDeep
  const result = validated.success
  if (Predicate.isPromiseLike(result)) {
    // A schema that throws is tried again by a promise, which fails in the same way.
    void result.then(undefined, () => undefined)
    return tooDeep
  }
  const [issue] = issuesOf(result)
  if (issue === undefined) return undefined
  const path = (issue.path ?? []).map((part) => String(Predicate.isObject(part) && "key" in part ? part.key : part))
  return cut(oneLine(`${path.join(".")}: ${issue.message}`), 200)
}

const nameOf = (tool: unknown): string =>
  isObject(tool) && typeof tool["name"] === "string"
    ? `the tool ${JSON.stringify(cut(oneLine(tool["name"]), 100))}`
    : "a tool without a name"

/** Takes the tools out of a message that are not of the protocol, and reports each. */
export const siftTools = (sdk: Sdk, message: JSONRPCMessage, report: (problem: string) => void): JSONRPCMessage => {
  if (!("result" in message) || !isObject(message.result) || !Array.isArray(message.result["tools"])) return message
  let problems = 0
  const tools = message.result["tools"].filter((tool: unknown) => {
    const fault = faultOf(sdk, tool)
    if (fault === undefined) return true
    problems++
    if (problems <= mostProblems) {
      report(
        `${nameOf(tool)} is left out, because its definition is not of the protocol (${fault}); its author must correct it`
      )
    }
    return false
  })
  if (problems > mostProblems) report(`${problems - mostProblems} more tools are left out for such faults`)
  return problems === 0 ? message : { ...message, result: { ...message.result, tools } }
}
