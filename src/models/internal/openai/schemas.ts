/** Tools and answer schemas as OpenAI's APIs take them, made once and kept while they stay the same. */
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import type { ToolCall } from "../../../core/ToolCall.ts"
import { adaptParameters, adaptSchema, inlineRoot, type SchemaRules } from "../schema/jsonSchema.ts"
import type { Dialect } from "../schema/toolSchema.ts"
import { toolSchema } from "../schema/toolSchema.ts"
import type { Losses } from "../turn/session.ts"
import { makeToolNames, type ToolNames } from "../turn/toolNames.ts"
import { wellFormed, wellFormedObject } from "../turn/wellFormed.ts"
import type { HostedCalls } from "./hosted.ts"

/** A request that is ready to send, and the means to read its answer. */
export interface PreparedRequest<Body> extends Losses {
  readonly body: Body
  /** The whole request, where the body goes on from the response before. */
  readonly whole?: Body | undefined
  readonly names: ToolNames
  /** Undoes the changes of strict mode in the answer. */
  readonly restore: ((answer: Json) => Json) | undefined
  /** Constraints of the answer's schema that the model is not held to. */
  readonly lost: ReadonlyArray<string>
  /** Undoes the changes of strict mode in the arguments of a call. */
  readonly restoreCall?: ((call: ToolCall) => ToolCall) | undefined
  /** Calls of the provider's own tools that wait for the client. */
  readonly hosted?: HostedCalls | undefined
}

/** Keywords that strict mode enforces. */
const strictRules: SchemaRules = {
  allRequired: true,
  keywords: new Set([
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems"
  ]),
  formats: new Set(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
}

interface Format {
  readonly name: string
  readonly schema: JsonObject
  readonly strict: boolean
}

interface OutputFormat extends Pick<PreparedRequest<unknown>, "restore" | "lost"> {
  readonly format: Format | undefined
}

const makeFormat = (rawSchema: JsonObject): OutputFormat => {
  const schema = wellFormedObject(rawSchema)
  const adapted = adaptSchema(schema, strictRules)
  if (adapted === undefined) {
    return { format: { name: "answer", schema: inlineRoot(schema), strict: false }, restore: undefined, lost: [] }
  }
  return {
    format: { name: "answer", schema: adapted.schema, strict: true },
    restore: adapted.restore,
    lost: adapted.removed
  }
}

/** Makes the function that chooses the answer format: strict if the schema allows it, else a hint. */
export const makeOutputFormat = () => {
  const cache = new WeakMap<JsonObject, OutputFormat>()
  return (schema: JsonObject | undefined): OutputFormat => {
    if (schema === undefined) return { format: undefined, restore: undefined, lost: [] }
    const format = cache.get(schema) ?? makeFormat(schema)
    cache.set(schema, format)
    return format
  }
}

const nameLength = 64

interface Toolbox extends Pick<PreparedRequest<unknown>, "restoreCall"> {
  readonly names: ToolNames
  readonly definitions: ReadonlyArray<
    Pick<ToolDefinition, "name" | "description" | "parameters"> & { readonly strict?: true }
  >
}

/** A tool as it is sent: in strict mode where its schema can be, if that is wanted. */
const writeTool = (tool: ToolDefinition, names: ToolNames, dialect: Dialect, isStrict: boolean) => {
  const schema = toolSchema(tool.parameters, dialect)
  const strict = isStrict ? adaptParameters(schema, strictRules) : undefined
  const definition = { name: names.wire(tool.name), description: wellFormed(tool.description) }
  return strict === undefined
    ? { definition: { ...definition, parameters: schema } }
    : { definition: { ...definition, parameters: strict.schema, strict: true as const }, restore: strict.restore }
}

/** Makes a function that gives the same toolbox for the same tools. */
export const makeToolbox = (dialect: Dialect, isStrict = false) => {
  let source: ReadonlyArray<ToolDefinition> | undefined
  let box: Toolbox | undefined
  return (tools: ReadonlyArray<ToolDefinition>): Toolbox => {
    const same = source?.length === tools.length && tools.every((tool, index) => tool === source?.[index])
    if (box !== undefined && same) return box
    const names = makeToolNames(tools, nameLength)
    const wireTools = tools.map((tool) => writeTool(tool, names, dialect, isStrict))
    const restores = new Map(tools.map(({ name }, index) => [name, wireTools[index]?.restore]))
    source = tools
    box = {
      names,
      definitions: wireTools.map(({ definition }) => definition),
      restoreCall: (call) => {
        const args = restores.get(call.name)?.(call.arguments)
        return isObject(args) ? { ...call, arguments: args } : call
      }
    }
    return box
  }
}
