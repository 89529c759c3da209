/**
 * Gives the model a todo list: `write_todos` replaces it, or merges into it by id.
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
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AgentState from "../core/AgentState.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import { once } from "../support/effect/once.ts"
import * as Given from "./internal/givenTodos.ts"

const name = "Todos"

/** The status of a todo. */
const Status = Given.Status
type Status = Given.Status

/** One todo. */
const Todo = Schema.Struct({ id: Schema.String, content: Schema.String, status: Status })
/** One step of a plan. */
export interface Todo extends Schema.Schema.Type<typeof Todo> {}

/** The list: in the agent's own state and in every checkpoint. */
export const todos = AgentState.slot("todos", { schema: Schema.Array(Todo), initial: [] })

/** The most todos, and characters of each. */
const limits = { todos: 100, characters: 1_000 } as const

/** The name of the tool. */
const toolName = "write_todos"

const marks: { readonly [S in Status]: string } = {
  pending: "[ ]",
  in_progress: "[>]",
  completed: "[x]",
  cancelled: "[-]"
}

/** Formats the list as the model reads it. */
export const render = (list: ReadonlyArray<Todo>): string =>
  list.length === 0
    ? "The list is empty."
    : list.map(({ content, id, status }) => `${marks[status]} ${id}. ${content}`).join("\n")

/** Selects the unfinished todos, for a summary. */
export const open = (list: ReadonlyArray<Todo>): ReadonlyArray<Todo> =>
  list.filter(({ status }) => status === "pending" || status === "in_progress")

/** Returns the new list, or the list with it merged in: todos with a known id are replaced, the others appended. */
const applyTodos = (
  list: ReadonlyArray<Todo>,
  items: ReadonlyArray<Given.TodoArgument>,
  isMerge: boolean
): Result.Result<ReadonlyArray<Todo>, string> => {
  const earlierTodos = new Map(isMerge ? list.map((todo) => [todo.id, todo]) : [])
  const used = new Set([...earlierTodos.keys(), ...items.flatMap(({ id }) => id ?? [])])
  let next = 1
  const fresh: Array<Todo> = []
  for (const [index, { content, id, status }] of items.entries()) {
    const before = id === undefined ? undefined : earlierTodos.get(id)
    const text = content ?? before?.content
    if (text === undefined) return Result.fail(`Todo ${id ?? index + 1} has no content. Say what is to be done.`)
    while (id === undefined && used.has(`${next}`)) next++
    const own = id ?? `${next}`
    used.add(own)
    fresh.push({ id: own, content: text, status: status ?? before?.status ?? "pending" })
  }
  const byId = new Map(fresh.map((todo) => [todo.id, todo]))
  return Result.succeed([
    ...[...earlierTodos.values()].map((todo) => byId.get(todo.id) ?? todo),
    ...fresh.filter(({ id }) => !earlierTodos.has(id))
  ])
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

const description =
  "Writes your list of todos, for work of more than a few steps: plan first, then mark what you begin and what is done, " +
  "one in progress at a time. For one or two steps make none. " +
  "The list is replaced, unless merge is set: then those with a known id are changed, and others are added."

const merge = Schema.optionalKey(Schema.Boolean)

/** The tool as the model sees it. */
const strictTool = () =>
  Tool.make(toolName, {
    description,
    parameters: {
      todos: Schema.Array(
        Schema.Struct({
          id: Schema.optionalKey(Schema.String.annotate({ description: "Numbered, if you give none." })),
          content: Schema.String,
          status: Status
        })
      ),
      merge
    },
    execute: () => Effect.succeed("")
  })

/** The tool as calls are decoded: it accepts more than its schema demands. */
const lenientTool = () =>
  Tool.make(toolName, {
    description,
    parameters: { todos: Schema.Json, merge },
    annotations: { idempotent: true, destructive: false, openWorld: false, aliases: ["TodoWrite"] },
    execute: Effect.fnUntraced(function* ({ merge = false, todos: input }) {
      const { state } = yield* ToolContext
      const before = yield* state.get(todos)
      const change = Result.flatMap(Given.decodeTodos(input), (items) =>
        Result.map(applyTodos(before, items, merge), (list) => ({ items, list }))
      )
      const wrong = Result.isFailure(change) ? change.failure : problem(change.success.list)
      if (Result.isFailure(change) || wrong !== undefined) {
        return yield* Effect.fail(ToolError.make(`${wrong} The list is as it was.`))
      }
      const { items, list } = change.success
      // An update, so that two calls of one round both count.
      yield* state.update(todos, (current) =>
        merge ? Result.getOrElse(applyTodos(current, items, merge), () => current) : list
      )
      return render(yield* state.get(todos))
    })
  })

const writeTodos = once(() => ({ ...lenientTool(), parameters: strictTool().parameters }))

/** Offers `write_todos`. The tool's description explains its use. */
export const make = (): Middleware.Middleware<never, ToolContext> =>
  Middleware.make({
    name,
    state: [todos],
    tools: [writeTodos()]
  })
