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
 * It reads the files of Claude Code (`.claude/agents/*.md`) too: it translates the names of tools, and ignores fields
 * that only Claude Code has.
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Permissions from "../backends/Permissions.ts"
import * as Agent from "../core/Agent.ts"
import type { Approvals } from "../core/Approval.ts"
import type { Backend } from "../core/Backend.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import type { Tool } from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import * as DeepAgent from "../deep/DeepAgent.ts"
import * as Budget from "../middleware/Budget.ts"
import type * as HumanInTheLoop from "../middleware/HumanInTheLoop.ts"
import type * as Memory from "../middleware/Memory.ts"
import type * as Taint from "../middleware/Taint.ts"
import * as Policy from "../rules/Policy.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { defined } from "../support/json/defined.ts"
import { check } from "../support/options/check.ts"
import { at, brief, problems } from "../support/text/issues.ts"
import { suggestion } from "../support/text/near.ts"
import { parseYaml } from "../support/text/yaml.ts"
import {
  approvalsFor,
  chooseTools,
  commandTools,
  execute,
  readOnlyTools,
  taintOf,
  withExecute
} from "./internal/chooseTools.ts"
import { fromClaude, isRecord, type Raw, splitNames } from "./internal/claudeFile.ts"
import * as shapes from "./internal/shapes.ts"

const Name = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, {
    expected: "1 to 64 letters, digits, - and _, the first of them a letter or a digit"
  })
)
const whole = Schema.Int.check(Schema.isGreaterThan(0))
const amount = Schema.Finite.check(Schema.isGreaterThan(0))
const List = Schema.Array(Schema.String)

/** The schema of the front matter. */
export const FrontMatter = Schema.Struct({
  /** Default: the name of the file. */
  name: Schema.optionalKey(Name),
  /** People and other agents choose the agent by its description. */
  description: Schema.String.check(Schema.isPattern(/\S/, { expected: "a text that is not empty" })),
  /** `provider:model`. Default: the model of the run. */
  model: Schema.optionalKey(Schema.String),
  thinking: Schema.optionalKey(Schema.Literals(["off", "low", "medium", "high", "xhigh", "max"])),
  /** Names of tools. Default: all tools. */
  tools: Schema.optionalKey(List),
  disallowedTools: Schema.optionalKey(List),
  /** Keeps only tools that change nothing, by their annotations. Default: `false`. */
  readOnly: Schema.optionalKey(Schema.Boolean),
  /** Names of servers whose tools the agent gets. */
  mcp: Schema.optionalKey(List),
  /** Folders of skills, as paths of its files. */
  skills: Schema.optionalKey(List),
  /** Names of other agents that it delegates to. */
  subagents: Schema.optionalKey(Schema.Array(Name)),
  /** Whether it also delegates to the general-purpose agent. Default: `true`. */
  generalPurpose: Schema.optionalKey(Schema.Boolean),
  /** Rules for calls and files. Rules for files can't hold beside a shell, so `tools` must leave out `execute` and git. */
  policy: Schema.optionalKey(Policy.Policy),
  budget: Schema.optionalKey(
    Schema.Struct({
      cost: Schema.optionalKey(amount),
      tokens: Schema.optionalKey(whole),
      toolCalls: Schema.optionalKey(whole),
      rounds: Schema.optionalKey(whole),
      seconds: Schema.optionalKey(amount)
    })
  ),
  /** Rounds of a run. */
  maxTurns: Schema.optionalKey(whole)
})

/** The content of an agent's file: the front matter with a name, and the body as the prompt. */
export interface AgentFile extends Schema.Schema.Type<typeof FrontMatter> {
  readonly name: string
  readonly prompt: string
  readonly path: string
}

