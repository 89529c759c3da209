/**
 * Agents as files: Markdown with a front matter that a schema reads, which become the same values as agents in code.
 *
 * ```md
 * ---
 * name: reviewer
 * description: Reviews a change, and says what is wrong with it.
 * model: anthropic:claude-sonnet-5-5
 * tools: [ls, read_file, glob, grep]
 * budget: { cost: 0.5 }
 * ---
 *
 * You review changes …
 * ```
 *
 * The files of Claude Code (`.claude/agents/*.md`) are read as well: its names of tools are taken for those of here, and
 * fields that it alone has are passed over.
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as FileTools from "../backends/FileTools.ts"
import * as Permissions from "../backends/Permissions.ts"
import * as Agent from "../core/Agent.ts"
import type { Approvals } from "../core/Approval.ts"
import type { Backend } from "../core/Backend.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import { type Annotations, finalAnswer, type Tool } from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import * as DeepAgent from "../deep/DeepAgent.ts"
import * as Budget from "../middleware/Budget.ts"
import type * as HumanInTheLoop from "../middleware/HumanInTheLoop.ts"
import * as Taint from "../middleware/Taint.ts"
import * as ToolExclusion from "../middleware/ToolExclusion.ts"
import { defined } from "../support/json/defined.ts"
import { brief, problems } from "../support/text/issues.ts"
import { normaliseName } from "../support/text/names.ts"
import { suggestion } from "../support/text/near.ts"
import { yaml } from "../support/text/yaml.ts"

const Name = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, {
    expected: "1 to 64 letters, digits, - and _, the first of them a letter or a digit"
  })
)
const whole = Schema.Int.check(Schema.isGreaterThan(0))
const amount = Schema.Finite.check(Schema.isGreaterThan(0))
const List = Schema.Array(Schema.String)

/**
 * Schema of the front matter.
 *
 * - `name`, `description`: what others choose it by; the name is that of the file by default
 * - `model`: `provider:model`; that of the run by default. `thinking`: how much it thinks
 * - `tools`: names of tools; all that there are by default. `disallowedTools`: all but these
 * - `readOnly: true`: of these tools, only the ones that change nothing, by their annotations
 * - `mcp`: names of servers whose tools it gets, too
 * - `skills`: folders of skills, as paths of its files
 * - `subagents`: names of other agents that it can give work to; `generalPurpose: false` for no other
 * - `approvals`: by the name of a tool, whether a person is asked (`true`) or not (`false`)
 * - `permissions`: globs of paths that it may not see (`deny`), and of those that it may change (`write`); they can't hold
 *   beside a shell, so `execute` must not be among its tools
 * - `budget`: US dollars (`cost`), tokens, calls of tools, rounds, seconds
 * - `maxTurns`: rounds of a run
 */
export const FrontMatter = Schema.Struct({
  name: Schema.optionalKey(Name),
  description: Schema.String.check(Schema.isPattern(/\S/, { expected: "a text that is not empty" })),
  model: Schema.optionalKey(Schema.String),
  thinking: Schema.optionalKey(Schema.Literals(["off", "low", "medium", "high"])),
  tools: Schema.optionalKey(List),
  disallowedTools: Schema.optionalKey(List),
  readOnly: Schema.optionalKey(Schema.Boolean),
  mcp: Schema.optionalKey(List),
  skills: Schema.optionalKey(List),
  subagents: Schema.optionalKey(Schema.Array(Name)),
  generalPurpose: Schema.optionalKey(Schema.Boolean),
  approvals: Schema.optionalKey(Schema.Record(Schema.String, Schema.Boolean)),
  permissions: Schema.optionalKey(Schema.Struct({ deny: Schema.optionalKey(List), write: Schema.optionalKey(List) })),
  budget: Schema.optionalKey(
    Schema.Struct({
      cost: Schema.optionalKey(amount),
      tokens: Schema.optionalKey(whole),
      toolCalls: Schema.optionalKey(whole),
      rounds: Schema.optionalKey(whole),
      seconds: Schema.optionalKey(amount)
    })
  ),
  maxTurns: Schema.optionalKey(whole)
})

/** An agent as its file says it: the front matter with a name, and the body as its prompt. */
export interface AgentFile extends Schema.Schema.Type<typeof FrontMatter> {
  readonly name: string
  readonly prompt: string
  readonly path: string
}

