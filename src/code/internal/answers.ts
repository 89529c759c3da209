/** Answers the calls of a script by the run of its tool: tools, agents, questions, search, memory, money. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import * as AgentState from "../../core/AgentState.ts"
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
import type { Asked } from "../Scripts.ts"
import { type AnyAgent, answerAgent } from "./agents.ts"
import { declare } from "./declarations.ts"
import type { Refusal } from "./host.ts"
import { withSlot } from "./slots.ts"

/** The values that scripts of a thread have stored. */
export const stored = AgentState.slot("script-store", {
  schema: Schema.Record(Schema.String, Json),
  initial: {}
})

/** The most characters of all that scripts store, as JSON. */
const maxStored = 500_000

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
  /** The calls that the script has made. */
  made: number
  /** How often agents were asked the same in a schema. */
  readonly asked: Map<string, number>
}

export const refuse = (message: string, reason = "Failed"): Refusal => ({ name: "ToolError", message, reason })

const fromToolError = ({ message, reason }: ToolError.ToolError): Refusal => refuse(message, reason)

/** The tool that a script means by a name. */
export const findDefinition = ({ tools }: Pick<World, "tools">, asked: string): ToolDefinition | undefined => {
  const name = findTool(new Set(tools.map((tool) => tool.name)), asked)
  return tools.find((tool) => tool.name === name)
}

const callTool = (world: World, asked: string, given: Json): Effect.Effect<Json, Refusal> => {
  const name = findDefinition(world, asked)?.name
  if (name === undefined) {
    return Effect.fail(refuse(`There is no tool "${cut(asked, 100)}". searchTools(words) finds tools.`, "UnknownTool"))
  }
  if (!isObject(given)) {
    return Effect.fail(refuse(`Give tools.${name} one object with its arguments.`, "InvalidArguments"))
  }
  return Effect.flatMap(Effect.mapError(world.context.call(name, given), fromToolError), (output) => {
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
const beginAgent = (world: World, given: Json): Effect.Effect<Json, Refusal, unknown> => {
  const { agents, context, slots } = world
  const asked = { agent: textAt(given, "agent") || (agents[0]?.name ?? ""), prompt: textAt(given, "prompt") }
  const toRefusal = ({ message, reason }: ToolError.ToolError): Refusal => ({ name: "AgentError", message, reason })
  const gate = Effect.flatMap(Effect.mapError(context.call(agentTool.name, asked), toRefusal), (output) =>
    output.isError
      ? Effect.fail<Refusal>({ name: "AgentError", message: ToolOutput.text(output), reason: "Refused" })
      : Effect.void
  )
  const work = withSlot(context.run, slots, answerAgent(world, given))
  return agents.length === 0 ? work : Effect.andThen(gate, work)
}

const textAt = (given: Json, key: string): string => {
  const value = isObject(given) ? valueAt(given, key) : undefined
  return typeof value === "string" ? value : ""
}

const search = ({ catalogue }: World, given: Json): Effect.Effect<Json, Refusal> => {
  const limit = isObject(given) ? given["limit"] : undefined
  const most = typeof limit === "number" && limit >= 1 ? Math.min(Math.floor(limit), 50) : 5
  return Effect.map(catalogue, (all) => all.search(cut(textAt(given, "words"), 1_000), most).map(declare))
}

const describe = (world: World, given: Json): Effect.Effect<Json, Refusal> => {
  const asked = textAt(given, "name")
  const tool = findDefinition(world, asked)
  return tool === undefined
    ? Effect.fail(refuse(`There is no tool "${cut(asked, 100)}". searchTools(words) finds tools.`, "UnknownTool"))
    : Effect.succeed(declare(tool))
}

const ask = ({ context }: World, given: Json): Effect.Effect<Json, Refusal> =>
  Effect.mapError(context.ask(Question.make(textAt(given, "question"), { answer: Schema.String })), fromToolError)

const store = ({ context }: World, given: Json): Effect.Effect<Json, Refusal> =>
  Effect.suspend(() => {
    const value = isObject(given) ? (given["value"] ?? null) : null
    const key = cut(textAt(given, "key"), 200)
    let isStored = false
    const put = context.state.update(stored, (before) => {
      const all = { ...before, [key]: value }
      isStored = JSON.stringify(all).length <= maxStored
      return isStored ? all : before
    })
    return Effect.flatMap(put, () =>
      isStored
        ? Effect.succeed(null)
        : Effect.fail(refuse(`Scripts may store ${maxStored} characters of JSON together.`))
    )
  })

/** Looks a value up once: a script that runs again gets the value that it got. */
const load = ({ context }: World, given: Json): Effect.Effect<Json, Refusal> => {
  const key = textAt(given, "key")
  const read = Effect.map(context.state.get(stored), (all) => valueAt(all, key) ?? null)
  return context.step(`script/load/${cut(key, 100)}`, read, Json)
}

const budget = ({ calls, context, made }: World, name: string): Effect.Effect<Json, Refusal> => {
  const { cost } = context.run.usage
  const spent: Json = {
    calls: made,
    tokens: totalTokens(context.run.usage),
    ...(cost === undefined ? {} : { cost })
  }
  const value = Effect.succeed(name === "budget.spent" ? spent : { calls: Math.max(0, calls - made) })
  return context.step(`script/${name}`, value, Json)
}

/** Answers one call of a script. */
export const answerCall = (world: World, { given, kind, name }: Asked): Effect.Effect<Json, Refusal, unknown> =>
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
