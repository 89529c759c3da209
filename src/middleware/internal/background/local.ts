/** Makes an agent of this process a background worker. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Agent from "../../../core/Agent.ts"
import { isTerminal } from "../../../core/AgentEvent.ts"
import type { AgentResult } from "../../../core/AgentResult.ts"
import * as Checkpoint from "../../../core/Checkpoint.ts"
import { Journal } from "../../../core/Journal.ts"
import type { Message } from "../../../core/Message.ts"
import { CurrentRun } from "../../../core/Run.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import { fromUnknown } from "../../../core/ToolError.ts"
import { add, type Usage, zero } from "../../../core/Usage.ts"
import { type Ask, type TaskEnd, type Session, type Worker } from "../../BackgroundTasks.ts"
import type { Fork } from "../../Subagents.ts"
import { withoutOpenTurn } from "../handoffs.ts"
import { Beside } from "../ledger.ts"
import { makeJournal } from "./memory.ts"

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** The depth of background agents above the current fiber. */
export const Depth = Context.Reference<number>("effect-deepagents/middleware/BackgroundSubagents/Depth", {
  defaultValue: () => 0
})

const endingOf = (result: AgentResult<unknown>): TaskEnd =>
  result.stopReason === "suspended"
    ? {
        status: "suspended",
        text: result.pending.map(({ description, toolName }) => `- ${toolName}: ${description}`).join("\n"),
        pending: result.pending
      }
    : { status: "completed", text: result.text === "" ? "The sub-agent ended without an answer." : result.text }

/** The thread of a task in its own journal. */
const inThread = { threadId: "task" }

/** One task of a local agent: its runs, each with the result of the last one, or all on one thread that keeps records. */
const makeSession = (agent: AnyAgent, history: ReadonlyArray<Message>, context: Context.Context<never>): Session => {
  const journal = Agent.keepsRecords(agent) ? makeJournal() : undefined
  let last: AgentResult<unknown> | undefined
  let current: Agent.Handle<unknown, unknown> | undefined
  let earlierUsage: Usage = zero
  let spending: Usage = zero

  const work = (input: Agent.Input, options: Agent.RunOptions): Effect.Effect<TaskEnd, unknown, unknown> =>
    Effect.gen(function* () {
      const handle = yield* Agent.start(agent, input, options)
      current = handle
      const reader = yield* handle.events.pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => {
            if (isTerminal(event) && event.runId === handle.runId) spending = event.usage
            else if (event._tag === "RoundCompleted") spending = add(spending, event.usage)
          })
        ),
        Effect.forkScoped({ startImmediately: true })
      )
      const result = yield* Effect.onError(handle.await, (cause) =>
        Cause.hasInterrupts(cause) ? Effect.void : Fiber.await(reader)
      )
      yield* Fiber.await(reader)
      last = result
      const undelivered = yield* handle.undelivered
      return { result, undelivered }
    }).pipe(
      Effect.scoped,
      Effect.ensuring(
        Effect.sync(() => {
          current = undefined
          earlierUsage = add(earlierUsage, spending)
          spending = zero
        })
      ),
      Effect.flatMap(({ result, undelivered }) =>
        undelivered.length > 0 && result.stopReason !== "suspended"
          ? work(undelivered, journal === undefined ? { history: result.messages, state: result.state } : inThread)
          : Effect.succeed(endingOf(result))
      )
    )

  const startRun = (ask: Ask): Effect.Effect<TaskEnd, unknown, unknown> => {
    const then =
      journal !== undefined
        ? inThread
        : last === undefined
          ? { history }
          : { history: last.messages, state: last.state }
    const checkpoint = journal === undefined ? last : undefined
    const onThread = journal === undefined ? {} : inThread
    switch (ask._tag) {
      case "Start":
        return work(ask.description, then)
      case "Message":
        return work(ask.text, then)
      case "Decisions":
        return work(Checkpoint.resume(checkpoint, { decisions: ask.decisions }), onThread)
      case "Resume":
        return work(Checkpoint.resume(checkpoint), onThread)
    }
  }

  return {
    begin: (ask) =>
      Effect.succeed(
        Effect.suspend(() => startRun(ask)).pipe(
          Effect.catch((error) => Effect.succeed<TaskEnd>({ status: "failed", text: fromUnknown(error).message })),
          // The agent gets the services of the task's start, whoever sends later messages.
          (effect) =>
            Effect.updateContext(effect as Effect.Effect<TaskEnd>, () =>
              journal === undefined ? context : Context.add(context, Journal, journal)
            )
        )
      ),
    steer: (message) =>
      Effect.suspend(() =>
        current === undefined
          ? Effect.succeed("ended" as const)
          : Effect.match(current.steer(message), {
              onSuccess: () => "told" as const,
              onFailure: () => "ended" as const
            })
      ),
    cancel: Effect.void,
    usage: () => add(earlierUsage, spending),
    keepsWork: journal !== undefined,
    kept: () => undefined
  }
}

/** Makes a background worker of a local agent. */
export const local = (entry: AnyAgent | Fork<AnyAgent>): Worker<unknown> => {
  const agent = "fork" in entry ? entry.fork : entry
  return {
    name: agent.name,
    description: agent.description,
    reopen: undefined,
    open: Effect.gen(function* () {
      const { messages, run } = yield* ToolContext
      const depth = (yield* Depth) + run.depth + 1
      // The call and its run may end before the task needs them.
      const context = Context.omit(ToolContext)(yield* Effect.context<ToolContext>()).pipe(
        Context.add(CurrentRun, undefined),
        Context.add(Depth, depth),
        Context.add(Beside, true)
      )
      const history = "fork" in entry ? withoutOpenTurn(yield* messages) : []
      return makeSession(yield* Agent.detached(agent), history, context)
    })
  }
}
