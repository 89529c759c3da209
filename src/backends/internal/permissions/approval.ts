/** Asking whether an operation may go on. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Approval from "../../../core/Approval.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Question from "../../../core/Question.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import { defined } from "../../../support/json/defined.ts"
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

/** The key of an access that is approved for good; a command is one only by all of its text. */
const keyOf = ({ action }: Request, { operation, path }: Access): string =>
  `permissions ${operation} ${action.operation === "execute" ? action.command : (path ?? "/")}`

/** Asks whoever decides for the run whose tool does this, as the tool itself would. */
const askRun = Effect.fnUntraced(function* (asked: Request): Effect.fn.Return<Answer> {
  const context = yield* Effect.serviceOption(ToolContext)
  if (Option.isNone(context)) return nobody
  const { ask, state, toolName } = context.value
  const keys = asked.accesses.map((access) => keyOf(asked, access))
  const known = yield* state.get(Approval.always)
  if (keys.every((key) => known.includes(key))) return { _tag: "Approved" }
  const accesses = asked.accesses.map(({ operation, path }) => defined({ operation, path }))
  const question = Question.approval(describe(toolName, asked), { ...argumentsOf(asked.action), accesses })
  return yield* Effect.matchEffect(ask(question), {
    onFailure: (error) => Effect.succeed(refused(error.message)),
    onSuccess: ({ always }) => {
      const approved: Answer = { _tag: "Approved" }
      return always ? Effect.as(state.set(Approval.always, keys), approved) : Effect.succeed(approved)
    }
  })
})

export const Approver = Context.Reference<Service>("effect-deepagents/Permissions/Approver", {
  defaultValue: () => ({ ask: askRun })
})

/** The accesses that were approved for the work in progress, with the rules that asked for them. */
export const Granted = Context.Reference<
  ReadonlyArray<{ readonly policy: Policy; readonly accesses: ReadonlyArray<Access> }>
>("effect-deepagents/Permissions/Granted", { defaultValue: () => [] })
