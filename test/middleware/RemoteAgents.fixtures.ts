import { Effect, Layer, Result, Schedule } from "effect"
import { Agent } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, RemoteAgents } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { FetchHttpClient } from "effect/http"
import { answers, start, threads } from "./BackgroundSubagents.fixtures.ts"
import type { server } from "./RemoteAgents.server.ts"

/** A server of the tests. */
export type Server = Effect.Success<typeof server>

/** Its agent. */
export const analyst = ({ url }: Pick<Server, "url">, options?: Partial<Parameters<typeof RemoteAgents.make>[0]>) =>
  RemoteAgents.make({
    name: "analyst",
    description: "analyses",
    url,
    agentId: "analyst",
    pollInterval: "5 millis",
    timeout: "20 seconds",
    ...options
  })

/** An agent with that one in the background. */
export const remoteLead = (worker: ReturnType<typeof RemoteAgents.make>) =>
  Agent.make({ name: "lead", prompt: "lead", middleware: [BackgroundSubagents.make({ agents: [worker] })] })

/** Waits for an action of a real server. */
export const until = (what: string, condition: () => boolean) =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.fail(new Error(`it never came to: ${what}`)))).pipe(
    Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 6_000 }),
    Effect.orDie
  )

const { calls } = TestChatModel
/** The services of the tests with a server. */
export const live = Layer.mergeAll(FetchHttpClient.layer, threads)
/** A message of the agent there. */
export const makeAnswer = (content: unknown) => ({ type: "ai", content, id: "a", tool_calls: [] })

/** Waits until the one task of a supervisor does not run. */
export const over = Effect.gen(function* () {
  const tasks = yield* BackgroundTasks.BackgroundTasks
  const [task] = yield* tasks.list()
  return yield* tasks.check(task?.key ?? "", 30_000)
})

/** Starts one task. Returns the model's messages about it when it is over. */
export const toldOf = (worker: ReturnType<typeof RemoteAgents.make>, meanwhile: Effect.Effect<void> = Effect.void) =>
  Effect.gen(function* () {
    const agent = remoteLead(worker)
    const first = yield* Agent.run(agent, "one")
    yield* meanwhile
    const ended = Result.getOrThrow(BackgroundSubagents.tasks(first.state)).length > 0 ? yield* over : undefined
    const tasks = yield* BackgroundTasks.BackgroundTasks
    return { told: answers(first.messages)[0] ?? "", ended, left: (yield* tasks.list()).length }
  }).pipe(
    Effect.provide([
      BackgroundTasks.layer(),
      TestChatModel.reactive(({ messages }) => (messages.length === 1 ? calls([start("analyst", "count")]) : "ok"))
    ])
  )
