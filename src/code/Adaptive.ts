/**
 * Lets an agent write tools for itself: a script each, which a person approves once. The tools stay in the thread, over
 * turns and restarts.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Adaptive } from "effect-deepagents/code"
 * import * as NodeScripts from "effect-deepagents/code/NodeScripts"
 *
 * const clerk = Agent.make({ name: "clerk", prompt: "You check invoices. Write a tool for sums that come again." })
 * const adaptive = Adaptive.make({ worker: clerk })
 *
 * const program = Agent.run(adaptive, "Check the invoices of May", { threadId: "may" }).pipe(
 *   Effect.provide(NodeScripts.layer())
 * )
 * ```
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import * as AgentState from "../core/AgentState.ts"
import { JsonObject, stringify } from "../core/Json.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import { isEndless } from "../core/schema/endless.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { canonical } from "../core/schema/jsonTree.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import { valueAt } from "../support/json/valueAt.ts"
import { sha256Sync } from "../support/store/sha256.ts"
import { executeScript } from "./internal/execute.ts"
import { findLimitProblem } from "./internal/limits.ts"
import { makeCatalogue } from "./internal/setup.ts"
import * as shapes from "./internal/shapes.ts"
import { storeSlot } from "./internal/values.ts"
import type { Limits, Scripts } from "./Scripts.ts"

const name = "Adaptive"

/** The name of the tool that writes tools. */
export const toolName = "write_tool"

/** The most tools of a thread. */
const mostTools = 32

/** The longest script and schema, in characters. */
const longest = 16_000

const Written = Schema.Struct({ description: Schema.String, parameters: JsonObject, script: Schema.String })
type Written = typeof Written.Type

/** The tools that a thread has written, by their names. */
const writtenSlot = AgentState.slot("written-tools", {
  schema: Schema.Record(Schema.String, Written),
  initial: {},
  // A tool in it was approved.
  ifTampered: {}
})
type All = { readonly [tool: string]: Written }

const digestOf = ({ description, parameters, script }: Written): string =>
  sha256Sync(canonical([description, parameters, script])).slice(0, 16)

const nameRule = /^[a-z][a-z0-9_]{0,63}$/

const findProblem = (
  all: All,
  offered: ReadonlyArray<string>,
  toolName: string,
  { parameters, script }: Written
): string | undefined => {
  const earlier = valueAt(all, toolName)
  if (!nameRule.test(toolName))
    return "The name must be of small letters, digits and _, 64 at most. Choose another name."
  if (earlier === undefined && Middleware.findTool(new Set(offered), toolName) !== undefined)
    return `There is a tool "${toolName}" already. Choose another name.`
  if (earlier === undefined && Object.keys(all).length >= mostTools)
    return `You have written ${mostTools} tools, which is the most. Write one of them anew instead.`
  if (parameters["type"] !== "object" || isEndless(parameters))
    return 'The parameters must be a JSON Schema of an object: { "type": "object", "properties": { … } }.'
  return script.length > longest || stringify(parameters).length > longest
    ? `The script and its parameters may have ${longest} characters each. Write a smaller tool.`
    : undefined
}

/** Fails for a tool that can't be kept, before a person is asked about it. */
const check = Effect.fnUntraced(function* ({ name: tool, ...written }: Written & { readonly name: string }) {
  const { run } = yield* ToolContext
  const all = yield* run.state.get(writtenSlot)
  const offered = run.offered.map((one) => one.name)
  const problem = findProblem(all, offered, tool, written)
  return problem === undefined ? undefined : yield* Effect.fail(ToolError.make(problem))
})

const WriteTool = Schema.Struct({
  name: Schema.String.annotate({ description: "The name: small letters, digits and _" }),
  ...Written.fields,
  description: Schema.String.annotate({ description: "What the tool does, and when to use it" }),
  parameters: JsonObject.annotate({ description: "The JSON Schema of args: an object" }),
  script: Schema.String.annotate({ description: "The program. Its value is the result of the tool" })
})

const describe = (args: JsonObject): string => {
  const { description = "", name: tool = "", parameters = {}, script = "" } = args
  return [
    `Keeps the tool ${stringify(tool)} for this conversation: ${stringify(description)}`,
    `Its arguments: ${stringify(parameters)}`,
    "Each call of it runs this program without another question. The calls that the program makes keep their own rules:",
    typeof script === "string" ? script : stringify(script)
  ].join("\n")
}

