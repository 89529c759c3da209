/** Sessions of a model: each turn is written, sent and decoded, after its warnings. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ModelRequest, ModelSession, TurnPart } from "../../../core/ChatModel.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import type { Message } from "../../../core/Message.ts"
import { ModelError } from "../../../core/ModelError.ts"
import { findMessageProblem } from "../../../core/ProviderOptions.ts"
import { reservedParameter } from "../wire/errors.ts"
import { makeSchemaWarner, makeThinkingWarner, warned } from "../wire/warned.ts"
import { decodeTurn, type Sink, type TurnDecoder } from "./decodeTurn.ts"
import { makeFold } from "./fold.ts"
import { makeMediaWarner } from "./media.ts"
import type { Effort, Efforts } from "./thinking.ts"

/** The parts of a request that the model does not get. */
export interface Losses {
  /** Images and files that can't be sent. */
  readonly damaged: ReadonlyArray<string>
  /** Constraints of the answer's schema that the model is not held to. */
  readonly lost?: ReadonlyArray<string> | undefined
  /** The effort that a level of thinking was mapped to, if it was. */
  readonly effort?: Effort | undefined
  /** True if thinking was requested, and the model can't be told. */
  readonly unheard?: boolean | undefined
}

/** A turn that is ready to be sent. */
interface OutgoingTurn<Event> extends Losses {
  readonly events: Stream.Stream<Event, ModelError>
  readonly makeDecoder: (sink: Sink) => TurnDecoder<Event>
  /** Further warnings. */
  readonly warnings?: ReadonlyArray<TurnPart | undefined>
}

/** Writes a turn. It fails with the name of a reserved parameter, or with a `ModelError`. */
export type Write<Event> = (
  request: ModelRequest,
  makeId: () => string
) => Effect.Effect<OutgoingTurn<Event>, ModelError | string>

/** Refuses a request with a message whose provider options are wrong, such as a misspelt one. Each is checked once. */
const makeOptionsCheck = (model: { readonly provider: string; readonly model: string }) => {
  const problemsOf = makeFold<Message, string>((problems, { providerOptions }) => {
    const problem = providerOptions === undefined ? undefined : findMessageProblem(providerOptions)
    if (problem !== undefined) problems.push(problem)
  })
  return ({ messages }: ModelRequest): ModelError | undefined => {
    const [problem] = problemsOf(messages).output
    if (problem === undefined) return undefined
    const detail = `providerOptions of a message: ${problem}`
    return new ModelError({ ...model, reason: { _tag: "InvalidRequest" }, detail })
  }
}

type Turn = Stream.Stream<TurnPart, ModelError>

/**
 * Words of a server that refuses an effort. Others speak of thinking too: of an item of the history that may not be
 * changed, or misses its neighbour.
 */
const refusal =
  /effort|thinking[ _]?level|(?:thinking|reasoning).{0,60}(?:\bnot\b.{0,20}|n't |un)support|(?:\bnot\b.{0,20}|n't |un)support.{0,60}(?:thinking|reasoning)/i

/** Reports whether a server refused a request for its effort. A refused request has no parts. */
const isRefusal = ({ detail = "", reason }: ModelError): boolean =>
  reason._tag === "InvalidRequest" && refusal.test(detail)

/**
 * Makes the opener of a model's sessions. They share their warnings and unknown events, so each appears once. A refused
 * effort is lowered, once for all of them.
 */
export const makeSessions = <Event, E = never, R = never>(
  model: { readonly provider: string; readonly model: string },
  makeWriter: Effect.Effect<Write<Event>, E, R>,
  efforts?: Efforts
): Effect.Effect<ModelSession, E, R> => {
  const reportedEvents = new Set<string>()
  const warnOfSchema = makeSchemaWarner(model)
  const warnOfThinking = makeThinkingWarner(model)
  return Effect.map(makeWriter, (write) => {
    const refuseOptions = makeOptionsCheck(model)
    const warnOfMedia = makeMediaWarner()
    const turn = Effect.fnUntraced(function* (request: ModelRequest): Effect.fn.Return<Turn, ModelError> {
      const refused = refuseOptions(request)
      if (refused !== undefined) return yield* refused
      const wireRequest = yield* Effect.mapError(write(request, yield* IdGenerator), (failure) =>
        typeof failure === "string" ? reservedParameter(model.provider, model.model, failure) : failure
      )
      const { damaged, effort, events, lost = [], makeDecoder, unheard = false, warnings = [] } = wireRequest
      const all = [warnOfMedia(damaged), warnOfSchema(lost), warnOfThinking(unheard), ...warnings]
      const parts = decodeTurn(events, makeDecoder, reportedEvents)
      const tried =
        effort === undefined || efforts === undefined
          ? parts
          : Stream.catch(parts, (error) =>
              isRefusal(error) && efforts.refuse(effort) ? Stream.unwrap(turn(request)) : Stream.fail(error)
            )
      return all.reduce((rest, warning) => warned(warning, rest), tried)
    })
    return { nextTurn: (request) => Stream.unwrap(turn(request)) }
  })
}
