/**
 * Cases of evaluations from files and from stored threads.
 *
 * ```ts
 * import { Effect, FileSystem } from "effect"
 * import { Cases } from "effect-deepagents/evals"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   return yield* Cases.fromJsonl(yield* files.readFileString("cases.jsonl"))
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isObject, type Json, type JsonObject } from "../core/Json.ts"
import type { HumanMessage, Message } from "../core/Message.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { loadThread } from "../sessions/journal.ts"
import { didYouMean } from "../support/text/names.ts"
import { Case, EvalError } from "./Eval.ts"
import { parseCsv } from "./internal/csv.ts"
import { withoutMark } from "./internal/lines.ts"

/** Other names of fields, as benchmark files of other libraries have them. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["id", "name"],
  ["question", "input"],
  ["prompt", "input"],
  ["expected_tools", "tools"],
  ["expected_contains", "contains"],
  ["expected_not_contains", "excludes"],
  ["max_iterations", "rounds"],
  ["max_tokens", "tokens"]
])

const fields = Object.keys(Case.fields)
const decodeCase = Schema.decodeUnknownResult(Case)
const parseJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

const problem = (where: string, what: string) => new EvalError({ problem: `${where}: ${what}` })

const toCase = (raw: JsonObject, where: string, number: number): Result.Result<Case, EvalError> => {
  const entries = Object.entries(raw).map(([key, value]) => [otherNames.get(key) ?? key, value] as const)
  const unknown = entries.find(([key]) => !fields.includes(key))
  if (unknown !== undefined) {
    const [key] = unknown
    return Result.fail(problem(where, `${JSON.stringify(key)} is no field of a case.${didYouMean(key, fields)}`))
  }
  const named = { name: `case ${number}`, ...Object.fromEntries(entries) }
  return Result.mapError(decodeCase(named), ({ message }) => problem(where, message))
}

/**
 * Reads cases from JSON lines: an object a line, with the fields of `Case`. A case without a name is called by its number.
 * The names `expected_tools`, `expected_contains`, `expected_not_contains`, `max_iterations` and `max_tokens` are read, too.
 */
export const fromJsonl = (text: string): Effect.Effect<ReadonlyArray<Case>, EvalError> =>
  Effect.suspend(() => {
    const cases: Array<Case> = []
    for (const [index, line] of withoutMark(text).split(/\r?\n/).entries()) {
      if (line.trim() === "") continue
      const where = `line ${index + 1}`
      const parsed = parseJson(line)
      if (Result.isFailure(parsed)) return problem(where, "it is not JSON")
      if (!isObject(parsed.success)) return problem(where, "a case is an object")
      const result = toCase(parsed.success, where, cases.length + 1)
      if (Result.isFailure(result)) return result.failure
      cases.push(result.success)
    }
    return Effect.succeed(cases)
  })

const lists: ReadonlySet<string> = new Set(["contains", "excludes", "tools", "avoids"])
const counts: ReadonlySet<string> = new Set(["rounds", "tokens"])

/** A cell as the value of its field: lists are parted by `;`. */
const valueOf = (field: string, cell: string): Json => {
  if (lists.has(field)) {
    return cell
      .split(";")
      .map((one) => one.trim())
      .filter((one) => one !== "")
  }
  return counts.has(field) ? Number(cell) : cell
}

/** Reads cases from CSV. The first row names the fields; `;` separates the items of a list, and an empty cell leaves its field out. */
export const fromCsv = (text: string): Effect.Effect<ReadonlyArray<Case>, EvalError> =>
  Effect.suspend(() => {
    const [{ cells: header } = { cells: [] }, ...rows] = parseCsv(text)
    const cases: Array<Case> = []
    for (const [index, { cells: row, line }] of rows.entries()) {
      const where = `line ${line}`
      if (row.length > header.length) {
        return problem(where, `it has ${row.length} cells, and the first row names ${header.length}`)
      }
      const raw = header.flatMap((heading, column) => {
        const [key, cell = ""] = [heading.trim(), row[column]]
        return cell === "" ? [] : [[key, valueOf(otherNames.get(key) ?? key, cell)] as const]
      })
      const result = toCase(Object.fromEntries(raw), where, index + 1)
      if (Result.isFailure(result)) return result.failure
      cases.push(result.success)
    }
    return Effect.succeed(cases)
  })

const isQuestion = (message: Message): message is HumanMessage =>
  message.role === "human" && message.source === undefined

/**
 * Makes a case of each message that a person wrote into a stored thread, with the conversation before it as history. Run
 * them with another prompt, model or tool, and compare the reports.
 */
export const fromThread = (threadId: string): Effect.Effect<ReadonlyArray<Case>, SessionError, SessionStore> =>
  Effect.gen(function* () {
    const { checkpoint } = yield* loadThread(yield* SessionStore, threadId)
    const messages = checkpoint?.messages ?? []
    return messages.flatMap((message, index) =>
      isQuestion(message)
        ? [{ name: `${threadId} ${message.id}`, group: threadId, input: message, history: messages.slice(0, index) }]
        : []
    )
  })
