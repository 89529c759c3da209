/** Tool definitions, both ways: name, description, JSON Schema and annotations of an `effect/ai` tool. */
import { defaultCodecTransformer } from "effect/ai/LanguageModel"
import * as AiTool from "effect/ai/Tool"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { ToolDefinition } from "../../../../core/ChatModel.ts"
import { isObject, type JsonObject } from "../../../../core/Json.ts"
import type { Annotations } from "../../../../core/Tool.ts"

/** An object of whatever keys. */
const anyObject = { type: "object" }

/** A schema without a JSON form leaves the check of the arguments to the tool itself. */
const parametersOf = (tool: AiTool.Any): JsonObject => {
  const schema = Result.getOrElse(
    Result.try(() => AiTool.getJsonSchema(tool, { transformer: defaultCodecTransformer })),
    () => anyObject
  )
  const whole: unknown = { ...anyObject, ...schema }
  return isObject(whole) ? whole : anyObject
}

/**
 * Reads the hints of an `effect/ai` tool with its defaults: destructive and open-world. A read-only tool is not
 * destructive.
 */
const annotationsOf = (tool: AiTool.Any): Annotations => {
  const readOnly = Context.get(tool.annotations, AiTool.Readonly)
  return {
    readOnly,
    destructive: !readOnly && Context.get(tool.annotations, AiTool.Destructive),
    idempotent: Context.get(tool.annotations, AiTool.Idempotent),
    openWorld: Context.get(tool.annotations, AiTool.OpenWorld)
  }
}

/** An `effect/ai` tool as a model of ours is told about it. The title stands in for a description that is missing. */
export const definitionOf = (tool: AiTool.Any): ToolDefinition => ({
  name: tool.name,
  description:
    AiTool.getDescription(tool) ?? Option.getOrElse(Context.getOption(tool.annotations, AiTool.Title), () => ""),
  parameters: parametersOf(tool),
  annotations: annotationsOf(tool)
})

/**
 * Writes our hints as `effect/ai` annotations. A missing hint keeps the pessimistic default. A read-only tool is not
 * destructive. Strict mode is off, because it requires another dialect of schemas.
 */
export const toAnnotations = ({
  destructive,
  idempotent,
  openWorld,
  readOnly
}: Annotations): Context.Context<never> => {
  const harmless = readOnly === true ? false : undefined
  const hints = [
    [AiTool.Readonly, readOnly],
    [AiTool.Destructive, destructive ?? harmless],
    [AiTool.Idempotent, idempotent],
    [AiTool.OpenWorld, openWorld]
  ] as const
  return hints.reduce(
    (context, [key, value]) => (value === undefined ? context : Context.add(context, key, value)),
    Context.add(Context.empty(), AiTool.Strict, false)
  )
}