const writeTool = Tool.make(toolName, {
  description:
    "Keeps a program as a tool of yours, under a name. A person approves it once; then you call it like any other tool. Use it for work that comes again. The program is TypeScript, the body of an async function: args has the arguments of the call, and tools.name({ … }) calls your other tools and gives their text. There is no fetch, no require, no process. The same name again replaces the tool.",
  parameters: WriteTool,
  annotations: { idempotent: true, destructive: false, openWorld: false },
  describe,
  rehearse: (tool) => check(tool),
  execute: Effect.fnUntraced(function* (tool) {
    yield* check(tool)
    const { name: key, ...written } = tool
    const { state } = yield* ToolContext
    yield* state.update(writtenSlot, (all) => ({ ...all, [key]: written }))
    return `You have the tool ${key} from now on.`
  })
})

const isWritten = Schema.is(WriteTool)

/** True for a call that writes an approved tool of the thread again. */
const isKept = (all: All, given: JsonObject): boolean => {
  if (!isWritten(given)) return false
  const earlier = valueAt(all, given.name)
  return earlier !== undefined && digestOf(earlier) === digestOf(given)
}

/** A person sees each tool once: another script, schema or description is another question. */
const asking = Middleware.make({
  name,
  asks: true,
  state: [storeSlot, writtenSlot],
  tools: [writeTool],
  rulings: Effect.fnUntraced(function* (run: Run, calls: ReadonlyArray<Middleware.PreparedCall>) {
    const all = yield* run.state.get(writtenSlot)
    return calls.map((call) =>
      call.name === toolName && !isKept(all, call.given()) ? Ruling.ask(name, { byPerson: true }) : undefined
    )
  })
})

type ScriptLimits = Limits & {
  /** The most characters of a result, as in {@link CodeMode}. Default: 30,000. */
  readonly output?: number | undefined
}

/** Offers the tools of the thread. */
const offering = (limits: ScriptLimits) => {
  const catalogueOf = makeCatalogue()
  // Rules keep a tool by its description: the version makes another script another tool.
  const toolsOf = memoize((all: All) =>
    Object.entries(all).map(([tool, written]) =>
      Tool.dynamic(tool, {
        description: `${written.description}\n(A tool that you wrote, version ${digestOf(written)})`,
        parameters: written.parameters,
        annotations: { resumable: true, destructive: false, openWorld: false },
        execute: (args) =>
          executeScript({
            source: written.script,
            args,
            own: [],
            hidden: [toolName, ...Object.keys(all)],
            agents: [],
            limits,
            review: false,
            store: "thread",
            canContinue: false,
            catalogueOf
          })
      })
    )
  )
  return Middleware.make<never, Scripts | ToolContext>({
    name: `${name}Tools`,
    check: () => findLimitProblem(name, 1, { memory: limits.memory, calls: limits.calls, output: limits.output }),
    // Scripts need no more than their calls do.
    tools: (run) =>
      Effect.map(run.state.get(writtenSlot), toolsOf) as Effect.Effect<ReadonlyArray<Tool.Tool<Scripts | ToolContext>>>
  })
}

const refuseMake = makeMiddlewareCheck(name, shapes.adaptiveMake)

/**
 * Gives an agent `write_tool`. A written tool is a script of code mode with a name and a schema for its arguments. A
 * person approves it; it is then offered like any other tool, in later turns and after a restart. Its script runs where
 * `Scripts` runs scripts, and each call that it makes passes the rules of that call.
 */
export const make = <O, E, R>(options: {
  /** The agent that may write tools. */
  readonly worker: Agent.Agent<O, E, R>
  /** The limits of each call of a written tool. Default: see each limit. */
  readonly limits?: ScriptLimits | undefined
}): Agent.Agent<O | undefined, E, R | Scripts> => {
  const refused = refuseMake(options)
  // Wrong options make an agent that never runs.
  if (refused !== undefined) {
    return Agent.make({ name: "adaptive", prompt: "", middleware: [refused] }) as Agent.Agent<never, never, never>
  }
  const { limits = {}, worker } = options
  return Agent.around(Agent.around(worker, offering(limits)), asking)
}