/** A file that is no agent: which field, what it says, and what was expected. */
export class InvalidAgentFile extends Schema.TaggedError<InvalidAgentFile>()("InvalidAgentFile", {
  path: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.path}: ${this.problem}`
  }
}

const fields = Object.keys(FrontMatter.fields)
const decode = Schema.decodeUnknownResult(FrontMatter)
const mostCharacters = 65_536

/** Tools of Claude Code that a file need not choose here: every deep agent has their like, or none has. */
const unchosen = new Set(["BashOutput", "KillShell", "TodoWrite", "Task", "Agent", "Skill", "AskUserQuestion"])

const claudeModels: { readonly [alias: string]: string | undefined } = {
  inherit: undefined,
  sonnet: "anthropic:claude-sonnet-5-5",
  opus: "anthropic:claude-opus-5-5",
  haiku: "anthropic:claude-haiku-5-5"
}

type Raw = { readonly [field: string]: unknown }

const isRecord = (value: unknown): value is Raw => typeof value === "object" && value !== null && !Array.isArray(value)

/** A text without what is in parentheses, to any depth; one that is left open hides the rest. */
const outside = (text: string): string => {
  let depth = 0
  return text
    .split(/([()])/)
    .map((piece) => {
      if (piece === "(") depth += 1
      else if (piece === ")") depth = Math.max(0, depth - 1)
      else if (depth === 0) return piece
      return " "
    })
    .join("")
}

/** `Read, Bash(git add:*)` as names: rules about arguments are another program's. */
const listed = (value: unknown): unknown =>
  typeof value === "string" ? (outside(value).match(/[^\s,]+/g) ?? []) : value

const chosenOf = (value: unknown): unknown => {
  const names: unknown = listed(value)
  return Array.isArray(names) ? names.filter((name: unknown) => typeof name !== "string" || !unchosen.has(name)) : names
}

/** The fields of a file of Claude Code that mean something here. */
const fromClaude = (raw: Raw): Raw => {
  const known = Object.fromEntries(Object.entries(raw).filter(([field]) => fields.includes(field)))
  const { disallowedTools, model, tools, ...rest } = known
  const spec = typeof model === "string" && Object.hasOwn(claudeModels, model) ? claudeModels[model] : model
  return defined({
    ...rest,
    model: spec,
    tools: tools === undefined ? undefined : chosenOf(tools),
    disallowedTools: disallowedTools === undefined ? undefined : chosenOf(disallowedTools)
  })
}

const split = (text: string): readonly [matter: string, body: string] | undefined => {
  const [, matter, body] =
    /^\ufeff?---[ \t]*\n([^]*?)\n---[ \t]*(?:\n([^]*))?$/.exec(text.replaceAll("\r\n", "\n")) ?? []
  return matter === undefined ? undefined : [matter, (body ?? "").trim()]
}

/** Reads a file. `claude` is for those of Claude Code: fields that are not known here are passed over. */
export const parse = Effect.fnUntraced(function* (
  text: string,
  options: { readonly path: string; readonly claude?: boolean | undefined }
): Effect.fn.Return<AgentFile, InvalidAgentFile> {
  const { claude = false, path } = options
  const invalid = (problem: string) => Effect.fail(new InvalidAgentFile({ path, problem }))
  if (text.length > mostCharacters) return yield* invalid(`has more than ${mostCharacters} characters`)
  const parts = split(text)
  if (parts === undefined) {
    return yield* invalid('should begin with a line "---", fields as YAML, and a line "---" again; then the prompt')
  }
  const [matter, prompt] = parts
  const { parse: parseYaml } = yield* yaml
  const raw = Result.try((): unknown => parseYaml(matter, { maxAliasCount: 0, logLevel: "silent" }))
  if (Result.isFailure(raw)) {
    const why = raw.failure instanceof Error ? (raw.failure.message.split("\n")[0] ?? "") : "it can't be parsed"
    return yield* invalid(`the front matter is not valid YAML: ${why}`)
  }
  if (!isRecord(raw.success)) return yield* invalid("the front matter should be a map of fields")
  const found = claude
    ? fromClaude(raw.success)
    : { ...raw.success, ...("tools" in raw.success ? { tools: listed(raw.success["tools"]) } : {}) }
  const unknown = Object.keys(found).find((field) => !fields.includes(field))
  if (unknown !== undefined)
    return yield* invalid(`there is no field ${brief(unknown)}. ${suggestion(unknown, fields)}`)
  const read = decode(found, { onExcessProperty: "error" })
  if (Result.isFailure(read)) {
    const [first] = problems(read.failure.issue)
    const value = first === undefined ? undefined : first.keys.reduce<unknown>(inside, found)
    return yield* invalid(
      value === undefined
        ? `${first?.path ?? "a field"} is required and is not there`
        : `${first?.path ?? ""} is ${brief(value)}; expected ${first?.expected ?? "another value"}`
    )
  }
  if (prompt === "") return yield* invalid("has no prompt: write it below the front matter")
  const { name = nameOf(path), ...rest } = read.success
  if (!Schema.is(Name)(name)) return yield* invalid(`${brief(name)} can't be the name of an agent; give it a \`name\``)
  const denied = rest.permissions !== undefined && (rest.tools === undefined || rest.tools.includes("execute"))
  if (denied && rest.disallowedTools?.includes("execute") !== true) {
    return yield* invalid("permissions can't hold beside a shell; list its tools without execute")
  }
  return { ...rest, name, prompt, path }
})

