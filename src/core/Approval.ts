/**
 * Requests for decisions on tool calls, the decisions, and the service that decides while a run waits.
 *
 * Requests and decisions are plain JSON, so another process can show a request and decide days later (`Agent.resume`).
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
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { defined } from "../support/json/defined.ts"
import { sha256Sync } from "../support/store/sha256.ts"
import { cut } from "../support/text/text.ts"
import * as AgentState from "./AgentState.ts"
import { Json, JsonObject, stringify } from "./Json.ts"
import { fromJsonSchema } from "./schema/arguments.ts"
import { canonical } from "./schema/jsonTree.ts"

/** A possible decision: let the call run, run it with other arguments, refuse it, or answer in its place. */
export const Choice = Schema.Literals(["approve", "edit", "reject", "respond"])
export type Choice = typeof Choice.Type

/**
 * A call that waits for a decision.
 *
 * - `id`: the request's own id. A decision names it, and counts for these arguments only
 * - `runId`, `path`, `callId`: the run that asked, the names of its agent and the agents above, and the call (a tool's
 *   question has an id of its own). Two runs of one sub-agent have the same path, and may have the same `callId`
 * - `at`, `expiresAt`: milliseconds since the epoch. A decision after `expiresAt` is ignored
 * - `toolDigest`: the digest of the tool's definition. A decision on a changed tool is ignored
 * - `answer`: the JSON Schema of the answer to a tool's question
 * - `rule`: the name of the rule that asked
 * - `deciders`: the principals who may decide, by id or as `role:` and a role
 * - `byPerson`: no program may decide in a person's place, so a classifier ignores the request
 * - `editsFiles`: the annotation of the tool
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
  answer: Schema.optionalKey(JsonObject),
  rule: Schema.optionalKey(Schema.String),
  deciders: Schema.optionalKey(Schema.Array(Schema.String)),
  byPerson: Schema.optionalKey(Schema.Boolean),
  editsFiles: Schema.optionalKey(Schema.Boolean)
})
export interface Request extends Schema.Schema.Type<typeof Request> {}

/**
 * The `rule` of requests on which time decides, as a tool that waits makes them: nobody is asked, though a person may
 * decide earlier.
 */
export const byTime = "time"

/**
 * Somebody who decides: a person, or a program in a person's place. The page, chat or terminal that receives a decision
 * vouches for it. A decision from elsewhere is as trustworthy as its signature (`Tamper` of `effect-deepagents/rules`).
 */
export const Principal = Schema.Struct({ id: Schema.String, roles: Schema.optionalKey(Schema.Array(Schema.String)) })
export interface Principal extends Schema.Schema.Type<typeof Principal> {}

/** The provenance of a decision, and of the request that it is on. */
const provenance = {
  id: Schema.String,
  by: Schema.optionalKey(Principal),
  byProgram: Schema.optionalKey(Schema.Boolean),
  at: Schema.optionalKey(Schema.Finite),
  rule: Schema.optionalKey(Schema.String),
  digest: Schema.optionalKey(Schema.String)
}

/** The call runs. `always` asks that like calls be approved from now on, if the asking middleware keeps such a list. */
const Approve = Schema.TaggedStruct("Approve", { ...provenance, always: Schema.optionalKey(Schema.Boolean) })
interface Approve extends Schema.Schema.Type<typeof Approve> {}

/** The call runs with these arguments, if they decode. */
const Edit = Schema.TaggedStruct("Edit", { ...provenance, arguments: JsonObject })
interface Edit extends Schema.Schema.Type<typeof Edit> {}

/** The call does not run; `reason` is given to the model. */
const Reject = Schema.TaggedStruct("Reject", { ...provenance, reason: Schema.optionalKey(Schema.String) })
interface Reject extends Schema.Schema.Type<typeof Reject> {}

const Respond = Schema.TaggedStruct("Respond", {
  ...provenance,
  text: Schema.String,
  value: Schema.optionalKey(Json)
})
/** The call does not run; the model reads `text` in its place. `value` is the answer to a question. */
export interface Respond extends Schema.Schema.Type<typeof Respond> {}

/**
 * A decision on the request with this id. `by` is who decided; `byProgram` marks a program in a person's place, which
 * does not count on a request with `byPerson`. `digest` is the {@link digest} of the shown request: a decision with
 * another one is refused. The run adds the time `at`, the `rule` that asked and the digest if they are missing.
 */
export const Decision = Schema.Union([Approve, Edit, Reject, Respond])
export type Decision = Approve | Edit | Reject | Respond

/**
 * Computes the digest of a request as people see it: the tool and its definition, the arguments, the description, the
 * possible decisions and deciders.
 */
export const digest = (request: Request): string => {
  const { allow, answer, arguments: args, deciders, description, id, path, rule, runId, toolDigest, toolName } = request
  const fields = [id, runId, path, toolName, args, description, allow, toolDigest, answer, rule, deciders]
  // Requests of earlier versions do not have the mark, and keep their digest.
  const marks = request.byPerson === undefined ? [] : [request.byPerson]
  return sha256Sync(canonical([...fields, ...marks].map((part) => part ?? null)))
}

