/** The tools of an agent's file, and the rules for the tools that it has. */
import * as Result from "effect/Result"
import * as FileTools from "../../backends/FileTools.ts"
import { type Annotations, finalAnswer, type Tool } from "../../core/Tool.ts"
import type * as HumanInTheLoop from "../../middleware/HumanInTheLoop.ts"
import * as Taint from "../../middleware/Taint.ts"
import * as ToolExclusion from "../../middleware/ToolExclusion.ts"
import { brief } from "../../support/text/issues.ts"
import { normaliseName } from "../../support/text/names.ts"
import { suggestion } from "../../support/text/near.ts"

/** The name of the tool that runs commands. */
export const execute = "execute"

type NamedTool = Pick<Tool<never>, "annotations" | "name">

/** The tools for files and commands. `execute` brings those for processes in the background. */
export const commandTools: ReadonlyArray<NamedTool> = FileTools.make({ execute: { background: true } })

/** The names that come with `execute`. */
export const withExecute = commandTools
  .map(({ name }) => name)
  .filter((name) => !FileTools.names.some((one) => one === name))

/** Reports whether a tool acts on nothing outside of its agent. */
const changesNothing = ({ destructive, openWorld, readOnly }: Annotations): boolean =>
  readOnly === true || (destructive === false && openWorld === false)

/** Removes the tools that change something. Tools of servers and middleware count, too. */
export const readOnlyTools = ToolExclusion.make(
  ({ annotations, name }) => name !== finalAnswer && !changesNothing(annotations)
)

/** Finds the tools that a name in a file means: the tool itself, or the tools that have it as an alias. */
const findTools = (all: ReadonlyArray<NamedTool>, given: string): ReadonlyArray<NamedTool> => {
  const isSame = (name: string): boolean => normaliseName(name) === normaliseName(given)
  const own = all.filter(({ name }) => isSame(name))
  return own.length > 0 ? own : all.filter(({ annotations }) => annotations.aliases?.some(isSame) === true)
}

/** The fields of a file that choose its tools. */
interface ToolChoice {
  readonly tools?: ReadonlyArray<string>
  readonly disallowedTools?: ReadonlyArray<string>
  readonly readOnly?: boolean
}

/** Chooses the tools of a file among the built-in and further ones, and parts them as `DeepAgent.make` takes them. */
export const chooseTools = <R>(file: ToolChoice, tools: ReadonlyArray<Tool<R>>) => {
  const hasOwnExecute = tools.some(({ name }) => name === execute)
  const all: ReadonlyArray<NamedTool> = [...(hasOwnExecute ? FileTools.make() : commandTools), ...tools]
  const { disallowedTools = [], readOnly = false, tools: listed } = file
  const unknown = [...(listed ?? []), ...disallowedTools].find((name) => findTools(all, name).length === 0)
  if (unknown !== undefined) {
    const near = suggestion(
      unknown,
      all.map(({ name }) => name)
    )
    return Result.fail(`tools: there is no tool ${brief(unknown)}. ${near}`)
  }
  const named = listed?.flatMap((name) => findTools(all, name)) ?? all
  const without = new Set(disallowedTools.flatMap((name) => findTools(all, name)))
  const toolNames = new Set(
    named.flatMap((tool) => (without.has(tool) || (readOnly && !changesNothing(tool.annotations)) ? [] : [tool.name]))
  )
  return Result.succeed({
    files: FileTools.names.filter((name) => toolNames.has(name)),
    execute: toolNames.has(execute),
    builtInExecute: toolNames.has(execute) && !hasOwnExecute && { background: true },
    tools: tools.filter(({ name }) => toolNames.has(withExecute.includes(name) ? execute : name))
  })
}

/** True for the name of a server's tool: the tools of servers come later. */
const isOfServer = (name: string): boolean => name.includes("__")

/** The approvals of all agents, for the tools that one agent has. */
export const approvalsFor = (shared: HumanInTheLoop.Options, has: ReadonlySet<string>): HumanInTheLoop.Options => ({
  ...shared,
  tools: Object.fromEntries(Object.entries(shared.tools ?? {}).filter(([name]) => isOfServer(name) || has.has(name)))
})

/** The rules for untrusted text, without the names of tools that the agent does not have. */
export const taintOf = (options: Taint.Options, has: ReadonlySet<string>) => {
  const { acts = [], clearance = {}, harmless = [], secrets = {}, trusted = [], untrusted = [], ...rest } = options
  const keys = new Set([...has].map(normaliseName))
  // `Taint` finds the names that are spelt otherwise.
  const isHere = (name: string): boolean => isOfServer(name) || keys.has(normaliseName(name))
  const keep = <A>(by: { readonly [name: string]: A }) =>
    Object.fromEntries(Object.entries(by).filter(([name]) => isHere(name)))
  return Taint.make({
    ...rest,
    acts: acts.filter(isHere),
    untrusted: untrusted.filter(isHere),
    harmless: harmless.filter(isHere),
    trusted: trusted.filter(isHere),
    secrets: keep(secrets),
    clearance: keep(clearance)
  })
}
