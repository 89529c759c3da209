/**
 * A list of todos that the model keeps for itself: `write_todos` replaces it, or merges into it by id.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, AgentState } from "effect-deepagents"
 * import { Todos } from "effect-deepagents/middleware"
 *
 * const planner = Agent.make({ name: "planner", prompt: "You work by a plan.", middleware: [Todos.make()] })
 *
 * const open = Effect.map(Agent.run(planner, "Move the docs"), ({ state }) => AgentState.read(state, Todos.todos))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentState from "../core/AgentState.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"

/** What a todo can be. */
export const Status = Schema.Literals(["pending", "in_progress", "completed", "cancelled"])
export type Status = typeof Status.Type

/** One todo. */
export const Todo = Schema.Struct({ id: Schema.String, content: Schema.String, status: Status })
export type Todo = typeof Todo.Type

/** The list: an agent's own, in its state and in every checkpoint. */
export const todos = AgentState.slot("todos", { schema: Schema.Array(Todo), initial: [] })

/** At most so many todos, of so many characters each. */
export const limits = { todos: 100, characters: 1_000 } as const

/** The name of the tool. */
export const toolName = "write_todos"

const marks: { readonly [S in Status]: string } = {
  pending: "[ ]",
  in_progress: "[>]",
  completed: "[x]",
  cancelled: "[-]"
}

/** The list as the model reads it. */
export const render = (list: ReadonlyArray<Todo>): string =>
  list.length === 0
    ? "The list is empty."
    : list.map(({ content, id, status }) => `${marks[status]} ${id}. ${content}`).join("\n")

/** What is not done yet, for what keeps it in sight (a summary). */
export const open = (list: ReadonlyArray<Todo>): ReadonlyArray<Todo> =>
  list.filter(({ status }) => status === "pending" || status === "in_progress")

interface Given {
  readonly id?: string
  readonly content: string
  readonly status: Status
}

const numbered = (given: ReadonlyArray<Given>, taken: ReadonlyArray<string>): ReadonlyArray<Todo> => {
  const used = new Set([...taken, ...given.flatMap(({ id }) => (id === undefined ? [] : [id]))])
  let next = 1
  return given.map(({ content, id, status }) => {
    if (id !== undefined) return { id, content, status }
    while (used.has(`${next}`)) next++
    used.add(`${next}`)
    return { id: `${next}`, content, status }
  })
}

/** Those with a known id take its place; the others come after. */
const merged = (list: ReadonlyArray<Todo>, given: ReadonlyArray<Given>): ReadonlyArray<Todo> => {
  const fresh = numbered(
    given,
    list.map(({ id }) => id)
  )
  const byId = new Map(fresh.map((todo) => [todo.id, todo]))
  const known = new Set(list.map(({ id }) => id))
  return [...list.map((todo) => byId.get(todo.id) ?? todo), ...fresh.filter(({ id }) => !known.has(id))]
}

const problem = (list: ReadonlyArray<Todo>): string | undefined => {
  if (list.length > limits.todos)
    return `There would be ${list.length} todos; at most ${limits.todos} are kept. Drop what is done.`
  const long = list.find(({ content }) => content.length > limits.characters)
  if (long !== undefined)
    return `Todo ${long.id} has ${long.content.length} characters; at most ${limits.characters} are kept.`
  const twice = list.find(({ id }, index) => list.findIndex((other) => other.id === id) !== index)
  return twice === undefined ? undefined : `Two todos have the id "${twice.id}". Give each its own.`
}

const writeTodos = Tool.make(toolName, {
  description:
    "Writes your list of todos, for work of more than a few steps: plan first, then mark what you begin and what is done, " +
    "one in progress at a time. For one or two steps make none. " +
    "The list is replaced, unless merge is set: then those with a known id are changed, and others are added.",
  parameters: {
    todos: Schema.Array(
      Schema.Struct({
        id: Schema.optionalKey(Schema.String.annotate({ description: "Numbered, if you give none." })),
        content: Schema.String,
        status: Status
      })
    ),
    merge: Schema.optionalKey(Schema.Boolean)
  },
  annotations: { idempotent: true },
  execute: Effect.fnUntraced(function* ({ merge, todos: given }) {
    const { state } = yield* ToolContext
    const list = merge === true ? merged(yield* state.get(todos), given) : numbered(given, [])
    const wrong = problem(list)
    if (wrong !== undefined) return yield* Effect.fail(ToolError.make(`${wrong} The list is as it was.`))
    // By an update, so that of two calls in one round neither is lost.
    yield* state.update(todos, (current) => (merge === true ? merged(current, given) : list))
    return render(yield* state.get(todos))
  })
})

/** Offers `write_todos`. When to use it is in its description, which goes where it goes. */
export const make = (): Middleware.Middleware<never, ToolContext> =>
  Middleware.make({
    name: "Todos",
    state: [todos],
    tools: [writeTodos]
  })
