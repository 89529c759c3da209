/**
 * The arguments of a tool call, from the text that a model wrote.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isObject, type JsonObject } from "../../core/Json.ts"
import type { MalformedToolCall, ToolCall } from "../../core/ToolCall.ts"

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))

/** A call as it was streamed. `cut` says that the turn ended (by its length) while it may still have been written. */
export interface StreamedCall {
  readonly id: string
  readonly name: string
  readonly raw: string
  readonly cut: boolean
  readonly providerData?: JsonObject
}

const problemOf = (raw: string, cut: boolean): string =>
  cut
    ? `the arguments were cut off after ${raw.length} characters: the answer reached its length limit`
    : "the arguments are not a JSON object"

/** No arguments at all are an empty object; what does not parse is kept raw. */
export const toCall = (call: StreamedCall): Result.Result<ToolCall, MalformedToolCall> => {
  const { cut, id, name, providerData, raw } = call
  const nothing = raw.trim() === ""
  const parsed = nothing && !cut ? Result.succeed({}) : parse(raw)
  const value = Result.isSuccess(parsed) ? (parsed.success ?? {}) : undefined
  if (name !== "" && isObject(value)) {
    return Result.succeed({ id, name, arguments: value, ...(providerData === undefined ? {} : { providerData }) })
  }
  const problem = name === "" ? "the call names no tool" : problemOf(raw, cut)
  return Result.fail({ id, raw, problem, ...(name === "" ? {} : { name }) })
}

/** Sorts calls into those that can be executed and those that can't. */
export const sortCalls = (
  calls: ReadonlyArray<StreamedCall>
): { readonly toolCalls: ReadonlyArray<ToolCall>; readonly malformedToolCalls: ReadonlyArray<MalformedToolCall> } => {
  const toolCalls: Array<ToolCall> = []
  const malformedToolCalls: Array<MalformedToolCall> = []
  for (const call of calls) {
    Result.match(toCall(call), {
      onSuccess: (good) => toolCalls.push(good),
      onFailure: (bad) => malformedToolCalls.push(bad)
    })
  }
  return { toolCalls, malformedToolCalls }
}
