/**
 * Asking whether an operation may go on.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Approval from "../../../core/Approval.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import { defined } from "../../../support/defined.ts"
import type { Access, Action, Answer, Policy, Request, Service } from "./model.ts"

const refused = (message: string): Answer => ({ _tag: "Refused", message })

/** An action as the arguments of a request: plain JSON, with all that would be done. */
const argumentsOf = (action: Action): JsonObject => {
  switch (action.operation) {
    case "read": {
      const { limit, offset } = action.window ?? {}
      return defined({ operation: action.operation, path: action.path, offset, limit })
    }
    case "write":
      return { operation: action.operation, path: action.path, content: action.content }
    case "edit": {
      const replacements = action.replacements.map(({ new: to, old, replaceAll = false }) => ({
        old,
        new: to,
        replaceAll
      }))
      return { operation: action.operation, path: action.path, replacements }
    }
    case "delete":
      return { operation: action.operation, path: action.path, recursive: action.recursive }
    case "move":
      return { operation: action.operation, from: action.from, to: action.to }
    case "grep":
      return { operation: action.operation, path: action.query.path ?? "/", pattern: action.query.pattern }
    case "upload": {
      const files = action.files.map(({ content, path }) => ({ path, bytes: content.length }))
      return { operation: action.operation, files }
    }
    case "download":
      return { operation: action.operation, paths: action.paths }
    case "patch":
      return { operation: action.operation, patch: action.plan.text }
    case "execute": {
      return defined({ operation: action.operation, command: action.command, cwd: action.options?.cwd })
    }
  }
}

const shownAccesses = 20

/** Characters that nobody sees, or that turn or hide what is around them. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** A text on one line, with what nobody would see written out. */
const visible = (text: string): string =>
  text.replaceAll(unseen, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)

/** Describes a request to a person: every path that a rule asks about, and what would be done there. */
const describe = (toolName: string, { accesses, action }: Request): string => {
  if (action.operation === "execute") return visible(`${toolName}: execute ${action.command}`)
  const all = accesses.map(({ operation, path = "/" }) => `${operation} ${path}`)
  const more = all.length > shownAccesses ? ` and ${all.length - shownAccesses} more` : ""
  return visible(`${toolName}: ${all.slice(0, shownAccesses).join(", ")}${more}`)
}

const nobody = refused("this needs approval, and nobody is there to ask; do without it")

/** Asks the approvals of the run whose tool does this. A decision about something else is none. */
const askApprovals = Effect.fnUntraced(function* (asked: Request): Effect.fn.Return<Answer> {
  const context = yield* Effect.serviceOption(ToolContext)
  const approvals = yield* Effect.serviceOption(Approval.Approvals)
  if (Option.isNone(context) || Option.isNone(approvals)) return nobody
  const { callId, path, runId, toolName } = context.value
  const accesses = asked.accesses.map(({ operation, path }) => defined({ operation, path }))
  const request: Approval.Request = {
    id: (yield* IdGenerator)(),
    runId,
    callId,
    path,
    toolName,
    arguments: { ...argumentsOf(asked.action), accesses },
    description: describe(toolName, asked),
    allow: ["approve", "reject"],
    at: yield* Clock.currentTimeMillis
  }
  const decision = yield* approvals.value.decide(request)
  if (decision.id === request.id && decision._tag === "Approve") return { _tag: "Approved" }
  const reason = decision.id === request.id && decision._tag === "Reject" ? decision.reason : undefined
  return refused(reason ?? "this was not approved")
})

export const Approver = Context.Reference<Service>("effect-deepagents/Permissions/Approver", {
  defaultValue: () => ({ ask: askApprovals })
})

/** The accesses that were approved for the work in progress, with the rules that asked for them. */
export const Granted = Context.Reference<
  ReadonlyArray<{ readonly policy: Policy; readonly accesses: ReadonlyArray<Access> }>
>("effect-deepagents/Permissions/Granted", { defaultValue: () => [] })