/** A wrong file. The problem names the field, its value, and the expected form. */
export class InvalidAgentFile extends TaggedError<InvalidAgentFile>()("InvalidAgentFile", {
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

const splitFile = (text: string): readonly [matter: string, body: string] | undefined => {
  const [, matter, body] =
    /^\ufeff?---[ \t]*\n([^]*?)\n---[ \t]*(?:\n([^]*))?$/.exec(text.replaceAll("\r\n", "\n")) ?? []
  return matter === undefined ? undefined : [matter, (body ?? "").trim()]
}

type Invalid = (problem: string) => Effect.Effect<never, InvalidAgentFile>

const failAt =
  (path: string): Invalid =>
  (problem) =>
    Effect.fail(new InvalidAgentFile({ path, problem }))

/** Reads the front matter: a map of known fields. */
const readMatter = Effect.fnUntraced(function* (matter: string, claude: boolean, invalid: Invalid) {
  const raw = yield* Effect.catch(parseYaml(matter, mostCharacters), (problem) =>
    invalid(`the front matter is not valid YAML: ${problem.split("\n")[0] ?? ""}`)
  )
  if (!isRecord(raw)) return yield* invalid("the front matter should be a map of fields")
  const record = claude
    ? fromClaude(raw, fields)
    : { ...raw, ...("tools" in raw ? { tools: splitNames(raw["tools"]) } : {}) }
  const unknown = Object.keys(record).find((field) => !fields.includes(field))
  return unknown === undefined
    ? record
    : yield* invalid(`there is no field ${brief(unknown)}. ${suggestion(unknown, fields)}`)
})

/** Decodes the front matter. The policy has a decoder of its own, which suggests names. */
const decodeMatter = Effect.fnUntraced(function* ({ policy: given, ...others }: Raw, invalid: Invalid) {
  const policy = given === undefined ? undefined : yield* readPolicy(given, invalid)
  const result = decode(others, { onExcessProperty: "error" })
  if (Result.isSuccess(result)) return { ...result.success, ...defined({ policy }) }
  const [first] = problems(result.failure.issue)
  const value = first === undefined ? undefined : at(others, first.keys)
  return yield* invalid(
    value === undefined
      ? `${first?.path ?? "a field"} is required and is not there`
      : `${first?.path ?? ""} is ${brief(value)}; expected ${first?.expected ?? "another value"}`
  )
})

const checkParse = check(shapes.agentFileParse)

/** Reads a file. With `claude`, it translates a file of Claude Code, and ignores unknown fields. */
export const parse = Effect.fnUntraced(function* (
  text: string,
  options: {
    /** The path of the file, for messages, and for the name of an agent without one. */
    readonly path: string
    /** Translates a file of Claude Code. Default: `false`. */
    readonly claude?: boolean | undefined
  }
): Effect.fn.Return<AgentFile, InvalidAgentFile> {
  const wrong = checkParse(options)
  if (wrong !== undefined) return yield* failAt("AgentFile.parse")(wrong)
  const { claude = false, path } = options
  const invalid = failAt(path)
  if (text.length > mostCharacters) return yield* invalid(`has more than ${mostCharacters} characters`)
  const form = 'should begin with a line "---", fields as YAML, and a line "---" again; then the prompt'
  const [matter, prompt] = splitFile(text) ?? (yield* invalid(form))
  const { name = nameOf(path), ...rest } = yield* decodeMatter(yield* readMatter(matter, claude, invalid), invalid)
  if (prompt === "") return yield* invalid("has no prompt: write it below the front matter")
  if (!Schema.is(Name)(name)) return yield* invalid(`${brief(name)} can't be the name of an agent; give it a \`name\``)
  return { ...rest, name, prompt, path }
})

/** The parts of a policy that hold for one agent. The others are of the whole program. */
const policyParts = ["tools", "servers", "annotations", "default", "files"]

const readPolicy = Effect.fnUntraced(function* (given: unknown, invalid: Invalid) {
  const policy = yield* Effect.catch(Policy.fromUnknown(given), ({ path, problem }) =>
    invalid(`policy: ${path === "" ? problem : `${path}: ${problem}`}`)
  )
  const other = Object.keys(policy).find((part) => !policyParts.includes(part))
  return other === undefined
    ? policy
    : yield* invalid(`policy: an agent's file has no ${other}. ${suggestion(other, policyParts)}`)
})

const nameOf = (path: string): string => (path.split(/[/\\]/).at(-1) ?? "").replace(/[.]md$/i, "")

/** The parts of agents that files name. For the other options see `DeepAgent.make`: all agents have them. */
export interface Options<E = never, R = never> {
  /** Further tools. One named `execute` takes the place of the built-in and its tools for processes: give these too. */
  readonly tools?: ReadonlyArray<Tool<R | Approvals | ToolContext>> | undefined
  /** Sub-agents. */
  readonly agents?: ReadonlyArray<AgentFile> | undefined
  /** Servers, and a middleware with the tools of some: `(names) => Mcp.make({ servers: names })`. */
  readonly servers?:
    | {
        /** The names of all servers. */
        readonly names: ReadonlyArray<string>
        /** Makes the middleware with the tools of the named servers. */
        readonly make: (names: ReadonlyArray<string>) => Middleware.Middleware<E, R | Approvals | ToolContext>
      }
    | undefined
  /** Makes the layer of a model. */
  readonly model?: ((spec: string, thinking: AgentFile["thinking"]) => Layer.Layer<ChatModel, E, R>) | undefined
  /** The calls that need an approval, in all agents of the file. */
  readonly approvals?: HumanInTheLoop.Options | undefined
  /** The rules for untrusted text, as for `Taint.make`. Names of tools that an agent lacks don't count for it. */
  readonly taint?: Taint.Options | undefined
  /** Further middleware of the agent. Default: none. */
  readonly middleware?: ReadonlyArray<Middleware.Middleware<E, R | Approvals | ToolContext>> | undefined
  /** Further middleware of the agent alone: its sub-agents don't get it. Default: none. */
  readonly lead?: ReadonlyArray<Middleware.Middleware<E, R | Approvals | ToolContext>> | undefined
  /** The document formats that `read_file` reads as text. */
  readonly documents?: DeepAgent.SubagentOptions["documents"]
  /** Memory files, as paths in the backend or with their texts. */
  readonly memory?: Memory.Options["sources"] | undefined
  /** Folders of skills in the backend. */
  readonly skills?: ReadonlyArray<string> | undefined
  /** The schema of the answer. Sub-agents answer with text. */
  readonly output?: Schema.ConstraintCodec<unknown, unknown> | undefined
  /** The most rounds of a run. Default: the file's value, else 200. */
  readonly maxRounds?: number | undefined
}

/** The agent of a file. */
export type FileAgent<E = never, R = never> = Agent.Agent<
  unknown,
  ModelError | Permissions.InvalidPermissions | E,
  ChatModel | Backend | Sandbox | R
>

const budgetOf = ({ seconds, ...limits }: NonNullable<AgentFile["budget"]>) =>
  Budget.make({ ...limits, time: seconds === undefined ? undefined : `${seconds} seconds`, onExhausted: "finalAnswer" })

/** Compiles the policy of a file. Its rules may name every tool that agents of files can have. */
const policyOf = <E, R>({ name, path, policy = {} }: AgentFile, options: Options<E, R>) =>
  Result.mapError(
    // With rules for files, the agent has no tool that runs commands.
    Policy.compile([{ ...policy, name, ...defined({ sandbox: policy.files && ("noCommands" as const) }) }], {
      known: [...commandTools.map((tool) => tool.name), ...(options.tools ?? []).map((tool) => tool.name)]
    }),
    ({ path: place, problem }) => new InvalidAgentFile({ path, problem: `policy: ${place}: ${problem}` })
  )

const checkCompile = check(shapes.agentFileCompile)

/**
 * Makes the agent of a file. An unknown tool, server or agent fails with `InvalidAgentFile` and a suggestion. So does a
 * circle of sub-agents.
 */
export const compile = <E = never, R = never>(
  file: AgentFile,
  options: Options<E, R> = {}
): Effect.Effect<FileAgent<E, R>, InvalidAgentFile> => {
  const problem = checkCompile(options)
  return problem === undefined
    ? Effect.suspend(() => build(file, options, []))
    : Effect.fail(new InvalidAgentFile({ path: file.path, problem }))
}

/** Makes the sub-agents of a file. */
const subagentsOf = <E, R>(file: AgentFile, options: Options<E, R>, above: ReadonlyArray<string>, invalid: Invalid) => {
  const { agents = [] } = options
  const names = agents.map(({ name }) => name)
  return Effect.forEach(file.subagents ?? [], (name) => {
    const agent = agents.find((one) => one.name === name)
    return agent === undefined
      ? invalid(`subagents: there is no agent ${brief(name)}. ${suggestion(name, names)}`)
      : build(agent, options, [...above, file.name])
  })
}

/** The middleware with the tools of a file's servers. */
const serversOf = <E, R>({ mcp = [] }: AgentFile, { servers }: Options<E, R>, invalid: Invalid) => {
  const missing = mcp.find((name) => servers?.names.includes(name) !== true)
  if (missing !== undefined) {
    return invalid(`mcp: there is no server ${brief(missing)}. ${suggestion(missing, servers?.names ?? [])}`)
  }
  return Effect.succeed(mcp.length === 0 || servers === undefined ? [] : [servers.make(mcp)])
}

/** The options of all agents. Sub-agents inherit the approvals and the rules for untrusted text. */
const sharedOf = <E, R>(options: Options<E, R>, isRoot: boolean, has: ReadonlySet<string>) => {
  const { approvals, documents, lead = [], memory, middleware = [], output, taint } = options
  return {
    documents,
    memory,
    output: isRoot ? output : undefined,
    approvals: isRoot && approvals !== undefined ? approvalsFor(approvals, has) : undefined,
    middleware: [
      ...middleware,
      ...(isRoot ? lead : []),
      ...(isRoot && taint !== undefined ? [taintOf(taint, has)] : [])
    ]
  }
}

/** Puts the middleware of a file behind that of the program. */
const middlewareOf = <M>(
  file: AgentFile,
  shared: ReadonlyArray<M>,
  policy: ReadonlyArray<M>,
  servers: ReadonlyArray<M>
) => [
  ...shared,
  ...(file.policy === undefined ? [] : policy),
  ...servers,
  ...(file.budget === undefined ? [] : [budgetOf(file.budget)]),
  ...(file.readOnly === true ? [readOnlyTools] : [])
]

const build = <E, R>(
  file: AgentFile,
  options: Options<E, R>,
  above: ReadonlyArray<string>
): Effect.Effect<FileAgent<E, R>, InvalidAgentFile> =>
  Effect.gen(function* () {
    const invalid = failAt(file.path)
    if (above.includes(file.name)) {
      return yield* invalid(`subagents go in a circle: ${[...above, file.name].join(" > ")}`)
    }
    const subagents = yield* subagentsOf(file, options, above, invalid)
    const servers = yield* serversOf(file, options, invalid)
    const choice = chooseTools(file, options.tools ?? [])
    if (Result.isFailure(choice)) return yield* invalid(choice.failure)
    const { builtInExecute, execute: shell, ...tools } = choice.success
    const names = [...tools.files, ...(shell ? withExecute : []), ...tools.tools.map(({ name }) => name)]
    // Commands go around rules for files.
    const runsCommands = tools.tools.find(({ annotations }) => annotations.runsCommands === true)?.name
    const command = shell ? execute : runsCommands
    if (file.policy?.files !== undefined && command !== undefined) {
      return yield* invalid(`policy.files can't hold beside a shell; list its tools without ${command}`)
    }
    const leading = (options.lead ?? []).flatMap(({ tools: own = [] }) => (typeof own === "function" ? [] : own))
    const has = new Set([
      ...names,
      ...leading.map(({ name }) => name),
      ...subagents.flatMap((one) => [...Agent.toolNames(one)])
    ])
    const policy = yield* Effect.fromResult(policyOf(file, options))
    const { middleware, ...shared } = sharedOf(options, above.length === 0, has)
    const agent: Agent.Agent<unknown, unknown, unknown> = DeepAgent.make({
      ...tools,
      ...shared,
      execute: builtInExecute,
      name: file.name,
      description: file.description,
      prompt: file.prompt,
      subagents,
      generalPurpose: file.generalPurpose === false ? false : undefined,
      skills: [...(options.skills ?? []), ...(file.skills ?? [])],
      maxRounds: file.maxTurns ?? options.maxRounds,
      middleware: middlewareOf<Middleware.Middleware<unknown, unknown>>(file, middleware, policy.middleware, servers)
    })
    const limited = file.policy?.files === undefined ? agent : Agent.provide(agent, policy.files)
    const model = file.model === undefined ? undefined : options.model?.(file.model, file.thinking)
    // Names chose its parts, so the type covers all parts that it may have.
    return (model === undefined ? limited : Agent.provide(limited, model)) as FileAgent<E, R>
  })
