/** Schemas of an agent's outcomes and failures. */
import * as Schema from "effect/Schema"
import { AgentError } from "../../core/AgentError.ts"
import { ModelError } from "../../core/ModelError.ts"
import { ToolError } from "../../core/ToolError.ts"
import { type Outcome, schema as outcomeSchema } from "../Outcome.ts"

/** The answer of an agent, when it gives one. */
export type Answer<O> = Exclude<O, undefined>

/** The failures of an agent that only its middleware, its prompt and its program know. */
export type Own<E> = Exclude<E, ModelError | AgentError | ToolError>

/** The schemas of an agent, ready for use. `outcome` is of a run that may have no answer, `done` of one that has. */
export interface Codecs<O, E> {
  readonly output: Schema.Codec<Answer<O>, unknown>
  readonly isText: boolean
  readonly outcome: Schema.Codec<Outcome<Answer<O> | undefined>, unknown>
  readonly done: Schema.Codec<Outcome<Answer<O>>, unknown>
  readonly failure: Schema.Codec<E | ModelError | AgentError, unknown>
}

/** The schemas that an agent's outcomes and failures are stored with. */
export const codecs = <O, E>(terms: {
  readonly output?: Schema.ConstraintCodec<Answer<O>, unknown> | undefined
  readonly error?: Schema.ConstraintCodec<Own<E>, unknown> | undefined
}): Codecs<O, E> => {
  // Programs fail with what the calls that they make fail with.
  const known = Schema.Union([ModelError, AgentError, ToolError])
  // `Terms` lets `output` and `error` be left out only where these are all that there can be.
  const output = (terms.output ?? Schema.String) as Schema.Codec<Answer<O>, unknown>
  const failure: Schema.Codec<unknown, unknown> = terms.error === undefined ? known : Schema.Union([known, terms.error])
  return {
    output,
    isText: terms.output === undefined,
    outcome: outcomeSchema(Schema.UndefinedOr(output)),
    done: outcomeSchema(output),
    // As with `output`.
    failure: failure as Schema.Codec<E | ModelError | AgentError, unknown>
  }
}
