/** The requests about calls: the earlier ones that still count, and new ones. */
import * as Effect from "effect/Effect"
import { defined } from "../../../support/json/defined.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { type Choice, choiceOf, type Decision, mayDecide, problemOf, type Request } from "../../Approval.ts"
import type { PreparedCall } from "../../Middleware.ts"
import type { Ask, Terms } from "../../Ruling.ts"
import { requestFor } from "../../thread/suspension.ts"
import type { Tool } from "../../Tool.ts"
import { describeArguments } from "../../ToolCall.ts"
import type { Live } from "../live.ts"
import { digestOf } from "../toolset.ts"
import { type RuledCall, isInTime } from "./gatekeepers.ts"

const every: ReadonlyArray<Choice> = ["approve", "edit", "reject", "respond"]

/** Reports whether an earlier request and its decision are as strict as these terms. */
export const isEnough =
  ({ byPerson, deciders }: Terms) =>
  (request: Request, decision: Decision | undefined): boolean =>
    decision === undefined
      ? (deciders === undefined || request.deciders?.every((one) => deciders.includes(one)) === true) &&
        (byPerson !== true || request.byPerson === true)
      : mayDecide({ deciders }, decision.by) && (byPerson !== true || decision.byProgram !== true)

/** Describes a call to a person: the rules' description or its own, and the reason for the question. */
const describe = (call: PreparedCall, { description, reason }: Terms): string => {
  const words = description ?? call.describe?.() ?? `${call.name} ${describeArguments(call.given())}`
  return reason === undefined ? words : `${words}\n${reason}`
}

/** Returns the earlier request about a call if it still counts, else a new one. */
export const requestOf = (
  live: Live,
  { call, prepared, tool }: RuledCall,
  { by, terms }: Ask
): { readonly request: Request; readonly isNew: boolean } => {
  const pendingRequest = requestFor(
    live.round.suspension,
    live.run.path,
    prepared.id,
    prepared.arguments,
    call.settled,
    isEnough(terms)
  )
  if (pendingRequest !== undefined && isInTime(live, pendingRequest)) return { request: pendingRequest, isNew: false }
  const request = makeRequest(live, { by, terms }, terms.choices ?? every, {
    callId: prepared.id,
    toolName: prepared.name,
    arguments: prepared.arguments,
    description: describe(prepared, terms),
    toolDigest: digestOf(tool),
    ...defined({ editsFiles: prepared.annotations.editsFiles || undefined })
  })
  return { isNew: true, request }
}

/** Makes a request of a run, by the terms of the ruling that asks. */
export const makeRequest = (
  live: Live,
  ask: Pick<Ask, "by" | "terms"> | undefined,
  allow: ReadonlyArray<Choice>,
  subject: Pick<Request, "callId" | "toolName" | "arguments" | "description" | "toolDigest" | "editsFiles">
): Request => {
  const { byPerson, deciders, expiresIn } = ask?.terms ?? {}
  const at = live.origin.clock.currentTimeMillisUnsafe()
  return {
    ...subject,
    // It may quote the model.
    description: visible(subject.description),
    id: live.makeId(),
    runId: live.run.runId,
    path: live.run.path,
    allow,
    at,
    ...defined({
      rule: ask?.by,
      expiresAt: expiresIn === undefined ? undefined : at + expiresIn,
      deciders,
      byPerson: byPerson || undefined
    })
  }
}

/** Reports whether a tool still has the definition that the request was about. Old requests have no digest. */
export const isAsPromised = ({ toolDigest }: Request, tool: Tool<unknown>): boolean =>
  toolDigest === undefined || digestOf(tool) === toolDigest

/** Reports whether nobody decides on a request while the run waits. */
export const isDeferred = ({ approvals }: Live, request: Request): Effect.Effect<boolean> =>
  approvals === undefined ? Effect.succeed(true) : (approvals.defers?.(request) ?? Effect.succeed(false))

const misdirected = "The decision was on another request, so this call was not executed."

const tooLate = "The decision came too late, so this call was not executed. Call again to have it asked for."

/** The reason why the answer of a service is no decision on this request. */
export const problemOn = (live: Live, request: Request, decision: Decision): string | undefined => {
  if (decision.id !== request.id) return misdirected
  if (!isInTime(live, request)) return tooLate
  const problem = request.allow.includes(choiceOf(decision)) ? problemOf(request, decision) : undefined
  return problem === undefined ? undefined : `${problem}. This call was not executed.`
}
