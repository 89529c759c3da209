/** Meaning of "always": a rule in words, for the calls of one tool by one agent, that holds as long as the chat. */
import type { Request } from "../../../core/Approval.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { describeArguments } from "../../../core/ToolCall.ts"
import { escapeUnseen } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"

/** The calls that are alike: all of a tool, commands that begin so, files below a folder, or this very call. */
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

/** Programs whose second word says what they do. */
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

/** Signs by which the rest of a command says something else than its words: then only the very same one is alike. */
const opaque = /[`<>(){}\n\\]|\$[({A-Za-z_]|(?<!&)&(?!&)/

const separator = /&&|\|\||;|\|/

/** The first words of each command of a line; `undefined` if they do not tell what it does. */
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

/** The calls that are like this one. */
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

/** Tells whether a call is covered: a line of several commands by several rules, if need be. */
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

/** A rule in words. */
export const wordsOf = ({ agent, like, toolName }: Rule): string =>
  escapeUnseen(`${calls(toolName, like)}, by ${agent}, in this chat`)
