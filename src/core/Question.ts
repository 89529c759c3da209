/**
 * Questions that a tool asks a person in the middle of its work, with a schema for the answer.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Question, Tool, ToolContext } from "effect-deepagents"
 *
 * const seat = Question.make("Which seat?", { answer: Schema.Literals(["window", "aisle"]) })
 *
 * const book = Tool.make("book_flight", {
 *   description: "Books a flight",
 *   parameters: { flight: Schema.String },
 *   execute: Effect.fnUntraced(function*({ flight }) {
 *     const { ask } = yield* ToolContext.ToolContext
 *     return `${flight} is booked, at the ${yield* ask(seat)}.`
 *   })
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Json, JsonObject } from "./Json.ts"
import type * as Ruling from "./Ruling.ts"
import { lenient } from "./schema/arguments.ts"
import { toEffect } from "./schema/decoding.ts"
import { withFiniteNumbers } from "./schema/finiteNumbers.ts"
import { jsonSchemaOf } from "./schema/jsonSchema.ts"
import * as standard from "./schema/standard.ts"
import type { StandardSchema } from "./schema/standard.ts"

/**
 * A call that was rehearsed (`ToolContext.rehearsal`): it has not acted. `given` are the arguments of the caller, and
 * `arguments` those that rules saw. `asks` are the questions of the rules about it.
 */
export const RehearsedCall = Schema.Struct({
  name: Schema.String,
  given: JsonObject,
  arguments: JsonObject,
  description: Schema.String,
  asks: Schema.Array(
    Schema.Struct({
      by: Schema.String,
      reason: Schema.optionalKey(Schema.String),
      deciders: Schema.optionalKey(Schema.Array(Schema.String)),
      expiresIn: Schema.optionalKey(Schema.Finite),
      byPerson: Schema.optionalKey(Schema.Boolean)
    })
  )
})
export interface RehearsedCall extends Schema.Schema.Type<typeof RehearsedCall> {}

/**
 * A question with an answer of type `A`. The person reads `text`, and `details` for the decision. A form is made from
 * `jsonSchema`.
 */
export interface Question<out A> {
  readonly text: string
  readonly details: JsonObject
  readonly jsonSchema: JsonObject
  /**
   * Set for a question that an approval answers: its terms, the names that an approval for good covers, and the calls
   * that it lets the asking tool make.
   */
  readonly approval?:
    | {
        readonly ask: Ruling.Ask | undefined
        readonly covers: ReadonlyArray<string>
        readonly calls: ReadonlyArray<RehearsedCall>
      }
    | undefined
  /** Decodes an answer. Fails with its problems, one per line. */
  readonly decode: (json: Json) => Effect.Effect<A, string>
}

/** Makes a question. Its answer is decoded with the schema: one of Effect's, or of another library. */
export const make = <A>(
  text: string,
  options: {
    /** The schema of the answer. */
    readonly answer: Schema.ConstraintCodec<A, unknown> | StandardSchema<A>
    /** Data for the interface that shows the question. Default: none. */
    readonly details?: JsonObject | undefined
  }
): Question<A> => {
  const { answer } = options
  const details = options.details ?? {}
  if (standard.isCodec(answer)) {
    const schema = withFiniteNumbers(answer)
    const jsonSchema = jsonSchemaOf(schema)
    const read = lenient(jsonSchema, Schema.toCodecJson(schema), "the answer")
    return { text, details, jsonSchema, decode: (json) => answerOf<A>(() => read(json)) }
  }
  return Result.match(standard.jsonSchemaOf(answer), {
    onSuccess: (jsonSchema) => {
      const read = standard.lenient(jsonSchema, answer, "the answer")
      return { text, details, jsonSchema, decode: (json) => answerOf<A>(() => read(json)) }
    },
    onFailure: (problem) => ({ text, details, jsonSchema: {}, decode: () => Effect.fail(problem) })
  })
}

/** The value of a decoding that was made from a schema of `A`. */
const answerOf = <A>(decoding: () => Parameters<typeof toEffect>[0]): Effect.Effect<A, string> =>
  Effect.map(
    Effect.suspend(() => toEffect(decoding())),
    (decoded) => (decoded as { readonly value: A }).value
  ) as Effect.Effect<A, string>

/**
 * Asks for an approval, as a gate does. `Approval.approve` answers it; after `Approval.reject` the `ask` fails.
 * `details` stand in place of a call's arguments.
 */
export const approval = (
  text: string,
  details: JsonObject,
  options?: {
    /** The ruling behind the question: whose it is, who may decide, and for how long. Default: anybody may, at any time. */
    readonly ask?: Ruling.Ask | undefined
    /** Names that an approval with `always` covers. Once all names are approved, nobody is asked. Default: none. */
    readonly covers?: ReadonlyArray<string> | undefined
    /**
     * Rehearsed calls that the asking tool may make once the question is approved. Each may be made once, with the
     * arguments that were rehearsed, and rules that had asked about it do not ask again. `ask` must be as strict as
     * their questions. Default: none.
     */
    readonly calls?: ReadonlyArray<RehearsedCall> | undefined
  }
): Question<void> => ({
  text,
  details,
  jsonSchema: {},
  approval: { ask: options?.ask, covers: options?.covers ?? [], calls: options?.calls ?? [] },
  decode: () => Effect.void
})

/** Asks for yes or no. */
export const confirm = (text: string, details?: JsonObject): Question<boolean> =>
  make(text, { answer: Schema.Boolean, details })
