/**
 * Decisions on tool calls: what is asked, what may be answered, and the service that answers while a run waits.
 *
 * Everything here but the service is plain JSON: a request can be shown in another process, and be decided on days
 * later (`Agent.resume`).
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Approval } from "effect-deepagents"
 *
 * const readOnlyHours = Layer.succeed(Approval.Approvals, {
 *   decide: (request) => Effect.succeed(Approval.reject(request, "Nothing is changed on weekends."))
 * })
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentState from "./AgentState.ts"
import { Json, JsonObject, stringify } from "./Json.ts"

/**
 * A possible decision: let the call run, run it with other arguments, refuse it, or answer in its place.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Choice = Schema.Literals(["approve", "edit", "reject", "respond"])
export type Choice = typeof Choice.Type

/**
 * A call that waits for a decision. `id` is the request's own: a decision names it, and holds for these arguments only.
 * `runId` is the run that asked, and `path` the lineage of its agent's names (longer for a sub-agent's call): two runs
 * of one sub-agent have the same path, and may have the same `callId`. `at` and `expiresAt` are milliseconds since the
 * epoch; after `expiresAt` a decision counts no more, and the call is asked about again. `toolDigest` is what the tool
 * promised: a decision on a tool that changed meanwhile does not count. A question of a tool has the JSON Schema of its
 * `answer`; its `callId` is its own.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Request = Schema.Struct({
  id: Schema.String,
  // Requests of earlier versions do not have it.
  runId: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  callId: Schema.String,
  path: Schema.Array(Schema.String),
  toolName: Schema.String,
  arguments: JsonObject,
  description: Schema.String,
  allow: Schema.Array(Choice),
  at: Schema.Finite,
  expiresAt: Schema.optionalKey(Schema.Finite),
  toolDigest: Schema.optionalKey(Schema.String),
  answer: Schema.optionalKey(JsonObject)
})
export interface Request extends Schema.Schema.Type<typeof Request> {}

/**
 * The decision on the request with this id. `always` asks that like calls be approved from now on, where whoever asked
 * keeps such a list. `reason` and `text` are given to the model.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Decision = Schema.Union([
  Schema.TaggedStruct("Approve", { id: Schema.String, always: Schema.optionalKey(Schema.Boolean) }),
  Schema.TaggedStruct("Edit", { id: Schema.String, arguments: JsonObject }),
  Schema.TaggedStruct("Reject", { id: Schema.String, reason: Schema.optionalKey(Schema.String) }),
  Schema.TaggedStruct("Respond", { id: Schema.String, text: Schema.String, value: Schema.optionalKey(Json) })
])
export type Decision = typeof Decision.Type

type Of = Pick<Request, "id">

/**
 * Lets the call run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const approve = ({ id }: Of, options?: { readonly always?: boolean | undefined }): Decision => ({
  _tag: "Approve",
  id,
  ...(options?.always === undefined ? {} : { always: options.always })
})

/**
 * Runs the call with other arguments, which are decoded like the model's.
 *
 * @category constructors
 * @since 0.1.0
 */
export const edit = ({ id }: Of, args: JsonObject): Decision => ({ _tag: "Edit", id, arguments: args })

/**
 * Refuses the call. The model is told, with the reason.
 *
 * @category constructors
 * @since 0.1.0
 */
export const reject = ({ id }: Of, reason?: string): Decision =>
  reason === undefined ? { _tag: "Reject", id } : { _tag: "Reject", id, reason }

/**
 * Answers the call in its place, by a text; or a question (see `Question`), by what its schema says.
 *
 * @category constructors
 * @since 0.1.0
 */
export const respond = ({ id }: Of, answer: Json): Decision =>
  typeof answer === "string"
    ? { _tag: "Respond", id, text: answer }
    : { _tag: "Respond", id, text: stringify(answer), value: answer }

/**
 * Gives the answer of a decision that is one.
 *
 * @category getters
 * @since 0.1.0
 */
export const answerOf = ({ text, value }: Extract<Decision, { readonly _tag: "Respond" }>): Json => value ?? text

const choices: { readonly [Tag in Decision["_tag"]]: Choice } = {
  Approve: "approve",
  Edit: "edit",
  Reject: "reject",
  Respond: "respond"
}

/**
 * The slot of what was approved for good in a thread, by keys of whoever asked. The whole tree of agents shares it.
 *
 * @category constants
 * @since 0.1.0
 */
export const always = AgentState.slot("approvedAlways", {
  schema: Schema.Array(Schema.String),
  initial: [],
  shared: { merge: (current, incoming) => [...new Set([...current, ...incoming])] }
})

/**
 * Gives the choice that a decision is.
 *
 * @category getters
 * @since 0.1.0
 */
export const choiceOf = (decision: Decision): Choice => choices[decision._tag]

/**
 * Decides while the run waits: a person at a terminal, a policy, another service.
 *
 * @category services
 * @since 0.1.0
 */
export class Approvals extends Context.Service<
  Approvals,
  { readonly decide: (request: Request) => Effect.Effect<Decision> }
>()("effect-deepagents/Approvals") {}
