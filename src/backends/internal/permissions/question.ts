/** Asks whether an operation on files may go on: the run whose tool does it, else the `Approvals` in context. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Approval from "../../../core/Approval.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { makeId } from "../../../core/Message.ts"
import * as Question from "../../../core/Question.ts"
import * as Ruling from "../../../core/Ruling.ts"
import { CurrentRun } from "../../../core/Run.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import { defined } from "../../../support/json/defined.ts"
import { escaped } from "../../../support/text/untrusted.ts"
import type { Access, Action, Rules } from "./model.ts"

/** An action as the arguments of a request: plain JSON with all of its effects. */
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

/** Describes an operation to a person: every path that a rule asks about, and the operation there. */
const describe = (toolName: string, action: Action, accesses: ReadonlyArray<Access>): string => {
  if (action.operation === "execute") return escaped(`${toolName}: execute ${action.command}`)
  const all = accesses.map(({ operation, path = "/" }) => `${operation} ${path}`)
  const more = all.length > shownAccesses ? ` and ${all.length - shownAccesses} more` : ""
  return escaped(`${toolName}: ${all.slice(0, shownAccesses).join(", ")}${more}`)
}

const nobody = Ruling.refuse("permissions", "this needs approval, and nobody is there to ask; do without it")

/** The name of an access in an approval for good. For a command it is the whole text. */
const nameOf = (action: Action, { operation, path = "/", ruling }: Access): string =>
  JSON.stringify(["permissions", ruling.by, operation, action.operation === "execute" ? action.command : path])

const withReason = (text: string, { reason }: Ruling.Terms): string =>
  reason === undefined ? text : `${text}\n${reason}`

/**
 * Asks the `Approvals` in context about an operation outside of any run. In a run, only a tool call can record the
 * question, so the run's middleware is refused.
 */
const askOutside = Effect.fnUntraced(function* (action: Action, details: JsonObject, ask: Ruling.Ask, text: string) {
  const approvals = yield* Effect.serviceOption(Approval.Approvals)
  if (Option.isNone(approvals) || (yield* CurrentRun) !== undefined) return nobody
  const at = yield* Clock.currentTimeMillis
  const { deciders, expiresIn } = ask.terms
  const request: Approval.Request = {
    id: makeId(),
    runId: "",
    callId: "",
    path: [],
    toolName: action.operation,
    arguments: details,
    description: text,
    allow: ["approve", "reject"],
    at,
    rule: ask.by,
    ...defined({ deciders, expiresAt: expiresIn === undefined ? undefined : at + expiresIn })
  }
  const decision = yield* approvals.value.decide(request)
  const isLate = request.expiresAt !== undefined && (yield* Clock.currentTimeMillis) >= request.expiresAt
  const problem = isLate ? "the decision came too late" : Approval.problemOf(request, decision)
  if (decision._tag === "Approve" && decision.id === request.id && problem === undefined) return Ruling.allow(ask.by)
  return Ruling.refuse(ask.by, (decision._tag === "Reject" ? decision.reason : problem) ?? "this was not approved")
})

/** Asks one question about all accesses of an operation. Rulings that can't be satisfied together refuse it. */
export const askAbout = Effect.fnUntraced(function* (
  action: Action,
  accesses: ReadonlyArray<Access>
): Effect.fn.Return<Ruling.Allow | Ruling.Refuse> {
  const { ruling } = Ruling.compose([...new Set(accesses.map((access) => access.ruling))])
  if (ruling._tag !== "Ask") return ruling
  const details = {
    ...argumentsOf(action),
    accesses: accesses.map(({ operation, path }) => defined({ operation, path }))
  }
  const context = yield* Effect.serviceOption(ToolContext)
  if (Option.isNone(context)) {
    const text = withReason(describe(action.operation, action, accesses), ruling.terms)
    return yield* askOutside(action, details, ruling, text)
  }
  const text = withReason(describe(context.value.toolName, action, accesses), ruling.terms)
  const covers = accesses.map((access) => nameOf(action, access))
  return yield* Effect.match(context.value.ask(Question.approval(text, details, { ask: ruling, covers })), {
    onFailure: ({ message }) => Ruling.refuse(ruling.by, message),
    onSuccess: () => Ruling.allow(ruling.by)
  })
})

/** The accesses that were approved for the work in progress, with the rules that asked for them. */
export const Granted = Context.Reference<
  ReadonlyArray<{ readonly rules: Rules; readonly accesses: ReadonlyArray<Access> }>
>("effect-deepagents/Permissions/Granted", { defaultValue: () => [] })
