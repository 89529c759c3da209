/** Answers the calls of a script to sub-agents, also in a schema that the script chose. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Agent from "../../core/Agent.ts"
import { fromUnknown, isObject, type Json, type JsonObject, stringify } from "../../core/Json.ts"
import { fromJsonSchema } from "../../core/schema/arguments.ts"
import { toEffect } from "../../core/schema/decoding.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import * as ToolError from "../../core/ToolError.ts"
import type { Usage } from "../../core/Usage.ts"
import { sha256Sync } from "../../support/store/sha256.ts"
import { cut } from "../../support/text/text.ts"
import type { Refusal } from "./host.ts"

/** An agent of any kind. */
export type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** The agents of a script. `askCounts` counts how often they were asked the same in a schema. */
export interface Agents {
  readonly agents: ReadonlyArray<AnyAgent>
  readonly askCounts: Map<string, number>
  /** Called with the use of each agent that has answered, also of an answer that was stored. */
  readonly onUsage?: ((usage: Usage) => void) | undefined
}

/** The longest schema of an answer, in characters. */
const maxSchema = 16_000

/** How often an answer that does not fit is sent back. */
const repairs = 2

const refuse = (message: string, reason: string): Refusal => ({ name: "AgentError", message, reason })

const fromFailure = (error: unknown): Refusal => {
  const { message, reason } = ToolError.fromUnknown(error)
  return refuse(message, reason)
}

type AgentAnswer<A> = Effect.Effect<A, Refusal, unknown>

const optionAt = (args: JsonObject, key: string): string | undefined => {
  const value = args[key]
  return typeof value === "string" ? value : undefined
}

/** Finds the agent that a call names: without a name, the first one. */
const findAgent = (agents: ReadonlyArray<AnyAgent>, args: Json): Result.Result<AnyAgent, Refusal> => {
  const name = isObject(args) ? optionAt(args, "agent") : undefined
  const agent = name === undefined ? agents[0] : agents.find((one) => one.name === name)
  if (agent !== undefined) return Result.succeed(agent)
  const names = agents.map((one) => `"${one.name}"`).join(", ")
  const listed = names === "" ? "This script has no agents." : `There are: ${names}.`
  return Result.fail(refuse(`There is no agent "${cut(name ?? "", 100)}". ${listed}`, "UnknownAgent"))
}

/** The answer as JSON. Values of an output schema arrive encoded. */
const ask = ({ onUsage }: Agents, agent: AnyAgent, prompt: string, session: string | undefined): AgentAnswer<Json> =>
  Effect.mapError(
    Effect.flatMap(Agent.delegate(agent, prompt, session === undefined ? {} : { session }), (result) => {
      onUsage?.(result.usage)
      return result.output === undefined || result.text === ""
        ? Effect.fail(ToolError.make(`The agent stopped without an answer (${result.stopReason}).`))
        : Effect.succeed(typeof result.output === "string" ? result.output : jsonIn(result.text, result.output))
    }),
    fromFailure
  )

const parse = (text: string): Result.Result<Json, string> =>
  Result.try({
    try: (): Json => JSON.parse(text),
    catch: (cause) => (cause instanceof Error ? cause.message : "it is no JSON")
  })

const jsonIn = (text: string, output: unknown): Json => Result.getOrElse(parse(text), () => fromUnknown(output))

/** The JSON of an answer, which may stand in a fence or between words. */
const findJson = (answer: Json): Result.Result<Json, string> => {
  if (typeof answer !== "string") return Result.succeed(answer)
  const opening = /```(?:json)?[^\S\n]*\n/.exec(answer)
  if (opening === null) return parse(answer.trim())
  const start = opening.index + opening[0].length
  const end = answer.indexOf("```", start)
  return parse((end === -1 ? answer : answer.slice(start, end)).trim())
}

const instructions = (schema: JsonObject): string =>
  `\n\nAnswer with JSON alone, in this JSON Schema:\n${stringify(schema)}`

/** Asks for an answer in a schema. What does not fit goes back to the agent, in the same conversation. */
const askInSchema = Effect.fnUntraced(function* (
  all: Agents,
  agent: AnyAgent,
  prompt: string,
  session: string,
  schema: JsonObject
) {
  const { $defs, definitions, ...own } = schema
  const decoder = fromJsonSchema({
    type: "object",
    properties: { answer: own },
    required: ["answer"],
    ...($defs === undefined ? {} : { $defs }),
    ...(definitions === undefined ? {} : { definitions })
  })
  let problem = ""
  for (let turn = 0; turn <= repairs; turn++) {
    const words =
      turn === 0
        ? `${prompt}${instructions(schema)}`
        : `That does not fit the schema. Answer again, with JSON alone.\n${problem}`
    const json = findJson(yield* ask(all, agent, words, session))
    if (Result.isFailure(json)) {
      problem = json.failure
      continue
    }
    const decoded = yield* Effect.result(toEffect(decoder.decode({ answer: json.success })))
    if (Result.isSuccess(decoded)) return decoded.success.json["answer"] ?? null
    problem = decoded.failure.message
  }
  return yield* Effect.fail(refuse(`The agent did not answer in the schema: ${cut(problem, 1_000)}`, "InvalidOutput"))
})

/** Answers `agent(prompt, { agent, session, schema })`. */
export const answerAgent = (all: Agents, args: Json): AgentAnswer<Json> =>
  Effect.gen(function* () {
    const { agents, askCounts } = all
    const agent = yield* Effect.fromResult(findAgent(agents, args))
    const options = isObject(args) ? args : {}
    const prompt = optionAt(options, "prompt") ?? ""
    const session = optionAt(options, "session")
    const { schema } = options
    if (prompt.trim() === "") return yield* Effect.fail(refuse("Give the agent a prompt.", "InvalidInput"))
    if (schema === undefined || schema === null) return yield* ask(all, agent, prompt, session)
    if (!isObject(schema) || stringify(schema).length > maxSchema) {
      const problem = `The schema must be a JSON Schema of at most ${maxSchema} characters.`
      return yield* Effect.fail(refuse(problem, "InvalidInput"))
    }
    // Equal askings are told apart by their order, as calls of one name and arguments are.
    const key = sha256Sync(canonical([agent.name, prompt, schema])).slice(0, 32)
    const nth = (askCounts.get(key) ?? 0) + 1
    askCounts.set(key, nth)
    return yield* askInSchema(all, agent, prompt, session ?? `script/${key}#${nth}`, schema)
  })
