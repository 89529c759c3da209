/**
 * Uses agents on servers as background sub-agents: over HTTP, by the LangGraph server API or the Agent Protocol.
 *
 * The address comes from you and never from a model. The server's answers are untrusted: they are decoded, limited in
 * size, and never quoted in errors.
 *
 * ```ts
 * import { Redacted } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { BackgroundSubagents, RemoteAgents } from "effect-deepagents/middleware"
 *
 * const analyst = RemoteAgents.make({
 *   name: "analyst",
 *   description: "Analyses figures",
 *   url: "https://agents.example.com",
 *   agentId: "analyst",
 *   headers: { "x-api-key": Redacted.make("…") }
 * })
 *
 * const lead = Agent.make({
 *   name: "lead",
 *   prompt: "You answer by figures.",
 *   middleware: [BackgroundSubagents.make({ agents: [analyst] })]
 * })
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import type * as Redacted from "effect/Redacted"
import { nameIn } from "../core/schema/invalid.ts"
import { zero } from "../core/Usage.ts"
import { check } from "../support/options/check.ts"
import type { Worker } from "./BackgroundTasks.ts"
import type { Protocol, Target } from "./internal/background/remoteClient.ts"
import { type Account, decodeKept, type SessionRecord, makeSession } from "./internal/background/remoteSession.ts"
import { draw } from "./internal/ledger.ts"
import { countProblem, timeOf, timeProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"

export type { Protocol }

/** An agent on a server. */
export interface Options {
  /** The name for the model. */
  readonly name: string
  /** Tells the model when to choose this agent. */
  readonly description: string
  /** The server's address with the path before the API's own; `http:` or `https:`. */
  readonly url: string
  /** The assistant or graph (LangGraph), or the agent (Agent Protocol). */
  readonly agentId: string
  /** The protocol of the server. Default: `langgraph`. */
  readonly protocol?: Protocol | undefined
  /**
   * Headers of every request. Give keys as `Redacted`, which keeps them out of logs, spans and errors. Default: none.
   */
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted<string>>> | undefined
  /** The time between two polls of a run. Default: 2 seconds. */
  readonly pollInterval?: Duration.Input | undefined
  /** The time limit of one request. Default: 30 seconds. */
  readonly timeout?: Duration.Input | undefined
  /** The largest answer in bytes; a thread is read whole at the end of a run. Default: 10 MiB. */
  readonly maxBytes?: number | undefined
}

const millis = (input: Duration.Input): number => Duration.toMillis(timeOf(input))

const checkMake = check(shapes.remoteAgentsMake)

/**
 * Makes an agent on a server a worker of background tasks. A task is a thread there, a follow-up a run on it.
 *
 * The task continues when this process ends, and the next process resumes it from the state of the thread here. Failed
 * requests are retried; after 10 consecutive failures the task is `lost`, and `check_task` tries once more. A run that
 * waits for a person there is `suspended`, and can only be decided there.
 *
 * The tokens in a thread's messages (`usage_metadata`, after a run) count in the task's `usage` and on the `Budget` of
 * the run that started it. When that is used up, no task and no follow-up starts. A task that another process resumed
 * is on no budget.
 */
export const make = (options: Options): Worker<HttpClient> => {
  const wrong = checkMake(options)
  if (wrong !== undefined) {
    const problem = `RemoteAgents: ${wrong}`
    return {
      name: nameIn(options),
      description: "",
      problem,
      open: Effect.die(problem),
      reopen: () => Effect.die(problem)
    }
  }
  const { agentId, description, headers = {}, maxBytes = 10 * 1024 * 1024, name, protocol = "langgraph", url } = options
  const target: Target = { url, agentId, protocol, headers, maxBytes, timeout: millis(options.timeout ?? "30 seconds") }
  const pollInterval = millis(options.pollInterval ?? "2 seconds")
  // Programs without remote agents don't load an HTTP client.
  const client = Effect.flatMap(
    Effect.promise(() => import("./internal/background/remoteClient.ts")),
    ({ connect }) => connect(target)
  )
  const open = (record: SessionRecord | undefined, account: Account) =>
    Effect.map(client, (it) => makeSession(it, pollInterval, record, account))
  return {
    name,
    problem:
      countProblem("RemoteAgents", { maxBytes }, 1) ??
      timeProblem("RemoteAgents", { timeout: options.timeout, pollInterval: options.pollInterval }),
    description,
    open: Effect.gen(function* () {
      const total = { usage: zero }
      return yield* open(undefined, { spent: total, usedUp: yield* draw(total) })
    }),
    reopen: (json) => {
      const record = decodeKept(json)
      // The run with its budget belongs to another process.
      const account: Account = { spent: { usage: zero }, usedUp: Effect.undefined }
      return record === undefined ? Effect.succeed(undefined) : open(record, account)
    }
  }
}
