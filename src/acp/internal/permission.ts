/** Asks a person at the client for a decision. Everything but a known option is a refusal. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Approval from "../../core/Approval.ts"
import { isObject, type Json, stringify } from "../../core/Json.ts"
import { cut } from "../../support/text/text.ts"
import { oneLine, visible } from "../../support/text/untrusted.ts"
import type * as Change from "../../view/Change.ts"
import * as Form from "../../view/Form.ts"
import type { Client } from "./client.ts"
import type { Choice, Gate } from "./model.ts"
import { withFolder } from "./paths.ts"

/** A request on its way to a person. */
export interface PermissionRequest {
  readonly client: Client
  readonly sessionId: string
  readonly cwd: string
  /** The id by which the client knows the call. */
  readonly toolCallId: string
  readonly request: Approval.Request
  readonly change: Change.Change | undefined
  readonly gate: Gate
}

type Option = Choice["options"][number]

/** Asks with options. Gives the id of a listed option; `undefined` for any other answer. */
const choose = (
  { client, sessionId }: Pick<PermissionRequest, "client" | "sessionId">,
  toolCall: Acp.ToolCallUpdate,
  options: ReadonlyArray<Option>
): Effect.Effect<string | undefined> =>
  client
    .request("session/request_permission", {
      sessionId,
      toolCall,
      options: options.map(({ id, kind, name }) => ({ optionId: id, name, kind }))
    })
    .pipe(
      Effect.map(({ outcome }) =>
        outcome.outcome === "selected" ? options.find(({ id }) => id === outcome.optionId)?.id : undefined
      ),
      Effect.orElseSucceed(() => undefined)
    )

/** Asks about something that is no call of a tool. */
export const askChoice = (client: Client, sessionId: string, toolCallId: string, choice: Choice) =>
  choose(
    { client, sessionId },
    {
      toolCallId,
      title: choice.title,
      kind: "other",
      status: "pending",
      content: [{ type: "content", content: { type: "text", text: choice.text } }]
    },
    choice.options
  )

const nobody = "the person at the editor did not allow it"

const contentOf = ({ change, cwd, request }: PermissionRequest): ReadonlyArray<Acp.ToolCallContent> =>
  change === undefined
    ? [{ type: "content", content: { type: "text", text: visible(request.description) } }]
    : [
        {
          type: "diff",
          path: withFolder(change.path, cwd),
          newText: change.after,
          ...(change.before === undefined ? {} : { oldText: change.before })
        }
      ]

/** Asks whether a call may run. */
const askApproval = Effect.fnUntraced(function* (inquiry: PermissionRequest) {
  const { gate, request, toolCallId } = inquiry
  const always = request.byPerson === true ? undefined : gate.always(request)
  const options: ReadonlyArray<Option> = [
    { id: "once", name: "Allow", kind: "allow_once" },
    ...(always === undefined
      ? []
      : [{ id: "always", name: `Always allow ${cut(visible(always.covers), 200)}`, kind: "allow_always" } as const]),
    { id: "reject", name: "Reject", kind: "reject_once" }
  ]
  const toolCall: Acp.ToolCallUpdate = {
    toolCallId,
    title: cut(oneLine(request.description), 200),
    status: "pending",
    rawInput: request.arguments,
    content: [...contentOf(inquiry)]
  }
  const choice = yield* choose(inquiry, toolCall, options)
  if (choice === "once") return Approval.approve(request)
  if (choice === "always" && always !== undefined) return yield* always.approve
  return Approval.reject(request, nobody)
})

const able: Form.Able = { many: true }

/** Asks by a form of the client. */
const askForm = Effect.fnUntraced(function* ({ client, request, sessionId, toolCallId }: PermissionRequest) {
  const answered = yield* Effect.option(client.elicit(sessionId, toolCallId, Form.make(request, able)))
  return answered._tag === "Some"
    ? Form.decisionOf(request, answered.value, able)
    : Approval.reject(request, "the editor did not ask its user")
})

/** The values that a field offers: the options of a choice, yes and no. */
const valuesOf = (field: Json): ReadonlyArray<Json> => {
  if (!isObject(field)) return []
  if (Array.isArray(field["enum"])) return field["enum"]
  return field["type"] === "boolean" ? [true, false] : []
}

const nameOf = (value: Json): string =>
  value === true ? "Yes" : value === false ? "No" : stringify(value).replaceAll(/^"|"$/g, "")

const noForms =
  "the editor has no forms, so nobody can be asked for words here. Decide by yourself, or end with the question in your answer"

/** Asks field by field, by options. A field that takes words can't be asked so. */
const askFields = Effect.fnUntraced(function* (inquiry: PermissionRequest) {
  const { request, toolCallId } = inquiry
  const { message, requestedSchema } = Form.make(request)
  const fields = Object.entries(requestedSchema.properties)
  if (fields.some(([, field]) => valuesOf(field).length === 0)) return Approval.reject(request, noForms)
  const answers: { [name: string]: Json } = {}
  for (const [name, field] of fields) {
    const values = valuesOf(field)
    const { title } = field
    const options = values.map((value, index): Option => ({
      id: `choice-${index}`,
      name: cut(visible(nameOf(value)), 200),
      kind: "allow_once"
    }))
    const question = fields.length > 1 && typeof title === "string" ? visible(title) : message
    const toolCall: Acp.ToolCallUpdate = {
      toolCallId,
      title: cut(question, 1_000),
      status: "pending",
      content: [{ type: "content", content: { type: "text", text: question } }]
    }
    const choice = yield* choose(inquiry, toolCall, [
      ...options,
      { id: "reject", name: "Don't answer", kind: "reject_once" }
    ])
    const index = options.findIndex(({ id }) => id === choice)
    const value = values[index]
    if (value === undefined) return Approval.reject(request, "the person did not answer")
    answers[name] = value
  }
  return Form.decisionOf(request, { action: "accept", content: answers })
})

/** Tells whether a request is a question of a tool, and no call that may run or not. */
const isQuestion = ({ allow, answer }: Approval.Request): boolean =>
  (answer !== undefined && allow.includes("respond")) || !allow.includes("approve")

/** Asks the person at the client. A client that dies, fails or answers nonsense refuses. */
export const askPerson = (inquiry: PermissionRequest): Effect.Effect<Approval.Decision> => {
  if (!isQuestion(inquiry.request)) return askApproval(inquiry)
  return Predicate.isObject(inquiry.client.can().elicitation?.form) ? askForm(inquiry) : askFields(inquiry)
}
