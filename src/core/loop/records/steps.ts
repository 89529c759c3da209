/** Runs the steps of a tool: each runs once, and a call that runs again gets the stored value. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { tunnel } from "../../../support/effect/tunnel.ts"
import { cut } from "../../../support/text/text.ts"
import { AgentError, type Reason } from "../../AgentError.ts"
import { Json } from "../../Json.ts"
import type { Attempt, Live } from "../live.ts"
import * as Inside from "./inside.ts"
import { save } from "./journal.ts"

export const runStep = Effect.fnUntraced(function* <A, E, R>(
  attempt: Attempt,
  name: string,
  work: Effect.Effect<A, E, R>,
  { decode, encode }: Codec<A>
) {
  const { live } = attempt
  const place = Inside.claim(attempt, "step", name)
  const saved = yield* endRunWith(Effect.fromResult(Inside.find(attempt, place, "Step")))
  if (saved !== undefined) {
    return yield* endRunWith(Effect.mapError(decode(saved.value), ({ message }) => invalidState(live, name, message)))
  }
  const running = (attempt.steps ??= new Set<string>())
  if (running.has(name)) {
    yield* live.run.warn(
      "step-name",
      `Two steps "${cut(name, 100)}" run at once. A run that is resumed tells steps of one name apart by their order: give each its own name.`
    )
  }
  running.add(name)
  const value = yield* Effect.onExitPrimitive(work, () => {
    running.delete(name)
    return undefined
  })
  const json = yield* endRunWith(Effect.mapError(encode(value), ({ message }) => invalidValue(live, name, message)))
  const problem = problemOfJson(json)
  if (problem !== undefined) return yield* endRunWith(Effect.fail(invalidValue(live, name, problem)))
  Inside.keep(attempt, place, { _tag: "Step", value: json })
  yield* endRunWith(save(live))
  return value
})

/** Ends the run with a failure, past everything wrapped around the step. */
const endRunWith = <A>(effect: Effect.Effect<A, AgentError>): Effect.Effect<A> =>
  Effect.catch(effect, (error) => Effect.die(tunnel(error)))

const failRun = (live: Live, reason: Reason): AgentError => new AgentError({ agent: live.run.agent, reason })

const invalidState = (live: Live, name: string, problem: string): AgentError =>
  failRun(live, { _tag: "InvalidState", slot: `step "${name}"`, problem })

const invalidValue = (live: Live, name: string, problem: string): AgentError =>
  failRun(live, {
    _tag: "InvalidOutput",
    raw: "",
    problem: `the step "${cut(name, 100)}" was done, but its value can't be stored as JSON: ${cut(problem, 1_000)}. Give the step a schema that writes it, or return less`
  })

const isJson = Schema.is(Json)

/** Finds what is not JSON in an encoded value: a schema such as `Schema.Any` lets everything pass. */
const problemOfJson = (value: unknown): string | undefined =>
  isJson(value)
    ? undefined
    : `${typeof value === "object" ? "it contains a value" : `a ${typeof value}`} that is no JSON`

interface Codec<A> {
  readonly encode: (value: A) => Effect.Effect<Json, Schema.SchemaError>
  readonly decode: (json: Json) => Effect.Effect<A, Schema.SchemaError>
}

const codecs = new WeakMap<object, unknown>()

/** Makes the codec of a schema, once for all steps that use the schema. */
export const codecOf = <A, I>(schema: Schema.Codec<A, I>): Codec<A> => {
  // Only a schema of `A` has this codec.
  const cachedCodec = codecs.get(schema) as Codec<A> | undefined
  if (cachedCodec !== undefined) return cachedCodec
  const json = Schema.toCodecJson(schema)
  const codec: Codec<A> = { encode: Schema.encodeEffect(json), decode: Schema.decodeEffect(json) }
  codecs.set(schema, codec)
  return codec
}
