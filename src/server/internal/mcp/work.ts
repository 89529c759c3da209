/** Agents and tools as what a server offers: a name, parameters, and a run for each call. */
import type * as McpSchema from "effect/ai/McpSchema"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Agent from "../../../core/Agent.ts"
import type { AgentResult } from "../../../core/AgentResult.ts"
import { Approvals } from "../../../core/Approval.ts"
import * as Checkpoint from "../../../core/Checkpoint.ts"
import { Journal } from "../../../core/Journal.ts"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { human } from "../../../core/Message.ts"
import type { Input } from "../../../core/runOptions.ts"
import { Stored, toStored } from "../../../core/thread/storedOutput.ts"
import type { Tool } from "../../../core/Tool.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as ToolError from "../../../core/ToolError.ts"
import type { make as makeCalls, Line } from "./calls.ts"
import { answerOf, failed, resultOf } from "./content.ts"

/** The work of a call. */
export type Call = Effect.Success<typeof makeCalls>

/** Work that a server offers as one tool. */
export interface Work extends Pick<Tool, "annotations" | "description" | "name" | "parameters"> {
  readonly run: (args: unknown, call: Call) => ReturnType<Call>
}

type Context_ = Context.Context<never>

/** A run to its end: what it asks for goes over the line, and so does how far it is. */
const toEnd = <O>(
  agent: Agent.Agent<O, unknown, unknown>,
  input: Input,
  threadId: string | undefined,
  line: Line,
  context: Context_
): Effect.Effect<AgentResult<O>, unknown> => {
  const started = Effect.gen(function* () {
    let next = input
    for (;;) {
      const handle = yield* Agent.start(agent, next, { threadId })
      const reader = yield* Effect.forkScoped(Stream.runForEach(handle.events, line.tell), { startImmediately: true })
      const result = yield* handle.await
      yield* Fiber.await(reader)
      if (result.stopReason !== "suspended") return result
      const decisions = yield* Effect.forEach(result.pending, line.decide)
      next = Checkpoint.resume(threadId === undefined ? result : undefined, { decisions })
    }
  })
  return Effect.scoped(started).pipe(
    Effect.provideService(Approvals, { decide: line.decide }),
    // The layer that captured it has in its type what the run needs.
    Effect.provideContext(context)
  ) as Effect.Effect<AgentResult<O>, unknown>
}

const told = (work: Effect.Effect<McpSchema.CallToolResult, unknown>): Effect.Effect<McpSchema.CallToolResult> =>
  Effect.catch(work, (error) => Effect.succeed(failed(ToolError.fromUnknown(error).message)))

/** Arguments that the schema of a tool refuses are told to the model, before anything runs. */
const checked = (tool: Tool<unknown>, args: JsonObject): Effect.Effect<unknown, ToolError.ToolError> => {
  const prepared = tool.prepare(args)
  return Result.isResult(prepared) ? Effect.fromResult(prepared) : prepared
}

const mostThread = 200

const thread = {
  type: "string",
  description: "the name of a conversation to go on with; any name begins one",
  maxLength: mostThread
}

const propertiesOf = (parameters: JsonObject): JsonObject =>
  isObject(parameters["properties"]) ? parameters["properties"] : {}

const withThread = (parameters: JsonObject): JsonObject => ({
  ...parameters,
  properties: { ...propertiesOf(parameters), thread }
})

/** The thread that is asked for: none, one by its name, or what is wrong with the name. */
const threadOf = (agent: string, named: Json | undefined): Effect.Effect<string | undefined, ToolError.ToolError> => {
  if (named === undefined || named === null || named === "") return Effect.undefined
  return typeof named === "string" && named.length <= mostThread
    ? Effect.succeed(`mcp/${agent}/${named}`)
    : ToolError.make(`thread: a text of at most ${mostThread} characters`)
}

const jsonOf = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

const objectOf = (args: unknown): JsonObject => (isObject(args) ? args : {})

/** A program is given its input as JSON, a model its task as text. */
const inputOf = (agent: object, parameters: JsonObject, args: JsonObject): Input => {
  const isTask = Object.keys(propertiesOf(parameters)).join(" ") === "task"
  const value: Json = isTask ? (args["task"] ?? "") : args
  return human(Predicate.isString(value) && !("input" in agent && !isTask) ? value : JSON.stringify(value))
}

/** An agent as a tool of a server. */
export const ofAgent = (agent: Agent.Agent<unknown, unknown, unknown>, context: Context_): Work => {
  const tool = Agent.asTool(agent)
  // One that has an argument of this name itself keeps it.
  const hasThreads =
    Option.isSome(Context.getOption(context, Journal)) && !Object.hasOwn(propertiesOf(tool.parameters), "thread")
  const run: Work["run"] = (given, call) => {
    const { thread: named, ...rest } = objectOf(given)
    const args = hasThreads ? rest : objectOf(given)
    return call(agent.name, objectOf(given), (line) =>
      told(
        Effect.gen(function* () {
          yield* checked(tool, args)
          const threadId = yield* threadOf(agent.name, hasThreads ? named : undefined)
          const result = yield* toEnd(agent, inputOf(agent, tool.parameters, args), threadId, line, context)
          const json = typeof result.output === "string" ? undefined : Result.getOrUndefined(jsonOf(result.text))
          return answerOf(result.text, json)
        })
      )
    )
  }
  const parameters = hasThreads ? withThread(tool.parameters) : tool.parameters
  return { name: tool.name, description: tool.description, annotations: {}, parameters, run }
}

/** A tool as a tool of a server: it is called by a program, whose run it then has. */
export const ofTool = (tool: Tool<unknown>, context: Context_): Work => {
  const program = Agent.program({
    name: tool.name,
    input: Schema.Record(Schema.String, Schema.Json),
    output: Stored,
    tools: [tool],
    run: (args) => Effect.flatMap(ToolContext, ({ call }) => Effect.map(call(tool.name, args), toStored))
  })
  const run: Work["run"] = (given, call) =>
    call(tool.name, objectOf(given), (line) =>
      told(
        Effect.map(toEnd(program, program.input(objectOf(given)), undefined, line, context), ({ output }) =>
          resultOf(output.content, output.isError)
        )
      )
    )
  const { annotations, description, name, parameters } = tool
  return { name, description, annotations, parameters, run }
}