/** Adds the principal and the digest to a decision on a shown request, and the time and the rule if they are set. */
export const decidedBy = (
  decision: Decision,
  request: Request,
  who: { readonly by: Principal; readonly at?: number | undefined; readonly rule?: string | undefined }
): Decision => ({ ...decision, digest: digest(request), ...defined({ by: who.by, at: who.at, rule: who.rule }) })

/** Tells whether a principal may decide on a request. */
export const mayDecide = (
  { deciders }: { readonly deciders?: ReadonlyArray<string> | undefined },
  by: Principal | undefined
): boolean => {
  if (deciders === undefined) return true
  if (by === undefined) return false
  // Who may choose an id must not choose a role by it.
  const ids = by.id.startsWith("role:") ? [] : [by.id]
  return [...ids, ...(by.roles ?? []).map((role) => `role:${role}`)].some((one) => deciders.includes(one))
}

/** The reason that an answer does not fit its question. */
const misfitOf = ({ answer: schema, description, id }: Request, decision: Decision): string | undefined => {
  if (schema === undefined || decision._tag !== "Respond") return undefined
  const { $defs, ...plain } = schema
  const { decode } = fromJsonSchema({
    type: "object",
    properties: { answer: plain },
    required: ["answer"],
    ...($defs === undefined ? {} : { $defs })
  })
  const decoded = decode({ answer: answerOf(decision) })
  return Result.isResult(decoded) && Result.isFailure(decoded)
    ? `the answer to "${cut(description, 80)}" (id "${id}") does not fit:\n${problemsIn(decoded.failure.message)}`
    : undefined
}

const problemsIn = (message: string): string =>
  message
    .split("\n")
    .filter((line) => line.startsWith("- "))
    .join("\n")

/** The reason that a decision does not count on its request: its choice, its principal, its digest or its answer. */
export const problemOf = (request: Request, decision: Decision): string | undefined => {
  const { by, digest: shownDigest } = decision
  const choice = choiceOf(decision)
  if (!request.allow.includes(choice)) {
    return `"${choice}" is not allowed for "${request.toolName}"; choose one of ${request.allow.join(", ")}`
  }
  if (!mayDecide(request, by)) {
    const who = by === undefined ? "a decision without a name" : `"${by.id}"`
    return `"${request.toolName}" (id "${request.id}") may be decided by ${request.deciders?.join(", ") ?? ""}, not by ${who}`
  }
  if (request.byPerson === true && decision.byProgram === true) {
    return `"${request.toolName}" (id "${request.id}") is for a person to decide on, and not for a program`
  }
  return shownDigest === undefined || shownDigest === digest(request)
    ? misfitOf(request, decision)
    : `the decision on "${request.toolName}" (id "${request.id}") was made on an earlier form of the request; look at the request, and decide again`
}

/** Completes a decision for storage: the time, the rule that asked, the digest of the request. */
export const recorded = (request: Request, decision: Decision, now: number): Decision => ({
  ...decision,
  at: decision.at ?? now,
  digest: decision.digest ?? digest(request),
  ...defined({ rule: decision.rule ?? request.rule })
})

type Of = Pick<Request, "id">

/** Lets the call run. */
export const approve = (
  { id }: Of,
  options?: {
    /** Approves all later calls like this one. Default: `false`. */
    readonly always?: boolean | undefined
  }
): Decision => ({
  _tag: "Approve",
  id,
  ...defined({ always: options?.always })
})

/** Runs the call with other arguments, which are decoded like the model's. */
export const edit = ({ id }: Of, args: JsonObject): Decision => ({ _tag: "Edit", id, arguments: args })

/** Refuses the call. The model is told, with the reason. */
export const reject = ({ id }: Of, reason?: string): Decision =>
  reason === undefined ? { _tag: "Reject", id } : { _tag: "Reject", id, reason }

/** Answers the call in its place, by a text; or a question (see `Question`), according to its schema. */
export const respond = ({ id }: Of, answer: Json): Decision =>
  typeof answer === "string"
    ? { _tag: "Respond", id, text: answer }
    : { _tag: "Respond", id, text: stringify(answer), value: answer }

/** Gives the answer of a decision that is one. */
export const answerOf = ({ text, value }: Respond): Json => value ?? text

const choices: { readonly [Tag in Decision["_tag"]]: Choice } = {
  Approve: "approve",
  Edit: "edit",
  Reject: "reject",
  Respond: "respond"
}

/**
 * The slot of the approvals for good in a thread. Their keys are chosen by the source that asked. All agents of a tree
 * share it.
 */
export const always = AgentState.slot("approvedAlways", {
  schema: Schema.Array(Schema.String),
  initial: [],
  shared: { merge: (current, incoming) => [...new Set([...current, ...incoming])] },
  ifTampered: []
})

/** Gives the choice that a decision is. */
export const choiceOf = (decision: Decision): Choice => choices[decision._tag]

/** Decides while the run waits: a person at a terminal, a policy, another service. */
export class Approvals extends Context.Service<
  Approvals,
  {
    readonly decide: (request: Request) => Effect.Effect<Decision>
    /**
     * Reports whether a request is left to a later decision: a run that can be suspended ends with it, as without
     * `Approvals`. `decide` gets all other requests. Default: none is left.
     */
    readonly defers?: ((request: Request) => Effect.Effect<boolean>) | undefined
  }
>()("effect-deepagents/Approvals") {}
