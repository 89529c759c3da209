/** The arguments of a tool call, from the text that a model wrote. */
import * as Result from "effect/Result"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import type { MalformedToolCall, ToolCall } from "../../../core/ToolCall.ts"
import { defined } from "../../../support/json/defined.ts"
import { deepest, isTooDeep } from "../schema/nesting.ts"
import { parse } from "../wire/read.ts"

/** A call as it was streamed. `cut` says that the turn ended (by its length) while it may still have been written. */
export interface StreamedCall {
  readonly id: string
  readonly name: string
  readonly raw: string
  readonly cut: boolean
  readonly providerData?: JsonObject | undefined
}

const problemOf = (raw: string, cut: boolean): string =>
  cut
    ? `the arguments were cut off after ${raw.length} characters: the answer reached its length limit`
    : "the arguments are not a JSON object"

const malformed = ({ id, name, raw }: StreamedCall, problem: string): MalformedToolCall =>
  defined({ id, raw, problem, name: name === "" ? undefined : name })

/** A parser that throws costs ten times more, so text without the shape of an object is never parsed. */
const argumentsOf = (text: string, cut: boolean): unknown => {
  if (text === "null" || (text === "" && !cut)) return {}
  return text.startsWith("{") && text.endsWith("}") ? Result.getOrElse(parse(text), () => undefined) : undefined
}

/** No arguments at all are an empty object; what does not parse is kept raw. */
export const toCall = (call: StreamedCall): Result.Result<ToolCall, MalformedToolCall> => {
  const { cut, id, name, providerData, raw } = call
  const value = argumentsOf(raw.trim(), cut)
  const tooDeep = isTooDeep(value)
  if (name !== "" && isObject(value) && !tooDeep) {
    return Result.succeed(defined({ id, name, arguments: value, providerData }))
  }
  const problem =
    name === ""
      ? "the call names no tool"
      : tooDeep
        ? `the arguments are nested deeper than ${deepest} levels`
        : problemOf(raw, cut)
  return Result.fail(malformed(call, problem))
}

/**
 * Reads the calls of one turn. It drops an exact repetition (id, name and arguments) of an earlier call. A different
 * call under a used id can't be answered, so it is not executed.
 */
export const makeCallReader = () => {
  const callsById = new Map<string, string>()
  return (call: StreamedCall): Result.Result<ToolCall, MalformedToolCall> | undefined => {
    const { id, name, raw } = call
    const callText = `${name} ${raw.trim()}`
    const before = id === "" ? undefined : callsById.get(id)
    if (before === callText) return undefined
    if (before === undefined) {
      callsById.set(id, callText)
      return toCall(call)
    }
    return Result.fail(malformed(call, "another call of the same answer has its id"))
  }
}

/** Separates executable calls from malformed ones. */
export const sortCalls = (
  calls: ReadonlyArray<StreamedCall>
): { readonly toolCalls: ReadonlyArray<ToolCall>; readonly malformedToolCalls: ReadonlyArray<MalformedToolCall> } => {
  const toolCalls: Array<ToolCall> = []
  const malformedToolCalls: Array<MalformedToolCall> = []
  const readCall = makeCallReader()
  for (const call of calls) {
    const one = readCall(call)
    if (one === undefined) continue
    Result.match(one, {
      onSuccess: (good) => toolCalls.push(good),
      onFailure: (bad) => malformedToolCalls.push(bad)
    })
  }
  return { toolCalls, malformedToolCalls }
}