const inside = (value: unknown, key: PropertyKey): unknown =>
  isRecord(value) ? value[String(key)] : Array.isArray(value) ? value[Number(key)] : undefined

const nameOf = (path: string): string => (path.split(/[/\\]/).at(-1) ?? "").replace(/[.]md$/i, "")

/**
 * The servers that agents of files may name, and the maker of what gives an agent the tools of those that it names:
 * `(names) => Mcp.make({ servers: names })`.
 */
export interface Servers<out E = never, out R = never> {
  readonly names: ReadonlyArray<string>
  readonly make: (names: ReadonlyArray<string>) => Middleware.Middleware<E, R | Approvals | ToolContext>
}

/**
 * Parts that agents of files are made with:
 *
 * - `tools` that they may name, beside those for files and `execute`
 * - `agents` that they may name as sub-agents
 * - `servers`: the servers that there are (`mcp`), and a middleware that gives the tools of some of them
 * - `model`: the layer of a model that a file names
 * - `approvals`, `middleware`, `documents`, `memory`, `skills`, `maxRounds`: as for `DeepAgent.make`, for all of them
 * - `taint`: the rules for text from outside, as for `Taint.make`. Of `trusted` and `harmless`, the names count that an
 *   agent has
 * - `output`: the schema of the answer of the agent itself
 */
export interface Options<E = never, R = never> {
  readonly tools?: ReadonlyArray<Tool<R | Approvals | ToolContext>> | undefined
  readonly agents?: ReadonlyArray<AgentFile> | undefined
  readonly servers?: Servers<E, R> | undefined
  readonly model?: ((spec: string, thinking: AgentFile["thinking"]) => Layer.Layer<ChatModel, E, R>) | undefined
  readonly approvals?: HumanInTheLoop.Options | undefined
  readonly taint?: Taint.Options | undefined
  readonly middleware?: ReadonlyArray<Middleware.Middleware<E, R | Approvals | ToolContext>> | undefined
  readonly documents?: DeepAgent.SubagentOptions["documents"]
  readonly memory?: ReadonlyArray<string> | undefined
  readonly skills?: ReadonlyArray<string> | undefined
  readonly output?: Schema.ConstraintCodec<unknown, unknown> | undefined
  readonly maxRounds?: number | undefined
}

/** An agent that was made of a file. */
export type Compiled<E = never, R = never> = Agent.Agent<
  unknown,
  ModelError | Permissions.InvalidPermissions | E,
  ChatModel | Backend | Sandbox | R
>

const execute = "execute"

type Named = Pick<Tool<never>, "annotations" | "name">

/** Reports whether a tool acts on nothing outside of its agent. */
const changesNothing = ({ destructive, openWorld, readOnly }: Annotations): boolean =>
  readOnly === true || (destructive === false && openWorld === false)

/** Keeps tools that change something from an agent, wherever they come from. */
const readOnlyTools = ToolExclusion.make(
  ({ annotations, name }) => name !== finalAnswer && !changesNothing(annotations)
)

/** Finds the tools that a name in a file means: the tool itself, or the tools that have it as an alias. */
const findTools = (all: ReadonlyArray<Named>, given: string): ReadonlyArray<Named> => {
  const isSame = (name: string): boolean => normaliseName(name) === normaliseName(given)
  const own = all.filter(({ name }) => isSame(name))
  return own.length > 0 ? own : all.filter(({ annotations }) => annotations.aliases?.some(isSame) === true)
}

/** Chooses the tools of a file, and parts them as `DeepAgent.make` takes them. */
const chooseTools = <E, R>(file: AgentFile, options: Options<E, R>) => {
  const tools = options.tools ?? []
  const all: ReadonlyArray<Named> = [...FileTools.make({ execute: true }), ...tools]
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
  const kept = new Set(
    named.flatMap((tool) => (without.has(tool) || (readOnly && !changesNothing(tool.annotations)) ? [] : [tool.name]))
  )
  return Result.succeed({
    files: FileTools.names.filter((name) => kept.has(name)),
    execute: kept.has(execute),
    tools: tools.filter(({ name }) => kept.has(name))
  })
}

const permissionsOf = ({ deny = [], write }: NonNullable<AgentFile["permissions"]>): Permissions.Options => ({
  rules: [
    ...(deny.length === 0 ? [] : [{ operations: ["read", "write"], paths: deny, ruling: "refuse" } as const]),
    ...(write === undefined || write.length === 0
      ? []
      : [{ operations: ["write"], paths: write, ruling: "allow" } as const]),
    ...(write === undefined ? [] : [{ operations: ["write"], paths: ["/**"], ruling: "refuse" } as const])
  ],
  default: "allow"
})

