/** Rules as people write them in settings and flags: `Bash(npm test:*)`, `Edit(src/**)`, `WebFetch(domain:x)`. */
import { homedir } from "node:os"
import * as Result from "effect/Result"
import * as CommandRule from "../../../backends/CommandRule.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Ruling from "../../../core/Ruling.ts"
import type { Annotations, Tool } from "../../../core/Tool.ts"
import { suggestion } from "../../../support/text/near.ts"
import { globOf, matchesPath } from "./pathPattern.ts"
import { isFile, machinePath } from "./place.ts"

/** A call, as rules see it. */
export interface Call {
  readonly name: string
  readonly arguments: JsonObject
}

export type Tools = ReadonlyArray<Pick<Tool, "annotations" | "name">>

/** The origin of a rule: a file of settings or a flag. */
export interface Origin {
  readonly from: "organisation" | "user" | "project" | "flag"
  readonly where: string
}

/** A rule. `commands` is set for rules about commands; other rules decide by `fits`. */
export interface Permission extends Origin {
  readonly ruling: Ruling.Rule["ruling"]
  readonly text: string
  readonly commands: CommandRule.CommandRule | undefined
  /** The glob of the files that a rule refuses to read, by all tools that look at files. */
  readonly hides?: string | undefined
  readonly fits: (call: Call) => boolean
}

/** Tells whether a tool goes to hosts. Tools of this machine say that they have no addresses. */
const isOfHosts = ({ addresses, openWorld }: Annotations): boolean => openWorld === true && addresses !== undefined

/** The tools that a name in a rule stands for: a tool, or a kind of tools by the name that others give to one of it. */
const toolsBy = (name: string, tools: Tools, restricts: boolean): Tools => {
  const own = tools.filter((tool) => tool.name === name)
  const named = own.length > 0 ? own : tools.filter(({ annotations }) => annotations.aliases?.includes(name) === true)
  const [first] = named
  if (first === undefined || own.length > 0) return named
  const { editsFiles, openWorld, readOnly, runsCommands } = first.annotations
  return tools.filter(({ annotations: other, ...tool }) => {
    if (runsCommands === true) return other.runsCommands === true
    // A rule that restricts edits restricts deletions too.
    const isDeed = other.destructive === true && other.openWorld !== true && other.runsCommands !== true
    if (editsFiles === true) return other.editsFiles === true || (restricts && isDeed)
    if (isOfHosts(first.annotations)) return isOfHosts(other)
    // Every tool that looks at files is a reading one.
    if (name === "Read" && readOnly === true)
      return other.readOnly === true && other.openWorld !== true && openWorld !== true
    return named.some((one) => one.name === tool.name)
  })
}

const isPathName = (name: string): boolean => /^(?:file_?path|path|from|to|source|destination)$/i.test(name)

/** The paths that a call names, as the machine has them. */
const pathsOf = ({ arguments: args }: Call, folder: string): ReadonlyArray<string> =>
  Object.entries(args).flatMap(([name, value]) =>
    isPathName(name) && typeof value === "string" ? [machinePath(value, folder)] : []
  )

/** A rule that allows covers all paths of a call; another one is for a call by one of them, or by none that is known. */
const fitsPaths = (call: Call, what: string, folder: string, ruling: Ruling.Rule["ruling"]): boolean => {
  const paths = pathsOf(call, folder)
  const fits = (path: string): boolean =>
    matchesPath(what, path, { folder, home: homedir(), folds: ruling !== "allow" })
  return ruling === "allow" ? paths.length > 0 && paths.every(fits) : paths.length === 0 || paths.some(fits)
}

const hostsOf = ({ arguments: args, name }: Call, tools: Tools): ReadonlyArray<string> =>
  (tools.find((tool) => tool.name === name)?.annotations.addresses ?? []).map((at) => {
    const url = args[at]
    return typeof url === "string" ? (URL.parse(url)?.hostname ?? "").replace(/\.$/, "") : ""
  })

const matchesHost = (pattern: string, host: string): boolean =>
  pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern

/** Splits `Tool(what)`. */
const splitRule = (text: string): readonly [name: string, what: string | undefined] | undefined => {
  const match = /^([\w-]+(?:__(?:[\w.-]+|\*))*)(?:\(([^]*)\))?$/.exec(text.trim())
  const [, name, what] = match ?? []
  return name === undefined ? undefined : [name, what === undefined || what.trim() === "*" ? undefined : what.trim()]
}

/** The names of the tools of a server: `mcp__server`, `mcp__server__*`, `mcp__server__tool`. */
const serverTools = (name: string): ((tool: string) => boolean) | undefined => {
  const [prefix, server = "", ...rest] = name.split("__")
  if (prefix !== "mcp" || server === "") return undefined
  const tool = rest.join("__")
  return tool === "" || tool === "*"
    ? (called) => called.startsWith(`${server}__`)
    : (called) => called === `${server}__${tool}` || called === name
}

const isOpen = (annotations: Annotations | undefined): boolean => annotations?.runsCommands === true

/** The problem of a pattern for tools of a kind. */
const problemOf = (what: string, annotations: Annotations): string | undefined => {
  if (isOpen(annotations)) {
    const parsed = CommandRule.parsePattern(what)
    return Result.isFailure(parsed) ? parsed.failure.problem : undefined
  }
  if (isOfHosts(annotations)) {
    return /^domain:(?:\*\.)?[\w-]+(?:\.[\w-]+)*$/.test(what)
      ? undefined
      : "write a host, such as WebFetch(domain:example.com)"
  }
  const isOfFiles = annotations.editsFiles === true || (annotations.readOnly === true && annotations.openWorld !== true)
  return isOfFiles ? undefined : "it takes nothing in parentheses"
}

