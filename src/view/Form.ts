/**
 * Flat forms for approvals and questions, and the decisions in their answers. Protocols of agents ask a person so.
 *
 * ```ts
 * import { Approval } from "effect-deepagents"
 * import { Form } from "effect-deepagents/view"
 *
 * declare const request: Approval.Request
 *
 * const form = Form.make(request)
 * const decision = Form.decisionOf(request, { action: "accept", content: { decision: "approve" } })
 * ```
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Approval from "../core/Approval.ts"
import { isObject, type Json, type JsonObject } from "../core/Json.ts"
import { cut } from "../support/text/text.ts"
import { quote, visible } from "../support/text/untrusted.ts"

/** A form: a message, and the fields of the answer. */
export interface Form {
  readonly message: string
  readonly requestedSchema: {
    readonly type: "object"
    readonly properties: { readonly [name: string]: JsonObject }
    readonly required: ReadonlyArray<string>
  }
}

/** The answer of a client, by any protocol. */
export interface ClientAnswer {
  readonly action?: unknown
  readonly content?: unknown
}

/** What a client can show beside texts, numbers, yes or no, and a choice of one. */
export interface Able {
  /** The client shows a choice of several options. Default: `false`. */
  readonly many?: boolean | undefined
}

const primitives = new Set(["string", "number", "integer", "boolean"])

const isTexts = (value: Json | undefined): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every(Predicate.isString)

/** Makes a field for the client. Returns `undefined` for a schema that clients can't show. */
const fieldOf = (schema: Json | undefined, able: Able): JsonObject | undefined => {
  if (!isObject(schema)) return undefined
  const { default: preset, description, items, title, type } = schema
  const metadata = {
    ...(preset === undefined || typeof preset === "object" ? {} : { default: preset }),
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {})
  }
  const options = schema["enum"]
  if (isTexts(options)) return { ...metadata, type: "string", enum: options }
  if (type === "array" && able.many === true && isObject(items) && isTexts(items["enum"])) {
    return { ...metadata, type: "array", items: { type: "string", enum: items["enum"] } }
  }
  return typeof type === "string" && primitives.has(type) ? { ...metadata, type } : undefined
}

const fieldsOf = (schema: JsonObject, able: Able): Form["requestedSchema"] | undefined => {
  const { properties, required, type } = schema
  if (type !== "object" || !isObject(properties)) return undefined
  const fields = Object.entries(properties).map(([name, each]) => [name, fieldOf(each, able)] as const)
  const usableFields = fields.flatMap(([name, field]) => (field === undefined ? [] : [[name, field] as const]))
  if (usableFields.length === 0 || usableFields.length < fields.length) return undefined
  const needed = Array.isArray(required) ? required.filter(Predicate.isString) : []
  return { type: "object", properties: Object.fromEntries(usableFields), required: needed }
}

const one = (field: JsonObject): Form["requestedSchema"] => ({
  type: "object",
  properties: { answer: field },
  required: ["answer"]
})

const asJson: JsonObject = { type: "string", description: "the answer, as JSON if it has parts" }

const decision: Form["requestedSchema"] = {
  type: "object",
  properties: {
    decision: { type: "string", enum: ["approve", "reject"], description: "whether this may be done" },
    reason: { type: "string", description: "for a rejection: why, for the model" }
  },
  required: ["decision"]
}

const textLimit = 4_000

const isQuestion = ({ allow, answer }: Approval.Request): boolean => answer !== undefined || !allow.includes("approve")

/** Makes the form of a request. It quotes the words of a model. */
export const make = (request: Approval.Request, able: Able = {}): Form => {
  const { answer, arguments: args, description, toolName } = request
  const details = cut(JSON.stringify(args, null, 2), textLimit)
  if (!isQuestion(request)) {
    const message = `${visible(description)}\nMay the tool ${toolName} be called with this?\n${quote(details)}`
    return { message, requestedSchema: decision }
  }
  const { answer: _, question: __, ...rest } = args
  const more = Object.keys(rest).length === 0 ? "" : `\n${quote(cut(JSON.stringify(rest, null, 2), textLimit))}`
  const schema = answer ?? {}
  return {
    message: `${visible(description)}${more}`,
    requestedSchema: fieldsOf(schema, able) ?? one(fieldOf(schema, able) ?? asJson)
  }
}

const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** Parses JSON. Any other text is the value itself. */
const parseValue = (text: string): Json => Result.getOrElse(decodeJson(text), () => text)

/** Turns an answer into a decision. */
export const decisionOf = (
  request: Approval.Request,
  { action, content }: ClientAnswer,
  able: Able = {}
): Approval.Decision => {
  if (action !== "accept")
    return Approval.reject(request, action === "decline" ? "the person declined" : "nobody answered")
  const fields = isObject(content) ? content : {}
  if (!isQuestion(request)) {
    const { decision: verdict, reason } = fields
    return verdict === "approve"
      ? Approval.approve(request)
      : Approval.reject(request, typeof reason === "string" && reason !== "" ? reason : undefined)
  }
  const schema = request.answer ?? {}
  if (fieldsOf(schema, able) !== undefined) return Approval.respond(request, fields)
  const answer = fields["answer"] ?? null
  const isText = fieldOf(schema, able) !== undefined || typeof answer !== "string"
  return Approval.respond(request, isText ? answer : parseValue(answer))
}
