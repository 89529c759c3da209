/** Approvals for good, behind "always": for like calls of one tool, in the chat or in the project. */
import * as Schema from "effect/Schema"
import * as CommandRule from "../../../backends/CommandRule.ts"
import type { Request } from "../../../core/Approval.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { describeArguments } from "../../../core/ToolCall.ts"
import { escapeUnseen } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import { isIsolated } from "./isolated.ts"
import type { Place } from "./place.ts"

/** Like calls: all calls of a tool, commands, files below a folder, or only this call. */
const Like = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("any") }),
  Schema.Struct({ kind: Schema.Literal("command"), learned: CommandRule.LearnedRule }),
  Schema.Struct({ kind: Schema.Literal("folder"), folder: Schema.String }),
  Schema.Struct({ kind: Schema.Literal("same"), text: Schema.String, shown: Schema.String })
])
export type Like = typeof Like.Type

/** An approval for good. In a chat it is for one agent, in a project for all. */
export const LearnedRules = Schema.Struct({
  agent: Schema.optionalKey(Schema.String),
  toolName: Schema.String,
  like: Like,
  scope: Schema.Literals(["chat", "project"])
})
export interface LearnedRules extends Schema.Schema.Type<typeof LearnedRules> {}

type AskedCall = Pick<Request, "arguments" | "path" | "toolName">

const commandOf = ({ arguments: args, toolName }: AskedCall, place: Place): string | undefined =>
  place.isCommand(toolName) && typeof args["command"] === "string" ? args["command"] : undefined

const pathOf = ({ arguments: args }: AskedCall): string | undefined => {
  const path = args["file_path"] ?? args["path"]
  return typeof path === "string" && !path.split("/").includes("..") ? path : undefined
}

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1)

/** Gives the calls that are like this call. */
export const likeOf = (request: AskedCall, place: Place): Like => {
  // An approval of an isolated command is for no command outside.
  const isHere = isIsolated({ name: request.toolName, arguments: request.arguments })
  const command = isHere ? undefined : commandOf(request, place)
  if (command !== undefined) return { kind: "command", learned: CommandRule.learn(command, place.where) }
  const path = pathOf(request)
  if (path !== undefined && folderOf(path) !== "") return { kind: "folder", folder: folderOf(path) }
  return { kind: "same", text: canonical(request.arguments), shown: cut(describeArguments(request.arguments), 80) }
}

export const learn = (request: AskedCall, like: Like, scope: LearnedRules["scope"]): LearnedRules => ({
  ...(scope === "chat" ? { agent: request.path.join(" › ") } : {}),
  toolName: request.toolName,
  like,
  scope
})

/** The approvals for good that are about the tool of a call. */
const about = (learned: ReadonlyArray<LearnedRules>, { path, toolName }: AskedCall): ReadonlyArray<Like> => {
  const agent = path.join(" › ")
  return learned.flatMap((one) =>
    one.toolName === toolName && (one.agent === undefined || one.agent === agent) ? [one.like] : []
  )
}

/** The approvals for good of commands, for a call. */
export const commandsFor = (
  learned: ReadonlyArray<LearnedRules>,
  request: AskedCall
): ReadonlyArray<CommandRule.LearnedRule> =>
  about(learned, request).flatMap((like) => (like.kind === "command" ? [like.learned] : []))

/** Tells whether approvals for good cover a call that runs no command. */
export const covers = (learned: ReadonlyArray<LearnedRules>, request: AskedCall): boolean =>
  about(learned, request).some((like) => {
    if (like.kind === "any") return true
    if (like.kind === "folder") return pathOf(request)?.startsWith(like.folder) === true
    return like.kind === "same" && like.text === canonical(request.arguments)
  })

const describeLike = (toolName: string, like: Like, place: Place): string => {
  switch (like.kind) {
    case "any":
      return `every call of ${toolName}`
    case "command":
      return CommandRule.describe(like.learned, place.where)
    case "folder":
      return `${toolName} below ${like.folder}`
    case "same":
      return `this very call of ${toolName} (${like.shown})`
  }
}

/** Describes the calls that an approval for good covers. */
export const describe = ({ like, toolName }: Pick<LearnedRules, "like" | "toolName">, place: Place): string =>
  escapeUnseen(describeLike(toolName, like, place))

/** Describes an approval for good with its origin. */
export const describeWithOrigin = (learned: LearnedRules, place: Place): string =>
  learned.scope === "project"
    ? `${describe(learned, place)}, in this project`
    : `${describe(learned, place)}, by ${escapeUnseen(learned.agent ?? "")}, in this chat`
