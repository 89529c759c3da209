/** Answers the calls of a script by the run of its tool: tools, agents, questions, search, memory, money. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import type { ToolDefinition } from "../../core/ChatModel.ts"
import { isObject, Json } from "../../core/Json.ts"
import { findTool } from "../../core/Middleware.ts"
import * as Question from "../../core/Question.ts"
import * as Tool from "../../core/Tool.ts"
import type { ToolContext } from "../../core/ToolContext.ts"
import type * as ToolError from "../../core/ToolError.ts"
import * as ToolOutput from "../../core/ToolOutput.ts"
import { totalTokens } from "../../core/Usage.ts"
import { valueAt } from "../../support/json/valueAt.ts"
import type { Catalogue } from "../../support/text/catalogue.ts"
import { cut } from "../../support/text/text.ts"
import type { ScriptCall } from "../Scripts.ts"
import { type AnyAgent, answerAgent } from "./agents.ts"
import { declare } from "./declarations.ts"
import { type Refusal, refuse } from "./host.ts"
import { withSlot } from "./slots.ts"
import { load, store, type Values } from "./values.ts"

/** The part of a run that a script reaches. */
export interface World {
  readonly context: ToolContext["Service"]
  readonly tools: ReadonlyArray<ToolDefinition>
  /** Made when a script searches. */
  readonly catalogue: Effect.Effect<Catalogue<ToolDefinition>, Refusal>
  readonly agents: ReadonlyArray<AnyAgent>
  /** A permit for each agent that runs at once. */
  readonly slots: Semaphore.Semaphore
  readonly calls: number
  readonly values: Values
  /** The calls that the script has made. */
  made: number
  /** How often agents were asked the same in a schema. */
  readonly askCounts: Map<string, number>
}

const fromToolError = ({ message, reason }: ToolError.ToolError): Refusal => refuse(message, reason)

/** The tool that a script means by a name. */
export const findDefinition = ({ tools }: Pick<World, "tools">, toolName: string): ToolDefinition | undefined => {
  const name = findTool(new Set(tools.map((tool) => tool.name)), toolName)
  return tools.find((tool) => tool.name === name)
}

/** The name of a call: of the tool that it means, whatever its spelling. */
export const nameOf = (world: Pick<World, "tools">, { kind, name }: ScriptCall): string =>
  kind === "tool" ? (findDefinition(world, name)?.name ?? name) : name

const callTool = (world: World, toolName: string, args: Json): Effect.Effect<Json, Refusal> => {
  const name = findDefinition(world, toolName)?.name
  if (name === undefined) {
    return Effect.fail(
      refuse(`There is no tool "${cut(toolName, 100)}". searchTools(words) finds tools.`, "UnknownTool")
    )
  }
  if (!isObject(args)) {
    return Effect.fail(refuse(`Give tools.${name} one object with its arguments.`, "InvalidArguments"))
  }
  return Effect.flatMap(Effect.mapError(world.context.call(name, args), fromToolError), (output) => {
    const text = ToolOutput.text(output)
    return output.isError ? Effect.fail(refuse(text)) : Effect.succeed(text)
  })
}

/** The tool by which a script begins an agent: rules and limits for sub-agents see its calls. It does nothing itself. */
export const agentTool = Tool.make("script_agent", {
  description: "Begins a sub-agent of a script",
  parameters: { agent: Schema.String, prompt: Schema.String },
  annotations: { delegates: true, idempotent: true, destructive: false, openWorld: false },
  execute: () => "begun"
})

/** Runs an agent once its gates allow it. A call that waits for a decision holds no permit. */
const beginAgent = (world: World, args: Json): Effect.Effect<Json, Refusal, unknown> => {
  const { agents, context, slots } = world
  const callArgs = { agent: textAt(args, "agent") || (agents[0]?.name ?? ""), prompt: textAt(args, "prompt") }
  const toRefusal = ({ message, reason }: ToolError.ToolError): Refusal => ({ name: "AgentError", message, reason })
  const gate = Effect.flatMap(Effect.mapError(context.call(agentTool.name, callArgs), toRefusal), (output) =>
    output.isError
      ? Effect.fail<Refusal>({ name: "AgentError", message: ToolOutput.text(output), reason: "Refused" })
      : Effect.void
  )
  const work = withSlot(context.run, slots, answerAgent(world, args))
  return agents.length === 0 ? work : Effect.andThen(gate, work)
}

const textAt = (args: Json, key: string): string => {
  const value = isObject(args) ? valueAt(args, key) : undefined
  return typeof value === "string" ? value : ""
}

const search = ({ catalogue }: World, args: Json): Effect.Effect<Json, Refusal> => {
  const limit = isObject(args) ? args["limit"] : undefined
  const most = typeof limit === "number" && limit >= 1 ? Math.min(Math.floor(limit), 50) : 5
  return Effect.map(catalogue, (all) => all.search(cut(textAt(args, "words"), 1_000), most).map(declare))
}

const describe = (world: World, args: Json): Effect.Effect<Json, Refusal> => {
  const toolName = textAt(args, "name")
  const tool = findDefinition(world, toolName)
  return tool === undefined
    ? Effect.fail(refuse(`There is no tool "${cut(toolName, 100)}". searchTools(words) finds tools.`, "UnknownTool"))
    : Effect.succeed(declare(tool))
}

const ask = ({ context }: World, args: Json): Effect.Effect<Json, Refusal> =>
  Effect.mapError(context.ask(Question.make(textAt(args, "question"), { answer: Schema.String })), fromToolError)

const budget = ({ calls, context, made }: World, name: string): Effect.Effect<Json, Refusal> => {
  const { cost } = context.run.usage
  const usage: Json = {
    calls: made,
    tokens: totalTokens(context.run.usage),
    ...(cost === undefined ? {} : { cost })
  }
  const value = Effect.succeed(name === "budget.spent" ? usage : { calls: Math.max(0, calls - made) })
  return context.step(`script/${name}`, value, Json)
}

/** Answers one call of a script. */
export const answerCall = (world: World, { given, kind, name }: ScriptCall): Effect.Effect<Json, Refusal, unknown> =>
  Effect.suspend((): Effect.Effect<Json, Refusal, unknown> => {
    world.made++
    switch (kind) {
      case "tool":
        return callTool(world, name, given)
      case "agent":
        return beginAgent(world, given)
      case "ask":
        return ask(world, given)
      case "search":
        return search(world, given)
      case "describe":
        return describe(world, given)
      case "store":
        return store(world, given)
      case "load":
        return load(world, given)
      default:
        return budget(world, name)
    }
  })
