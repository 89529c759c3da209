import { Effect, Layer, Result } from "effect"
import { Agent, type AgentState, Message, type Middleware } from "effect-deepagents"
import { BackgroundSubagents } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

/** A call of `start_task`. */
export const start = (type: string, description: string) => ({
  name: "start_task",
  arguments: { subagent_type: type, description }
})

export const check = (id: string, wait?: number) => ({
  name: "check_task",
  arguments: { task_id: id, ...(wait === undefined ? {} : { wait_seconds: wait }) }
})

export const update = (id: string, message: string) => ({
  name: "update_task",
  arguments: { task_id: id, message }
})

export const cancel = (id: string) => ({ name: "cancel_task", arguments: { task_id: id } })

export const list = (status?: string) => ({ name: "list_tasks", arguments: status === undefined ? {} : { status } })

const turnsOf = (messages: ReadonlyArray<Message.Message>) => messages.filter(({ role }) => role === "ai").length

/** An agent that answers "did <task>" after so many seconds, with a model of its own. */
export const worker = (name: string, seconds: number) =>
  Agent.provide(
    Agent.make({ name, description: `works ${seconds} s`, prompt: name }),
    TestChatModel.reactive(({ messages }) =>
      TestChatModel.text(`did ${Message.text(messages.at(-1) ?? Message.human(""))} (${turnsOf(messages) + 1})`, {
        delay: `${seconds} seconds`,
        usage: { outputTokens: 7 }
      })
    )
  )

/** An agent whose model fails. */
export const broken = Agent.provide(
  Agent.make({ name: "broken", description: "fails", prompt: "broken" }),
  TestChatModel.reactive(() => TestChatModel.fail({ _tag: "Overloaded" }))
)

/** The results of tools, in their order. */
export const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

/** The announced tasks. */
export const notices = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) =>
    message.role === "human" && message.source === BackgroundSubagents.source ? [Message.text(message)] : []
  )

/** The states of a result's tasks: `id:status`. */
export const statuses = (result: { readonly state: AgentState.Snapshot }) =>
  Result.getOrThrow(BackgroundSubagents.tasks(result.state)).map(({ id, status }) => `${id}:${status}`)

/** Threads in memory, with a journal. */
export const threads = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))

/** The messages that a thread has come to. */
export const transcript = (threadId: string) =>
  Effect.map(SessionStore.checkpoint(threadId), (checkpoint) => checkpoint?.messages ?? [])

type Entries = Parameters<typeof BackgroundSubagents.make>[0]["agents"]

/** An agent with these in the background. */
export const lead = <
  const Agents extends Entries,
  const Stack extends ReadonlyArray<Middleware.Middleware<unknown, unknown>>
>(
  agents: Agents,
  ...middleware: Stack
) => Agent.make({ name: "lead", prompt: "lead", middleware: [BackgroundSubagents.make({ agents }), ...middleware] })

/** The turns of the agent that is tested. */
export const script = (turns: ReadonlyArray<TestChatModel.Turn>) => TestChatModel.script(turns)
