/** Decodes todos as models write them: small models use other names, and a rejected call costs a round. */
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"

/** The status of a todo. */
export const Status = Schema.Literals(["pending", "in_progress", "completed", "cancelled"])
export type Status = typeof Status.Type

/** A todo of a call, with its fields optional. */
export interface TodoArgument {
  readonly id: string | undefined
  readonly content: string | undefined
  readonly status: Status | undefined
}

const words: { readonly [S in Status]: ReadonlyArray<string> } = {
  pending: ["pending", "todo", "open", "notstarted", "planned", "queued", "new", ""],
  in_progress: ["inprogress", "doing", "active", "started", "working", "current", "ongoing", "running"],
  completed: ["completed", "complete", "done", "finished", "closed", "x", "true"],
  cancelled: ["cancelled", "canceled", "skipped", "dropped", "abandoned", "obsolete"]
}

const statuses = new Map(Status.literals.flatMap((status) => words[status].map((word) => [word, status] as const)))

const contentKeys = ["content", "task", "step", "title", "text", "todo", "description", "name", "subject"]
const statusKeys = ["status", "state"]
const doneKeys = ["completed", "done"]

const parseJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** The value of the first of these keys with content. */
const under = (todo: JsonObject, keys: ReadonlyArray<string>): Json | undefined =>
  keys
    .map((key) => (Object.hasOwn(todo, key) ? todo[key] : undefined))
    .find((value) => value !== undefined && value !== null)

const textOf = (value: Json | undefined): string | undefined =>
  typeof value === "string"
    ? value.trim()
    : typeof value === "number" || typeof value === "boolean"
      ? `${value}`
      : undefined

const statusOf = (todo: JsonObject): Result.Result<Status | undefined, string> => {
  const text = textOf(under(todo, statusKeys))
  if (text !== undefined) {
    const status = statuses.get(text.toLowerCase().replaceAll(/[^a-z]/g, ""))
    return status === undefined
      ? Result.fail(`The status ${JSON.stringify(text.slice(0, 40))} is none of ${Status.literals.join(", ")}.`)
      : Result.succeed(status)
  }
  return Result.succeed(under(todo, doneKeys) === true ? "completed" : undefined)
}

const readOne = (todo: Json): Result.Result<TodoArgument, string> => {
  if (typeof todo === "string")
    return Result.succeed({ id: undefined, content: todo.trim() || undefined, status: undefined })
  if (!isObject(todo)) return Result.fail("A todo is an object with content and status.")
  const id = textOf(todo["id"])
  const content = textOf(under(todo, contentKeys))
  return Result.map(statusOf(todo), (status) => ({ id: id || undefined, content: content || undefined, status }))
}

/** Decodes a list of todos, one todo, or the text of either. */
export const decodeTodos = (json: Json): Result.Result<ReadonlyArray<TodoArgument>, string> => {
  const parsed = typeof json === "string" ? Option.getOrUndefined(parseJson(json)) : undefined
  const value = typeof parsed === "object" && parsed !== null ? parsed : json
  return Result.all((Array.isArray(value) ? value : [value]).map(readOne))
}