/** Reads a rule. Fails with its problem in words. */
export const parsePermission = (
  text: string,
  ruling: Ruling.Rule["ruling"],
  origin: Origin,
  known: { readonly tools: Tools; readonly folder: string }
): Result.Result<Permission, string> => {
  const { folder, tools } = known
  const [name, what] = splitRule(text) ?? []
  const wrong = (problem: string) => Result.fail(`${JSON.stringify(text)} is no rule: ${problem}`)
  if (name === undefined) return wrong("write Tool or Tool(what), such as Bash(npm test:*)")
  const base = { ...origin, ruling, text: text.trim() }
  const ofServer = serverTools(name)
  if (ofServer !== undefined) {
    return what === undefined
      ? Result.succeed({ ...base, commands: undefined, fits: (call) => ofServer(call.name) })
      : wrong("the tools of servers take nothing in parentheses")
  }
  const matches = toolsBy(name, tools, ruling !== "allow")
  const [first] = matches
  if (first === undefined) {
    const names = [...new Set(tools.flatMap((tool) => [tool.name, ...(tool.annotations.aliases ?? [])]))]
    return wrong(`there is no tool ${JSON.stringify(name)}. ${suggestion(name, names)}`)
  }
  const problem = what === undefined ? undefined : problemOf(what, first.annotations)
  if (problem !== undefined) return wrong(problem)
  const names = new Set(matches.map((tool) => tool.name))
  if (isOpen(first.annotations)) {
    const by = `${origin.from}: ${text.trim()}`
    const reason = ruling === "ask" ? { reason: `A rule asks: ${by}` } : {}
    const rule = { ruling, name: by, ...reason, ...(what === undefined ? {} : { command: what }) }
    return Result.succeed({ ...base, commands: rule, fits: (call) => names.has(call.name) })
  }
  const hides =
    ruling === "refuse" && name === "Read" && what !== undefined ? globOf(what, folder, homedir()) : undefined
  /** A search goes through the backend, which hides files. Git does not: where it shows texts, it must name other files. */
  const isUnhidden = (call: Call, paths: ReadonlyArray<string>): boolean => {
    const annotations = tools.find(({ name: tool }) => tool === call.name)?.annotations
    return isOpen(annotations) && annotations?.untrusted === true && !(paths.length > 0 && paths.every(isFile))
  }
  const fitsWhat = (call: Call): boolean => {
    if (what === undefined) return true
    if (hides !== undefined) {
      const paths = pathsOf(call, folder)
      if (isUnhidden(call, paths)) return true
      if (paths.length === 0) return false
    }
    if (!isOfHosts(first.annotations)) return fitsPaths(call, what, folder, ruling)
    const host = what.slice("domain:".length).toLowerCase()
    const hosts = hostsOf(call, tools)
    return ruling === "allow"
      ? hosts.every((one) => matchesHost(host, one))
      : hosts.some((one) => matchesHost(host, one))
  }
  return Result.succeed({ ...base, commands: undefined, hides, fits: (call) => names.has(call.name) && fitsWhat(call) })
}

/** Programs that run other programs, so that a rule for them allows everything. */
const opening = new Set(
  "sh bash dash zsh ksh fish env sudo doas su xargs eval exec source command builtin time timeout nice nohup stdbuf setsid watch parallel script ssh npx bunx pnpx uvx uv python python3 node deno bun perl ruby php awk make find docker podman kubectl git npm pnpm yarn pip curl wget".split(
    " "
  )
)

/** Tells whether a rule that allows lets a program run anything: it names no more than an interpreter or a runner. */
export const isOpening = ({ commands, ruling }: Permission): boolean => {
  if (ruling !== "allow" || commands === undefined) return false
  const [program = "*", action = "*"] = (commands.command ?? "*").replace(/:\*$/, " *").split(/\s+/)
  return program.includes("*") || (opening.has(program) && (action.includes("*") || action.startsWith("-")))
}

/** The ruling of rules on a call. A refusal goes before a question, and a question before an allowance. */
export const rule = (
  permissions: ReadonlyArray<Permission>,
  call: Call,
  place: { readonly tools: Tools; readonly where: CommandRule.Where },
  learned: ReadonlyArray<CommandRule.LearnedRule> = []
): Ruling.Ruling | undefined => {
  const { command } = call.arguments
  const annotations = place.tools.find(({ name }) => name === call.name)?.annotations
  if (isOpen(annotations) && typeof command === "string") {
    const rules = permissions.flatMap((one) => (one.commands !== undefined && one.fits(call) ? [one.commands] : []))
    return CommandRule.decide(command, place.where, rules, learned)
  }
  // A tool that runs commands of its own, such as git's, has no line: rules name it whole.
  const findRule = (ruling: Ruling.Rule["ruling"]): Permission | undefined =>
    permissions.find((one) => one.commands?.command === undefined && one.ruling === ruling && one.fits(call))
  const nameOf = ({ from, text }: Permission): string => `${from}: ${text}`
  const refuseRule = findRule("refuse")
  if (refuseRule !== undefined)
    return Ruling.refuse(nameOf(refuseRule), `Not executed: a rule refuses it (${nameOf(refuseRule)}).`)
  const askRule = findRule("ask")
  if (askRule !== undefined)
    return Ruling.ask(nameOf(askRule), { byPerson: true, reason: `A rule asks: ${nameOf(askRule)}` })
  const allowRule = findRule("allow")
  return allowRule === undefined ? undefined : Ruling.allow(nameOf(allowRule), { settles: true })
}
