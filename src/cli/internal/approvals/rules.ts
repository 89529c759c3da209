/** Rules behind "always": for like calls of one tool by one agent, until the chat ends. */
import type { Request } from "../../../core/Approval.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { describeArguments } from "../../../core/ToolCall.ts"
import { escapeUnseen } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"

/** Like calls: all calls of a tool, commands with the same beginning, files below a folder, or only this call. */
export type Like =
  | { readonly kind: "any" }
  | { readonly kind: "commands"; readonly prefixes: ReadonlyArray<string> }
  | { readonly kind: "folder"; readonly folder: string }
  | { readonly kind: "same"; readonly text: string; readonly shown: string }

export interface Rule {
  readonly agent: string
  readonly toolName: string
  readonly like: Like
}

type Asked = Pick<Request, "arguments" | "path" | "toolName">

/** Programs with subcommands. */
const withSubcommand = new Set([
  "git",
  "npm",
  "pnpm",
  "yarn",
  "npx",
  "bun",
  "cargo",
  "go",
  "docker",
  "kubectl",
  "gh",
  "make",
  "uv",
  "pip"
])

/** Signs that change the meaning of a command. Such a command is like no other. */
const opaque = /[`<>(){}\n\\]|\$[({A-Za-z_]|(?<!&)&(?!&)/

const separator = /&&|\|\||;|\|/

/** Gives the first words of each command of a line. Returns `undefined` if they do not identify it. */
export const prefixesOf = (command: string): ReadonlyArray<string> | undefined => {
  if (opaque.test(command)) return undefined
  // A separator inside of quotes would cut a command in two.
  const betweenQuotes = command.split(/["']/).slice(1, -1)
  if (betweenQuotes.some((text) => separator.test(text))) return undefined
  const prefixes = command.split(separator).map((part) => {
    const [program = "", second = ""] = part.trim().split(/\s+/)
    if (!/^[\w./-]+$/.test(program)) return ""
    return withSubcommand.has(program) && /^[a-z][\w:-]*$/.test(second) ? `${program} ${second}` : program
  })
  return prefixes.includes("") ? undefined : [...new Set(prefixes)]
}

const pathOf = ({ arguments: args }: Asked): string | undefined => {
  const path = args["file_path"] ?? args["path"]
  return typeof path === "string" && !path.split("/").includes("..") ? path : undefined
}

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1)

/** Gives the calls that are like this call. */
export const likeOf = (request: Asked): Like => {
  const command = request.arguments["command"]
  const prefixes = typeof command === "string" ? prefixesOf(command) : undefined
  if (prefixes !== undefined) return { kind: "commands", prefixes }
  const path = pathOf(request)
  if (path !== undefined && folderOf(path) !== "") return { kind: "folder", folder: folderOf(path) }
  return { kind: "same", text: canonical(request.arguments), shown: cut(describeArguments(request.arguments), 80) }
}

export const ruleFor = (request: Asked, like: Like): Rule => ({
  agent: request.path.join(" › "),
  toolName: request.toolName,
  like
})

const covered = ({ like }: Rule, request: Asked): boolean => {
  if (like.kind === "any") return true
  if (like.kind === "folder") return pathOf(request)?.startsWith(like.folder) === true
  return like.kind === "same" && like.text === canonical(request.arguments)
}

/** Reports whether rules cover a call. Several rules may cover a line of several commands. */
export const covers = (rules: ReadonlyArray<Rule>, request: Asked): boolean => {
  const agent = request.path.join(" › ")
  const own = rules.filter((rule) => rule.agent === agent && rule.toolName === request.toolName)
  if (own.some((rule) => covered(rule, request))) return true
  const command = request.arguments["command"]
  const prefixes = typeof command === "string" ? prefixesOf(command) : undefined
  const known = own.flatMap(({ like }) => (like.kind === "commands" ? like.prefixes : []))
  return prefixes !== undefined && prefixes.every((prefix) => known.includes(prefix))
}

const calls = (toolName: string, like: Like): string => {
  switch (like.kind) {
    case "any":
      return `every call of ${toolName}`
    case "commands":
      return `commands that begin with ${like.prefixes.map((prefix) => `\`${prefix} …\``).join(", ")}`
    case "folder":
      return `${toolName} below ${like.folder}`
    case "same":
      return `this very call of ${toolName} (${like.shown})`
  }
}

/** Describes a rule. */
export const wordsOf = ({ agent, like, toolName }: Rule): string =>
  escapeUnseen(`${calls(toolName, like)}, by ${agent}, in this chat`)