const budgetOf = ({ seconds, ...limits }: NonNullable<AgentFile["budget"]>) =>
  Budget.make({ ...limits, time: seconds === undefined ? undefined : `${seconds} seconds`, onExhausted: "finalAnswer" })

/**
 * Approvals of a file add to those of all; they can take a question away only where nobody else asks it. Of those of all,
 * the ones count whose tools it has.
 */
const approvalsOf = (file: AgentFile, shared: HumanInTheLoop.Options, has: ReadonlySet<string>) => {
  const own = Object.entries(file.approvals ?? {})
  const all = Object.entries(shared.tools ?? {}).filter(([name]) => has.has(name))
  const added = own.filter(([name, asks]) => asks || !all.some(([other]) => other === name))
  return { ...shared, tools: { ...Object.fromEntries(added), ...Object.fromEntries(all) } }
}

/** The rules for untrusted text, without the names of tools that the agent does not have. */
const taintOf = ({ harmless = [], trusted = [], ...rest }: Taint.Options, has: ReadonlySet<string>) =>
  Taint.make({
    ...rest,
    harmless: harmless.filter((name) => has.has(name)),
    trusted: trusted.filter((name) => has.has(name))
  })

/**
 * Makes the agent of a file. One that names a tool, a server or an agent that there is not fails with
 * `InvalidAgentFile`, which says what is near; so do agents that name each other in a circle.
 */
export const compile = <E = never, R = never>(
  file: AgentFile,
  options: Options<E, R> = {}
): Effect.Effect<Compiled<E, R>, InvalidAgentFile> => Effect.suspend(() => build(file, options, []))

const build = <E, R>(
  file: AgentFile,
  options: Options<E, R>,
  above: ReadonlyArray<string>
): Effect.Effect<Compiled<E, R>, InvalidAgentFile> =>
  Effect.gen(function* () {
    const invalid = (problem: string) => Effect.fail(new InvalidAgentFile({ path: file.path, problem }))
    if (above.includes(file.name)) {
      return yield* invalid(`subagents go in a circle: ${[...above, file.name].join(" > ")}`)
    }
    const { agents = [], servers } = options
    const names = agents.map(({ name }) => name)
    const subagents = yield* Effect.forEach(file.subagents ?? [], (name) => {
      const found = agents.find((one) => one.name === name)
      return found === undefined
        ? invalid(`subagents: there is no agent ${brief(name)}. ${suggestion(name, names)}`)
        : build(found, options, [...above, file.name])
    })
    const { mcp = [] } = file
    const missing = mcp.find((name) => servers?.names.includes(name) !== true)
    if (missing !== undefined) {
      return yield* invalid(`mcp: there is no server ${brief(missing)}. ${suggestion(missing, servers?.names ?? [])}`)
    }
    const own = mcp.length === 0 || servers === undefined ? [] : [servers.make(mcp)]
    const found = chooseTools(file, options)
    if (Result.isFailure(found)) return yield* invalid(found.failure)
    const { execute: shell, ...tools } = found.success
    const has = new Set([
      ...tools.files,
      ...(shell ? [execute] : []),
      ...tools.tools.map(({ name }) => name),
      ...subagents.flatMap((one) => [...Agent.toolNames(one)])
    ])
    const agent: Agent.Agent<unknown, unknown, unknown> = DeepAgent.make({
      ...tools,
      execute: shell,
      name: file.name,
      description: file.description,
      prompt: file.prompt,
      subagents,
      generalPurpose: file.generalPurpose === false ? false : undefined,
      skills: [...(options.skills ?? []), ...(file.skills ?? [])],
      documents: options.documents,
      memory: options.memory,
      output: above.length === 0 ? options.output : undefined,
      approvals:
        above.length > 0 || options.approvals === undefined ? undefined : approvalsOf(file, options.approvals, has),
      maxRounds: file.maxTurns ?? options.maxRounds,
      middleware: [
        ...(options.middleware ?? []),
        // Sub-agents inherit it.
        ...(above.length > 0 || options.taint === undefined ? [] : [taintOf(options.taint, has)]),
        ...own,
        ...(file.budget === undefined ? [] : [budgetOf(file.budget)]),
        ...(file.readOnly === true ? [readOnlyTools] : [])
      ]
    })
    const limited =
      file.permissions === undefined ? agent : Agent.provide(agent, Permissions.layer(permissionsOf(file.permissions)))
    const model = file.model === undefined ? undefined : options.model?.(file.model, file.thinking)
    const whole = model === undefined ? limited : Agent.provide(limited, model)
    // It was put together by names; the type sums up what it may be made of.
    return whole as Compiled<E, R>
  })
