/**
 * Threads of the cluster as tasks in the background: a task goes on when the process ends that began it, and the next
 * process finds it by the state of its thread.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { AgentEntity, AgentWorker } from "effect-deepagents/durable"
 * import { BackgroundSubagents, BackgroundTasks } from "effect-deepagents/middleware"
 *
 * const researcher = Agent.make({ name: "researcher", description: "Answers one question", prompt: "You search." })
 * const entity = AgentEntity.make({ name: "researcher", agent: researcher })
 *
 * const lead = Agent.make({
 *   name: "lead",
 *   prompt: "You answer by sources.",
 *   middleware: [BackgroundSubagents.make({ agents: [AgentWorker.make(entity)] })]
 * })
 *
 * const program = Agent.run(lead, "Who invented the zip?", { threadId: "ada" }).pipe(
 *   Effect.provide(BackgroundTasks.layer())
 * )
 * ```
 */
import type * as Sharding from "effect/cluster/Sharding"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Decision } from "../core/Approval.ts"
import { makeId } from "../core/Message.ts"
import { fromUnknown } from "../core/ToolError.ts"
import { add, type Usage, zero } from "../core/Usage.ts"
import { type Ask, type Session, type TaskEnd, TaskError, type Worker } from "../middleware/BackgroundTasks.ts"
import * as AgentClient from "./AgentClient.ts"
import type { AgentEntity } from "./AgentEntity.ts"
import type { Outcome } from "./Outcome.ts"

/** The place of a task for another process: its thread, and its last input, which it sends again. */
const Kept = Schema.Struct({ threadId: Schema.String, inputId: Schema.String, text: Schema.String })
const decodeKept = Schema.decodeUnknownResult(Kept)

const endOf = ({ pending, stopReason, text }: Outcome<unknown>): TaskEnd => {
  if (stopReason === "interrupted") return { status: "cancelled", text: "It was stopped." }
  if (stopReason !== "suspended")
    return { status: "completed", text: text === "" ? "The agent ended without an answer." : text }
  return {
    status: "suspended",
    text: pending.map(({ description, toolName }) => `- ${toolName}: ${description}`).join("\n"),
    pending
  }
}

const unavailable = (error: unknown): TaskError =>
  new TaskError({ reason: { _tag: "Unavailable", problem: fromUnknown(error).message } })

/** One task: a thread of the entity, and its last input. */
const makeSession = <O, E>(
  thread: AgentClient.AgentClient<O, E>,
  last: { readonly inputId: string; readonly text: string } | undefined
): Session => {
  let input = last
  let usage: Usage | undefined
  const finish = (work: Effect.Effect<Outcome<unknown>, unknown>): Effect.Effect<TaskEnd> =>
    Effect.match(work, {
      onFailure: (error): TaskEnd => ({ status: "failed", text: fromUnknown(error).message }),
      onSuccess: (outcome) => {
        usage = add(usage ?? zero, outcome.usage)
        return endOf(outcome)
      }
    })
  /** Sends the last input: sent again, it gives the outcome that it had. */
  const send = Effect.suspend(() => thread.send(input?.text ?? "", { id: input?.inputId }))
  const say = (text: string) => {
    input = { inputId: makeId(), text }
    return finish(send)
  }
  /** The input has the outcome that it had first. Its requests may be decided since. */
  const askAgain = (outcome: Outcome<unknown>): Effect.Effect<Outcome<unknown>, unknown> =>
    outcome.stopReason === "suspended" ? thread.decide([], { id: makeId() }) : Effect.succeed(outcome)
  const decide = (decisions: ReadonlyArray<Decision>) => finish(thread.decide(decisions))
  const begin = (ask: Ask): Effect.Effect<TaskEnd> => {
    switch (ask._tag) {
      case "Start":
        return say(ask.description)
      case "Message":
        return say(ask.text)
      case "Decisions":
        return decide(ask.decisions)
      case "Resume":
        return finish(Effect.flatMap(send, askAgain))
    }
  }
  return {
    begin: (ask) => Effect.sync(() => begin(ask)),
    steer: (message) =>
      Effect.match(thread.steer(message), { onFailure: () => "ended" as const, onSuccess: () => "told" as const }),
    cancel: Effect.mapError(Effect.asVoid(thread.interrupt), unavailable),
    usage: () => usage,
    kept: () => (input === undefined ? undefined : { threadId: thread.threadId, ...input }),
    // A thread may wait for days.
    maxDuration: Duration.infinity
  }
}

/**
 * Makes an entity a worker of `BackgroundSubagents`. A task is a thread of it, on any runner of the cluster, and a message
 * in it is an input of the thread. `BackgroundTasks.decide` and the inbox of the cluster decide what it asks.
 *
 * A task has the budgets of its own agent, not the budget of the run that began it, and no time limit.
 */
export const make = <O, E, R>(entity: AgentEntity<O, E, R>): Worker<Sharding.Sharding> => {
  const open = (threadId: string, last?: { readonly inputId: string; readonly text: string }) =>
    Effect.map(AgentClient.of(entity, threadId), (thread) => makeSession(thread, last))
  return {
    name: entity.agent.name,
    description: entity.agent.description,
    open: Effect.orDie(Effect.suspend(() => open(makeId()))),
    reopen: (json) => {
      const place = decodeKept(json)
      return Result.isFailure(place)
        ? Effect.undefined
        : Effect.orElseSucceed(open(place.success.threadId, place.success), () => undefined)
    }
  }
}
