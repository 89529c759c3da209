/**
 * The tool of the demo's own: a list of todos. All that has to do with files is the library's.
 */
import { Effect, Schema } from "effect"
import { AgentState, Tool, ToolOutput } from "effect-deepagents"

/** What is still to do, as the agent sees it. */
const Todo = Schema.Struct({
  content: Schema.String,
  status: Schema.Literals(["pending", "in_progress", "completed"])
})

export const todos = AgentState.slot("todos", { schema: Schema.Array(Todo), initial: [] })

export const writeTodos = Tool.make("write_todos", {
  description: "Replaces your list of todos. Write it first, and again whenever a status changes.",
  parameters: { todos: Schema.Array(Todo) },
  annotations: { idempotent: true },
  execute: (args) =>
    Effect.succeed(
      ToolOutput.make(
        `${args.todos.filter((todo) => todo.status === "completed").length} of ${args.todos.length} done`,
        { state: [AgentState.assign(todos, args.todos)] }
      )
    )
})
