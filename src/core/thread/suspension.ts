/** The suspension of a run: the requests that wait, the decisions on them, the sub-agents inside. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AgentState from "../AgentState.ts"
import { choiceOf, Decision, problemOf, Request } from "../Approval.ts"
import { Json, type JsonObject } from "../Json.ts"
import { Message, ToolMessage } from "../Message.ts"
import { canonical } from "../schema/jsonTree.ts"
import { Usage } from "../Usage.ts"

/** The progress of a sub-agent inside a call that is open, as earlier versions kept it. */
const Child = Schema.Struct({
  agent: Schema.String,
  messages: Schema.Array(Message),
  state: Schema.Record(Schema.String, Json),
  usage: Usage,
  rounds: Schema.Finite
})
export type Child = typeof Child.Type

/**
 * Why a run is suspended: the turn whose calls wait, the requests about them and inside them, and the decisions so far.
 *
 * - `waiting`: the calls in which something waits
 * - `answers`: results of finished calls behind a waiting call
 * - `unknown`: calls that an earlier run may have begun. While the turn is resumed, every call without an answer
 */
export const Suspension = Schema.Struct({
  messageId: Schema.String,
  requests: Schema.Array(Request),
  decisions: Schema.Array(Decision),
  // The children that waited in them, as earlier versions kept them.
  children: Schema.optionalKey(Schema.Record(Schema.String, Schema.Array(Child))),
  waiting: Schema.optionalKey(Schema.Array(Schema.String)),
  answers: Schema.Array(ToolMessage),
  // Threads of earlier versions do not have it.
  unknown: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))
})
export type Suspension = typeof Suspension.Type

/** The slot of the suspension: an agent's own. */
export const suspension = AgentState.slot<Suspension | null, unknown>("suspension", {
  schema: Schema.NullOr(Suspension),
  initial: null
})

/** True for the names of the slots that have a value only while a call, or a program, is open. */
export const isOpenCallSlot = (slot: string): boolean => slot === suspension.name || slot.startsWith("inside/")

export const waitingCalls = ({ children, waiting }: Suspension): ReadonlyArray<string> =>
  waiting ?? Object.keys(children ?? {})

export const openRequests = ({ decisions, requests }: Suspension): ReadonlyArray<Request> => {
  const decided = new Set(decisions.map((decision) => decision.id))
  return requests.filter((request) => !decided.has(request.id))
}

/** Tells whether two decisions are of the same content, whoever made them and when. */
const isSame = (left: Decision, right: Decision): boolean => {
  const [one, other] = [left, right].map(
    ({ at: _at, by: _by, byProgram: _byProgram, digest: _digest, rule: _rule, ...content }) => canonical(content)
  )
  return one === other
}

/** Adds decisions. Repeating a decision has no effect; a decision that does not fit fails with its problem. */
export const decide = (
  current: Suspension | null,
  decisions: ReadonlyArray<Decision>
): Result.Result<Suspension | null, string> => {
  const requests = new Map(current?.requests.map((request) => [request.id, request]))
  const decided = new Map(current?.decisions.map((decision) => [decision.id, decision]))
  for (const decision of decisions) {
    const request = requests.get(decision.id)
    const choice = choiceOf(decision)
    if (request === undefined) {
      return Result.fail(
        `no request waits for a decision with the id "${decision.id}": it belongs to another run, was carried out, or is void after a new input`
      )
    }
    const problem = problemOf(request, decision)
    if (problem !== undefined) return Result.fail(problem)
    const before = decided.get(decision.id)
    if (before !== undefined && !isSame(before, decision)) {
      return Result.fail(
        `two decisions on "${request.toolName}" (id "${decision.id}") contradict each other: "${choiceOf(before)}", then "${choice}"; give one`
      )
    }
    decided.set(decision.id, before ?? decision)
  }
  return Result.succeed(current === null ? null : { ...current, decisions: [...decided.values()] })
}

interface Index {
  readonly requests: ReadonlyMap<string, ReadonlyArray<Request>>
  readonly decisions: ReadonlyMap<string, Decision>
}

const indexes = new WeakMap<Suspension, Index>()

/** The requests of a suspension by call and its decisions by request: one turn may have thousands of them. */
const indexOf = (current: Suspension): Index => {
  const cachedIndex = indexes.get(current)
  if (cachedIndex !== undefined) return cachedIndex
  const requests = new Map<string, Array<Request>>()
  for (const request of current.requests) {
    const others = requests.get(request.callId)
    if (others === undefined) requests.set(request.callId, [request])
    else others.push(request)
  }
  const index = { requests, decisions: new Map(current.decisions.map((decision) => [decision.id, decision])) }
  indexes.set(current, index)
  return index
}

/** Finds the first request about a call with these arguments that `counts` and is not `settled`. */
export const requestFor = (
  current: Suspension | null,
  path: ReadonlyArray<string>,
  callId: string,
  args: JsonObject,
  settled?: ReadonlySet<string>,
  counts?: (request: Request, decision: Decision | undefined) => boolean
): Request | undefined =>
  current === null
    ? undefined
    : indexOf(current)
        .requests.get(callId)
        ?.find(
          (request) =>
            settled?.has(request.id) !== true &&
            request.path.length === path.length &&
            canonical(request.arguments) === canonical(args) &&
            counts?.(request, decisionOn(current, request)) !== false
        )

/** Finds the last request about a call, with any arguments, that is not `settled`. */
export const lastRequestOn = (
  current: Suspension | null,
  path: ReadonlyArray<string>,
  callId: string,
  settled?: ReadonlySet<string>
): Request | undefined =>
  current === null
    ? undefined
    : indexOf(current)
        .requests.get(callId)
        ?.findLast((request) => settled?.has(request.id) !== true && request.path.length === path.length)

export const decisionOn = (current: Suspension | null, { id }: Request): Decision | undefined =>
  current === null ? undefined : indexOf(current).decisions.get(id)

const suspendedId = "~effect-deepagents/suspended"

/** The failure of a sub-agent that waits, for the call that it runs in: past everything wrapped around the call. */
export const suspended = (requests: ReadonlyArray<Request>): unknown => ({ [suspendedId]: requests })

/** The requests that a tunnelled failure carries, if it is a sub-agent's wait. */
export const suspendedRequests = (error: unknown): ReadonlyArray<Request> | undefined =>
  // Only `suspended` makes objects with this key.
  typeof error === "object" && error !== null && suspendedId in error
    ? (error[suspendedId] as ReadonlyArray<Request>)
    : undefined
