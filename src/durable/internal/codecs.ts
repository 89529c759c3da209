/** Schemas of an agent's outcomes and failures. */
import * as Schema from "effect/Schema"
import { AgentError } from "../../core/AgentError.ts"
import { ModelError } from "../../core/ModelError.ts"
import { ToolError } from "../../core/ToolError.ts"
import type { Outcome } from "../Outcome.ts"
import { schema as outcomeSchema } from "./outcome.ts"

/** The answer of an agent. */
export type Answer<O> = Exclude<O, undefined>

/** The failures of an agent's own middleware, prompt and program. */
type Own<E> = Exclude<E, ModelError | AgentError | ToolError>

/** The schemas of stored outcomes: `output` unless the output is text, and `error` for errors of the agent's middleware. */
export type Terms<O, E> = ([string] extends [Answer<O>]
  ? {
      /** The output is text: it needs no schema. */
      readonly output?: undefined
    }
  : {
      /** The schema of the output, for stored outcomes. */
      readonly output: Schema.ConstraintCodec<Answer<O>, unknown>
    }) &
  ([Own<E>] extends [never]
    ? {
        /** The agent has no errors of its own: they need no schema. */
        readonly error?: undefined
      }
    : {
        /** The schema of the errors of the agent's middleware and program, for stored failures. */
        readonly error: Schema.ConstraintCodec<Own<E>, unknown>
      })

/** The schemas of an agent. `outcome` may have no answer, `done` has one. */
export interface Codecs<O, E> {
  readonly output: Schema.Codec<Answer<O>, unknown>
  readonly isText: boolean
  readonly outcome: Schema.Codec<Outcome<Answer<O> | undefined>, unknown>
  readonly done: Schema.Codec<Outcome<Answer<O>>, unknown>
  readonly failure: Schema.Codec<E | ModelError | AgentError, unknown>
}

/** Makes the schemas of stored outcomes and failures. */
export const codecs = <O, E>(terms: {
  readonly output?: Schema.ConstraintCodec<Answer<O>, unknown> | undefined
  readonly error?: Schema.ConstraintCodec<Own<E>, unknown> | undefined
}): Codecs<O, E> => {
  // Programs fail with the failures of their calls.
  const common = Schema.Union([ModelError, AgentError, ToolError])
  // `Terms` requires `output` and `error` for all other types.
  const output = (terms.output ?? Schema.String) as Schema.Codec<Answer<O>, unknown>
  const failure: Schema.Codec<unknown, unknown> =
    terms.error === undefined ? common : Schema.Union([common, terms.error])
  return {
    output,
    isText: terms.output === undefined,
    outcome: outcomeSchema(Schema.UndefinedOr(output)),
    done: outcomeSchema(output),
    // As with `output`.
    failure: failure as Schema.Codec<E | ModelError | AgentError, unknown>
  }
}
