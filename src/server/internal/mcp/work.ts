/** Turns agents and tools into the tools of a server: a name, parameters, and a run for each call. */
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

/** Makes a call. */
export type Call = Effect.Success<typeof makeCalls>

/** Work that a server offers as one tool. */
export interface Work extends Pick<Tool, "annotations" | "description" | "name" | "parameters"> {
  readonly run: (args: unknown, call: Call) => ReturnType<Call>
}

type Context_ = Context.Context<never>

/** Runs an agent to its end. Its requests and its progress go over the line. */
const runToEnd = <O>(
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
    // The type of the layer has the services of the run.
    Effect.provideContext(context)
  ) as Effect.Effect<AgentResult<O>, unknown>
}

const catchFailure = (
  work: Effect.Effect<McpSchema.CallToolResult, unknown>
): Effect.Effect<McpSchema.CallToolResult> =>
  Effect.catch(work, (error) => Effect.succeed(failed(ToolError.fromUnknown(error).message)))

/** Checks arguments by the schema of a tool, before anything runs. */
const checkArguments = (tool: Tool<unknown>, args: JsonObject): Effect.Effect<unknown, ToolError.ToolError> => {
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

/** Gives the id of a thread by its name. Fails if the name is invalid. */
const threadOf = (agent: string, named: Json | undefined): Effect.Effect<string | undefined, ToolError.ToolError> => {
  if (named === undefined || named === null || named === "") return Effect.undefined
  return typeof named === "string" && named.length <= mostThread
    ? Effect.succeed(`mcp/${agent}/${named}`)
    : ToolError.make(`thread: a text of at most ${mostThread} characters`)
}

const jsonOf = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

const objectOf = (args: unknown): JsonObject => (isObject(args) ? args : {})

/** Makes the input: JSON for a program, text for a model. */
const inputOf = (agent: object, parameters: JsonObject, args: JsonObject): Input => {
  const isTask = Object.keys(propertiesOf(parameters)).join(" ") === "task"
  const value: Json = isTask ? (args["task"] ?? "") : args
  return human(Predicate.isString(value) && !("input" in agent && !isTask) ? value : JSON.stringify(value))
}

/** Turns an agent into a tool of a server. */
export const ofAgent = (agent: Agent.Agent<unknown, unknown, unknown>, context: Context_): Work => {
  const tool = Agent.asTool(agent)
  // An own argument with this name stays.
  const hasThreads =
    Option.isSome(Context.getOption(context, Journal)) && !Object.hasOwn(propertiesOf(tool.parameters), "thread")
  const run: Work["run"] = (input, call) => {
    const { thread: named, ...rest } = objectOf(input)
    const args = hasThreads ? rest : objectOf(input)
    return call(agent.name, objectOf(input), (line) =>
      catchFailure(
        Effect.gen(function* () {
          yield* checkArguments(tool, args)
          const threadId = yield* threadOf(agent.name, hasThreads ? named : undefined)
          const result = yield* runToEnd(agent, inputOf(agent, tool.parameters, args), threadId, line, context)
          const json = typeof result.output === "string" ? undefined : Result.getOrUndefined(jsonOf(result.text))
          return answerOf(result.text, json)
        })
      )
    )
  }
  const parameters = hasThreads ? withThread(tool.parameters) : tool.parameters
  return { name: tool.name, description: tool.description, annotations: {}, parameters, run }
}

/** Turns a tool into a tool of a server. A program calls it, so that it has a run. */
export const ofTool = (tool: Tool<unknown>, context: Context_): Work => {
  const program = Agent.program({
    name: tool.name,
    input: Schema.Record(Schema.String, Schema.Json),
    output: Stored,
    tools: [tool],
    run: (args) => Effect.flatMap(ToolContext, ({ call }) => Effect.map(call(tool.name, args), toStored))
  })
  const run: Work["run"] = (input, call) =>
    call(tool.name, objectOf(input), (line) =>
      catchFailure(
        Effect.map(runToEnd(program, program.input(objectOf(input)), undefined, line, context), ({ output }) =>
          resultOf(output.content, output.isError)
        )
      )
    )
  const { annotations, description, name, parameters } = tool
  return { name, description, annotations, parameters, run }
}
